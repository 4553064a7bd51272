"""The report on a training set: what was kept, what was dropped and why, lengths, and samples to read."""

import hashlib
import heapq
import html
import json
from array import array
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from data_gen.assemble import IGNORED, TrainingRow
from data_gen.decontamination import Decontamination
from data_gen.page import histogram, page, table
from data_gen.statistics import describe
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
        self.dropped: Counter[str] = Counter()
        self.warnings: list[str] = []
        self.cut = 0
        self.series = {
            name: array("i")
            for name in (
                "tokens a row",
                "prompt tokens a row",
                "summaries a row",
                "tokens a paragraph",
                "tokens a summary",
                "summary tokens per 1000 tokens of thought",
            )
        }
        self._samples: list[tuple[int, str, TrainingRow]] = []

    def drop(self, reason: str) -> None:
        """Count a trace that is left out."""
        self.dropped[reason] += 1

    def keep(self, row_id: str, split: str, row: TrainingRow, summaries: int) -> None:
        """Measure a row; lengths are counted on ids, as the model sees them."""
        self.kept[split] += 1
        self.cut += row.was_cut
        paragraphs, inner = segment_lengths(row, self.begin, self.end)
        if not row.was_cut and len(inner) != summaries:
            self.warnings.append(f"{row_id}: {len(inner)} summaries in the ids, {summaries} in the text")
        prompt = sum(label == IGNORED for label in row.labels)
        share = round(1000 * sum(inner) / max(1, sum(inner) + sum(paragraphs)))
        for name, values in zip(
            self.series,
            ([len(row.input_ids)], [prompt], [len(inner)], paragraphs, inner, [share]),
            strict=True,
        ):
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
            "dropped": dict(self.dropped.most_common()),
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

    def to_json(self) -> str:
        """The summary as JSON."""
        return json.dumps(self.summary(), indent=2, ensure_ascii=False) + "\n"

    def to_html(self, name: str) -> str:
        """The report as a self-contained page."""
        summary = self.summary()
        columns = ["lengths", "count", "mean", "median", "p95", "min", "max"]
        overlaps = ((f"{share:.2f}", row, name) for share, row, name in self.decontamination.highest())
        body = [
            table(["rows", "count"], [*self.kept.items(), *(("dropped: " + r, n) for r, n in self.dropped.items())]),
            table(columns, ([name, *values.values()] for name, values in summary["lengths"].items())),
            *(histogram(values, title) for title, values in self.series.items()),
            table(["paragraphs", "count"], self._paragraph_counts()),
            table(["benchmark", "problems known"], self.decontamination.problems.items()),
            table(["share of n-grams in a benchmark", "row", "benchmark"], overlaps),
            *(f"<p>warning: {html.escape(warning)}</p>" for warning in self.warnings),
            "<h2>Rows as the model sees them</h2>" if self.samples else "",
            "<p>Grey: prompt, no loss. Marked: summaries. Red: special tokens.</p>" if self.samples else "",
        ]
        for _, row_id, row in sorted(self._samples, key=lambda sample: -sample[0]):
            title = f"{html.escape(row_id)}, {len(row.input_ids):,} tokens"
            body.append(f"<details><summary>{title}</summary><pre>{''.join(self._render(row))}</pre></details>")
        return page(f"Training set {name}", body)

    def _paragraph_counts(self) -> Iterator[tuple[str, int]]:
        yield "summarised", self.summarised["summaries"]
        for reason, number in self.summarised["failed"].items():
            yield f"failed: {reason}", number

    def _render(self, row: TrainingRow) -> Iterator[str]:
        special = set(self.tokenizer.all_special_ids) | {self.begin, self.end}
        prompt = sum(label == IGNORED for label in row.labels)
        yield '<span class="prompt">'
        run: list[int] = []
        for position, token in enumerate([*row.input_ids, None]):
            if run and (token is None or token in special or position == prompt):
                yield html.escape(str(self.tokenizer.decode(run)))
                run = []
            if position == prompt:
                yield "</span>"
            if token is None:
                return
            if token in special:
                yield "<mark>" if token == self.begin else ""
                yield f'<span class="control">{html.escape(str(self.tokenizer.decode([token])))}</span>'
                yield "</mark>" if token == self.end else ""
            else:
                run.append(token)


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
