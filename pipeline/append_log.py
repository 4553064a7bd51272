"""An append-only JSON Lines file with a key: what is in it is finished, what is not is still to do."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from pipeline.files import writing
from pipeline.json_lines import iterate_rows, to_line


class AppendLog:
    """Rows that are on the disk the moment `append` returns.

    Opening cuts off a last line that a kill left half-written, so that its row counts as not done.

    Parameters
    ----------
    path : str or Path
        The file; made on the first append, with its parent directories.
    key : str
        The field that identifies a row.

    Raises
    ------
    UserError
        If the file cannot be opened for writing.
    """

    def __init__(self, path: str | Path, key: str = "id") -> None:
        self.path = Path(path)
        self.key = key
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "ab+", buffering=0)
            self._size = self._cut_half_line()

    def _cut_half_line(self) -> int:
        size = end = self._file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - 65536)
            self._file.seek(start)
            newline = self._file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            self._file.truncate(end)
        return end

    def append(self, row: dict[str, Any]) -> None:
        """Write one row and wait until it is on the disk; see `extend`."""
        self.extend([row])

    def extend(self, rows: list[dict[str, Any]]) -> list[int]:
        """Write rows at once and wait until they are on the disk.

        Returns
        -------
        list of int
            Where in the file each row starts.

        Raises
        ------
        UserError
            If the file cannot be written; it keeps its whole lines and can be resumed.
        """
        lines = list(map(to_line, rows))
        data = memoryview(b"".join(lines))
        with writing(self.path):
            try:
                while data:
                    data = data[self._file.write(data) :]
                os.fsync(self._file.fileno())
            except OSError:
                self._file.truncate(self._size)
                raise
        starts = list(itertools.accumulate(map(len, lines), initial=self._size))
        self._size = starts.pop()
        return starts

    def rows(self) -> Iterator[dict[str, Any]]:
        """Iterate over the rows in the order of their appending."""
        return iterate_rows(self.path)

    def keys(self) -> set[str]:
        """Return the keys of all rows."""
        return {row[self.key] for row in self.rows()}

    def close(self) -> None:
        """Close the file; appending ends."""
        self._file.close()

    def __enter__(self) -> "AppendLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
