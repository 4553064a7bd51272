"""What segmentation did to a dataset: paragraphs a trace and tokens a paragraph, before and after merging."""

import json
import statistics
from array import array
from collections import Counter
from collections.abc import Callable, Iterable

from data_gen.page import histogram, page, table


class Statistics:
    """Collects lengths while traces pass; keeps four bytes a paragraph.

    Parameters
    ----------
    count : callable
        Number of tokens of a text.
    """

    def __init__(self, count: Callable[[str], int]) -> None:
        self.count = count
        self.series = {
            name: array("i")
            for name in (
                "blank-line pieces a trace",
                "paragraphs a trace",
                "tokens a blank-line piece",
                "tokens a paragraph",
            )
        }

    @property
    def paragraphs(self) -> int:
        """Number of paragraphs seen."""
        return len(self.series["tokens a paragraph"])

    def add(self, pieces: list[str], paragraphs: list[str]) -> None:
        """Count one trace: its pieces between blank lines, and its paragraphs after merging."""
        for name, texts in (("blank-line piece", pieces), ("paragraph", paragraphs)):
            self.series[f"{name}s a trace"].append(len(texts))
            self.series[f"tokens a {name}"].extend(self.count(text) for text in texts)

    def summary(self) -> dict[str, dict[str, float]]:
        """Mean, median, 95th percentile and extremes of every series."""
        return {name: describe(values) for name, values in self.series.items() if values}

    def to_json(self) -> str:
        """The summary as JSON."""
        return json.dumps(self.summary(), indent=2) + "\n"

    def to_html(self, name: str, skipped: Counter[str]) -> str:
        """The summary and the histograms as a self-contained page."""
        columns = ["series", "count", "mean", "median", "p95", "min", "max"]
        body = [table(columns, ([name, *values.values()] for name, values in self.summary().items()))]
        if skipped:
            body.append(table(["skipped rows", "count"], skipped.most_common()))
        body += [histogram(values, title) for title, values in self.series.items()]
        return page(f"Segmentation of {name}", body)


def describe(values: Iterable[int]) -> dict[str, float]:
    """Count, mean, median, 95th percentile, minimum and maximum."""
    ordered = sorted(values)
    return {
        "count": len(ordered),
        "mean": round(statistics.fmean(ordered), 2),
        "median": statistics.median(ordered),
        "p95": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))],
        "min": ordered[0],
        "max": ordered[-1],
    }
