"""The summary of one cell: accuracy with its interval, what became of the samples, and what they cost."""

from collections import Counter
from collections.abc import Iterable
from statistics import fmean
from typing import Any

from eval.grading.grade import STATUSES
from eval.statistics import majority, share_interval
from train.format import keeps_format

METERS = (
    "prompt_tokens",
    "generated_tokens",
    "seen_tokens",
    "active_tokens_mean",
    "active_tokens_peak",
    "refreshes",
    "forced_refreshes",
    "summaries",
    "tokens_per_s",
)


def by_problem(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Group rows by problem, in order of appearance."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["problem"], []).append(row)
    return groups


def problem_accuracy(scores: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Share of correct samples per problem, of those present."""
    return {problem: fmean(row["status"] == "correct" for row in rows) for problem, rows in by_problem(scores).items()}


def grades(scores: list[dict[str, Any]]) -> dict[str, Any]:
    """What the scores of a cell say: counts, pass@1 with its bootstrap interval over problems, maj@n, statuses."""
    accuracy = share_interval(list(problem_accuracy(scores).values()))
    votes = [
        majority([(row["answer"], row["status"] == "correct") for row in rows]) for rows in by_problem(scores).values()
    ]
    counts = Counter(row["status"] for row in scores)
    return {
        "n_problems": len(votes),
        "n_samples": len(scores),
        "accuracy": accuracy.mean,
        "ci_low": accuracy.low,
        "ci_high": accuracy.high,
        "majority": fmean(votes),
        "statuses": {status: counts[status] for status in STATUSES},
    }


def summarize(samples: list[dict[str, Any]], scores: list[dict[str, Any]], expected: int) -> dict[str, Any]:
    """Summarise a cell.

    Parameters
    ----------
    samples : list of dict
        The generated rows with their meters.
    scores : list of dict
        Their grades, in the same order.
    expected : int
        Number of samples that the cell asks for.

    Returns
    -------
    dict
        What `grades` says, the shares of samples that keep to the format and that have a summary at all, and the means
        over problems of the meters. ``active_tokens_peak`` is the mean of the samples' peaks.
    """
    groups = by_problem(samples)
    means = {key: fmean(fmean(row[key] for row in rows) for rows in groups.values()) for key in METERS}
    return grades(scores) | {
        "expected_samples": expected,
        "repetition_share": fmean(row["status"] == "repetition" for row in samples),
        "balanced_share": fmean(keeps_format(row["balanced"], row["summaries"]) for row in samples),
        "summarised_share": fmean(row["summaries"] > 0 for row in samples),
        "meters": means,
    }
