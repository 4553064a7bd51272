"""Writes rows of token ids as they come, and turns them into a `datasets` directory."""

import shutil
from pathlib import Path
from types import TracebackType

import datasets
import pyarrow as pa

from pipeline import sha256

SCHEMA = pa.schema([("id", pa.string()), ("input_ids", pa.list_(pa.int32())), ("labels", pa.list_(pa.int32()))])
BATCH = 32


class DatasetWriter:
    """One split. Rows lie in an Arrow stream until `save`; memory holds one batch.

    Parameters
    ----------
    directory : Path
        The split's directory; replaced by `save`.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.rows = 0
        self._partial = directory.with_name(f".{directory.name}.arrow")
        self._writer = pa.ipc.new_stream(str(self._partial), SCHEMA)
        self._batch: list[dict] = []

    def add(self, row_id: str, input_ids: list[int], labels: list[int]) -> None:
        """Add a row."""
        self._batch.append({"id": row_id, "input_ids": input_ids, "labels": labels})
        self.rows += 1
        if len(self._batch) == BATCH:
            self._flush()

    def _flush(self) -> None:
        if self._batch:
            self._writer.write_table(pa.Table.from_pylist(self._batch, schema=SCHEMA))
            self._batch = []

    def save(self) -> None:
        """Write the directory that `datasets.load_from_disk` reads."""
        self._flush()
        self._writer.close()
        shutil.rmtree(self.directory, ignore_errors=True)
        table = datasets.table.MemoryMappedTable.from_file(str(self._partial))
        # The fingerprint is the content's, since the library's own holds the time and equal data would differ.
        dataset = datasets.Dataset(table, fingerprint=sha256(self._partial)[:16])
        datasets.disable_progress_bars()
        dataset.save_to_disk(self.directory)

    def __enter__(self) -> "DatasetWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        self._partial.unlink(missing_ok=True)
