"""The append-only store of replies: written in batches, read back by id."""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zoomr.runs import AppendLog
from zoomr.runs.files import full_disk

ID_FIELD = b'{"id": "'


def row_id(line: bytes) -> str:
    """Return the id of a stored line without parsing the rest, so that 700,000 rows are indexed in a second."""
    end = line.index(b'"', len(ID_FIELD)) if line.startswith(ID_FIELD) else -1
    quoted = line[len(ID_FIELD) : end]
    return json.loads(line)["id"] if end < 0 or b"\\" in quoted else quoted.decode()


class ReplyStore(AppendLog):
    """An append log that knows where each row lies.

    Parameters
    ----------
    path : str or Path
        The JSON Lines file.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self.offsets: dict[str, int] = dict(self._scan())

    def __contains__(self, wanted: object) -> bool:
        return wanted in self.offsets

    def _scan(self) -> Iterator[tuple[str, int]]:
        offset = 0
        with open(self.path, "rb") as file:
            for line in file:
                yield row_id(line), offset
                offset += len(line)

    def extend(self, rows: list[dict[str, Any]]) -> None:
        """Append rows with one write and one wait for the disk, which is what makes thousands a second possible.

        Raises
        ------
        UserError
            If the disk is full; the file keeps its whole rows.
        """
        lines = [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows]
        data = memoryview(b"".join(lines))
        try:
            while data:
                data = data[self._file.write(data) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(self._size)
            if error.errno == errno.ENOSPC:
                raise full_disk(self.path) from error
            raise
        for row, line in zip(rows, lines, strict=True):
            self.offsets[row["id"]] = self._size
            self._size += len(line)

    def read(self, wanted: Iterator[str]) -> Iterator[dict[str, Any]]:
        """Yield the rows of the given ids that are in the store, in the order of the ids."""
        with open(self.path, "rb") as file:
            for wanted_id in wanted:
                if wanted_id in self.offsets:
                    file.seek(self.offsets[wanted_id])
                    yield json.loads(file.readline())
