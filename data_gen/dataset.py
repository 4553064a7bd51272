"""Traces and their summaries -> the splits of a data set: token ids for `datasets`, and the texts."""

import shutil
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType

import datasets
import pyarrow as pa

from data_gen.assemble import RowBuilder
from data_gen.by_trace import ByTrace
from data_gen.conversations import SPLITS, Conversation
from data_gen.records import Skip
from data_gen.split import Split
from data_gen.validation import Validation
from pipeline import sha256
from pipeline.json_lines import to_line

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


def write_splits(
    traces: Iterable[Conversation],
    summaries: Path,
    directory: Path,
    make_row: RowBuilder,
    choose_split: Split,
    validation: Validation,
) -> None:
    """Write `<split>/` and `<split>.jsonl`, one trace in memory at a time.

    Parameters
    ----------
    traces : iterable of Conversation
    summaries : Path
        Rows with the trace, the paragraph and its summary, in any order.
    directory : Path
        Where the splits go.
    make_row : RowBuilder
    choose_split : Split
    validation : Validation
        Sees every row that is kept, and every one that is not with its reason.
    """
    with ExitStack() as stack:
        known = stack.enter_context(closing(ByTrace(summaries)))
        unused = len(known)
        writers = {split: stack.enter_context(DatasetWriter(directory / split)) for split in SPLITS}
        texts = {split: stack.enter_context(open(directory / f"{split}.jsonl", "wb")) for split in SPLITS}
        for trace in traces:
            rows = (row for row in known.of(trace.id) if 0 <= row["paragraph"] < len(trace.paragraphs))
            found = {row["paragraph"]: row["summary"] for row in rows}
            unused -= len(found)
            try:
                if matched := validation.decontamination.match(trace.id, trace.user):
                    raise Skip(f"benchmark problem: {matched}")
                row = make_row(trace, found)
                split = choose_split(trace)
            except Skip as reason:
                validation.dropped.append(reason.row(trace.id))
                continue
            writers[split].add(trace.id, row.input_ids, row.labels)
            record = {"id": trace.id, "system": trace.system, "user": trace.user, "assistant": row.text}
            texts[split].write(to_line({**record, "answer": trace.answer}))
            validation.keep(trace.id, split, row, len(found))
        for writer in writers.values():
            writer.save()
    if unused:
        validation.warnings.append(f"{unused} summaries belong to no paragraph of the traces")
