"""What the pages of prepare and build say about lengths: a line of a table, and a histogram."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any


def describe(values: Iterable[int]) -> dict[str, float]:
    """Count, mean, median, 95th percentile, minimum and maximum of at least one number."""
    ordered = sorted(values)
    return {
        "count": len(ordered),
        "mean": round(statistics.fmean(ordered), 2),
        "median": statistics.median(ordered),
        "p95": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))],
        "min": ordered[0],
        "max": ordered[-1],
    }


def histogram(values: Sequence[int], title: str, bins: int = 30) -> dict[str, Any]:
    """Bars for the distribution of at least one non-negative integer.

    The range ends at the 99th percentile, so that one outlier does not flatten the rest.

    Returns
    -------
    dict
        `title`; `bars`, each the first number that it counts and how many it counts, the last one everything beyond
        the range too; `low` and `high`, the ends of the range.
    """
    ordered = sorted(values)
    low, high = ordered[0], ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    width = max(1, -(-(high - low + 1) // bins))
    counts = [0] * (-(-(high - low + 1) // width))
    for value in ordered:
        counts[min((value - low) // width, len(counts) - 1)] += 1
    bars = [(low + index * width, count) for index, count in enumerate(counts)]
    return {"title": title, "bars": bars, "low": low, "high": high}
