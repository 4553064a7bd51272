"""The report on a training set: what was kept, what was dropped and why, lengths, and samples to read."""

import hashlib
import heapq
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data_gen.assemble import IGNORED, TrainingRow
from data_gen.decontamination import Decontamination
from data_gen.report import describe, histogram
from pipeline.page import render
from zoomr.summaries.segments import delimiter_ids

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Validation:
    """Collects while rows pass; keeps a few integers a row and the samples.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        Decodes the samples: they show what the model sees, not what was meant.
    decontamination : Decontamination
        For its findings.
    summarised : dict
        Counts of the summarize run.
    samples : int
        Rows shown in full.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        decontamination: Decontamination,
        summarised: dict[str, Any],
        samples: int,
    ) -> None:
        self.tokenizer = tokenizer
        self.decontamination = decontamination
        self.summarised = summarised
        self.samples = samples
        self.begin, self.end = delimiter_ids(tokenizer)
        self.kept: Counter[str] = Counter()
        self.dropped: list[dict[str, str]] = []
        self.warnings: list[str] = []
        self.cut = 0
        self.series: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
        self._samples: list[tuple[int, str, TrainingRow]] = []

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """For how many traces were left out, by reason."""
        return Counter(row["reason"] for row in self.dropped).most_common()

    def keep(self, row_id: str, split: str, row: TrainingRow, summaries: int) -> None:
        """Measure a row; lengths are counted on ids, as the model sees them."""
        self.kept[split] += 1
        self.cut += row.was_cut
        paragraphs, inner = segment_lengths(row, self.begin, self.end)
        if not row.was_cut and len(inner) != summaries:
            self.warnings.append(f"{row_id}: {len(inner)} summaries in the ids, {summaries} in the text")
        lengths = {
            "tokens a row": [len(row.input_ids)],
            "prompt tokens a row": [row.labels.count(IGNORED)],
            "summaries a row": [len(inner)],
            "tokens a paragraph": paragraphs,
            "tokens a summary": inner,
            "summary tokens per 1000 tokens of thought": [round(1000 * sum(inner) / max(1, sum(inner + paragraphs)))],
        }
        for name, values in lengths.items():
            self.series[name].extend(values)
        # The rows whose ids have the smallest digests: any ten, and the same ones each time.
        order = -int(hashlib.sha256(row_id.encode()).hexdigest()[:12], 16)
        heapq.heappush(self._samples, (order, row_id, row))
        if len(self._samples) > self.samples:
            heapq.heappop(self._samples)

    def summary(self) -> dict[str, Any]:
        """Everything but the samples."""
        return {
            "rows": dict(self.kept),
            "dropped": dict(self.reasons),
            "cut": self.cut,
            "summarised": self.summarised,
            "lengths": {name: describe(values) for name, values in self.series.items() if values},
            "benchmarks": {
                "problems": dict(self.decontamination.problems),
                "found": dict(self.decontamination.found),
                f"highest {self.decontamination.n}-gram overlaps": [
                    {"share": round(share, 3), "row": row, "benchmark": name}
                    for share, row, name in self.decontamination.highest()
                ],
            },
            "warnings": self.warnings,
        }

    def to_html(self, name: str) -> str:
        """The report as a self-contained page."""
        lengths = self.summary()["lengths"]
        counts = [*self.kept.items(), *((f"dropped: {reason}", number) for reason, number in self.reasons)]
        failed = ((f"failed: {reason}", number) for reason, number in self.summarised["failed"].items())
        overlaps = self.decontamination.highest()
        return render(
            Path(__file__).with_name("build.html"),
            title=f"Training set {name}",
            tables=[
                _rows(("rows", "count"), counts),
                [{"lengths": series, **values} for series, values in lengths.items()],
                _rows(("paragraphs", "count"), [("summarised", self.summarised["summaries"]), *failed]),
                _rows(("benchmark", "problems known"), self.decontamination.problems.items()),
                _rows(("share of n-grams", "row", "benchmark"), ((f"{s:.2f}", row, name) for s, row, name in overlaps)),
            ],
            histograms=[histogram(values, title) for title, values in self.series.items() if values],
            warnings=self.warnings,
            samples=[
                {"id": row_id, "tokens": len(row.input_ids), "runs": list(self._runs(row))}
                for _, row_id, row in sorted(self._samples, key=lambda sample: -sample[0])
            ],
        )

    def _runs(self, row: TrainingRow) -> Iterator[tuple[str, str]]:
        """What the model sees, in runs of one kind: prompt, control, summary or text."""
        special = set(self.tokenizer.all_special_ids) | {self.begin, self.end}
        kinds, inside = [], False
        for token, label in zip(row.input_ids, row.labels, strict=True):
            inside = token == self.begin or (inside and token != self.end)
            plain = "prompt" if label == IGNORED else "summary" if inside else "text"
            kinds.append("control" if token in special else plain)
        for kind, pairs in groupby(zip(kinds, row.input_ids, strict=True), key=itemgetter(0)):
            yield kind, str(self.tokenizer.decode([token for _, token in pairs]))


def _rows(columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in rows]


def segment_lengths(row: TrainingRow, begin: int | None, end: int | None) -> tuple[list[int], list[int]]:
    """Tokens of each paragraph before a summary and of each summary, delimiters left out."""
    paragraphs, inner = [], []
    start = next((i for i, label in enumerate(row.labels) if label != IGNORED), len(row.labels))
    for position in range(start, len(row.input_ids)):
        if row.input_ids[position] == begin:
            paragraphs.append(position - start)
            start = position + 1
        elif row.input_ids[position] == end:
            inner.append(position - start)
            start = position + 1
    return paragraphs, inner
