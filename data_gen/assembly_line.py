"""Takes every trace through the checks and writes it where it belongs, one in memory at a time."""

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from data_gen.assemble import RowBuilder, TrainingRow, insert_summaries, strip_summaries
from data_gen.dataset import DatasetWriter
from data_gen.decontamination import Decontamination
from data_gen.records import Skip
from data_gen.split import Split
from data_gen.summaries import Summaries
from data_gen.traces import Trace
from data_gen.validation import Validation
from pipeline import progress


class AssemblyLine:
    """The steps from a trace to a row.

    Parameters
    ----------
    rows : RowBuilder
        Renders token rows.
    decontamination : Decontamination
        Knows the benchmarks.
    split : Split
        Chooses the split.
    validation : Validation
        Sees every row that is kept and every reason for which one is not.
    leave_missing : bool
        Keep a trace of which some paragraphs have no summary.
    """

    def __init__(
        self,
        rows: RowBuilder,
        decontamination: Decontamination,
        split: Split,
        validation: Validation,
        leave_missing: bool,
    ) -> None:
        self.rows = rows
        self.decontamination = decontamination
        self.split = split
        self.validation = validation
        self.leave_missing = leave_missing

    def run(
        self, traces: Iterable[Trace], total: int, summaries_path: Path, directory: Path, splits: Sequence[str]
    ) -> dict[str, Any]:
        """Write `<split>/` and `<split>.jsonl` for every split of the `total` traces; return the counts."""
        with ExitStack() as stack:
            summaries = stack.enter_context(closing(Summaries(summaries_path)))
            writers = {split: stack.enter_context(DatasetWriter(directory / split)) for split in splits}
            texts = {split: stack.enter_context(open(directory / f"{split}.jsonl", "w")) for split in splits}
            for trace in progress(traces, total=total, unit="trace", description="build"):
                found = summaries.of(trace.id, len(trace.paragraphs))
                try:
                    text, row = self.assemble(trace, found)
                    split = self.split(trace)
                except Skip as reason:
                    self.validation.drop(str(reason))
                    continue
                writers[split].add(trace.id, row.input_ids, row.labels)
                record = {"id": trace.id, "system": trace.system, "user": trace.user, "assistant": text}
                texts[split].write(json.dumps({**record, "answer": trace.answer}, ensure_ascii=False) + "\n")
                self.validation.keep(trace.id, split, row, len(found))
            for writer in writers.values():
                writer.save()
        if summaries.unused:
            self.validation.warnings.append(f"{summaries.unused} summaries belong to no paragraph of the traces")
        for warning in self.validation.warnings:
            print(f"warning: {warning}")
        return {
            "rows": {split: writer.rows for split, writer in writers.items()},
            "dropped": dict(self.validation.dropped.most_common()),
            "cut": self.validation.cut,
        }

    def assemble(self, trace: Trace, summaries: dict[int, str]) -> tuple[str, TrainingRow]:
        """Return the assistant text with summaries, and its row.

        Raises
        ------
        Skip
            With the reason for which the trace is left out.
        """
        matched = self.decontamination.match(trace.id, trace.user)
        if matched:
            raise Skip(f"benchmark problem: {matched}")
        if not summaries or (len(summaries) < len(trace.paragraphs) and not self.leave_missing):
            raise Skip("summary missing")
        text = insert_summaries(trace, summaries)
        if strip_summaries(text) != trace.assistant:
            raise Skip("text changed by the summaries")
        return text, self.rows(trace, text)
