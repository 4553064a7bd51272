"""Agreeability of the votes over the refreshes, for correct and incorrect answers (the paper's Fig. 3d and 3e).

Steps with no more finished summaries than c are left out: there the consensus set holds every candidate and
agreeability is 1. Wrong answers are longer, and agreeability falls as candidates grow, so the comparison at equal
numbers of summaries stands beside the one at equal refreshes (paper.md 1.7).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from eval.reporting.cells import ScoredCell
from eval.reporting.figures import house_style, save
from eval.rows import read_rows

COLOURS = {"correct": "#0072B2", "incorrect": "#D55E00"}
FEWEST = 5  # samples behind a point


@dataclass(frozen=True)
class Point:
    """Mean and standard deviation of agreeability over samples at one refresh, or at one number of summaries."""

    at: int
    mean: float
    spread: float
    samples: int


Curves = dict[str, list[Point]]


def curves(rows: Iterable[dict[str, Any]], c: int) -> tuple[Curves, Curves]:
    """Agreeability by refresh and by number of summaries.

    Parameters
    ----------
    rows : iterable of dict
        Scored samples with their ``consensus``: finished summaries, agreeability and active tokens of each refresh.
    c : int
        Size of the consensus set.

    Returns
    -------
    tuple of two dict
        For ``correct`` and ``incorrect`` the points that at least FEWEST samples reach: by the index of the refresh,
        and by the number of finished summaries (a sample counts once a number, with its mean).
    """
    by_refresh: dict[str, dict[int, list[float]]] = {kind: defaultdict(list) for kind in COLOURS}
    by_summaries: dict[str, dict[int, list[float]]] = {kind: defaultdict(list) for kind in COLOURS}
    for row in rows:
        kind = "correct" if row["status"] == "correct" else "incorrect"
        own: dict[int, list[float]] = defaultdict(list)
        steps = [(summaries, value) for summaries, value, _ in row["consensus"] if value is not None and summaries > c]
        for index, (summaries, value) in enumerate(steps):
            by_refresh[kind][index].append(value)
            own[summaries].append(value)
        for summaries, values in own.items():
            by_summaries[kind][summaries].append(fmean(values))
    return _points(by_refresh), _points(by_summaries)


def _points(groups: dict[str, dict[int, list[float]]]) -> Curves:
    return {
        kind: [
            Point(at, fmean(values), pstdev(values), len(values))
            for at, values in sorted(found.items())
            if len(values) >= FEWEST
        ]
        for kind, found in groups.items()
    }


def consensus_of(cell: ScoredCell) -> tuple[Curves, Curves]:
    """The curves of a scored cell."""
    return curves(read_rows(cell.directory / "scores.jsonl"), cell.policy["c"])


def consensus_sentence(found: tuple[Curves, Curves], paper: dict[str, Any]) -> str:
    """Compare early agreeability with the paper's statement."""
    early = paper["early_steps"]
    parts = []
    for name, kinds in zip(("at equal refreshes", "at equal numbers of summaries"), found, strict=True):
        by_place = {
            kind: {point.at: point.mean for point in points if point.at < early} for kind, points in kinds.items()
        }
        shared = by_place["correct"].keys() & by_place["incorrect"].keys()
        if shared:
            gap = fmean(by_place["correct"][at] - by_place["incorrect"][at] for at in shared)
            parts.append(f"{100 * gap:+.1f} points {name} ({len(shared)} places)")
    if not parts:
        return "Correct and incorrect answers cannot be compared: too few of one kind."
    return (
        f"Agreeability of correct minus incorrect answers over the first {early} places: {'; '.join(parts)}; "
        f"the paper finds {paper['correct_minus_incorrect_points']:+.1f} points at equal refreshes."
    )


def draw_consensus(found: tuple[Curves, Curves], stem: Path) -> list[Path]:
    """Draw mean and standard deviation, by refresh and by number of summaries."""
    plt = house_style()
    figure, axes = plt.subplots(2, 2, figsize=(6.4, 4.0), sharex="col")
    measures: tuple[tuple[str, Callable[[Point], float]], ...] = (
        ("agreeability (%)", lambda point: 100 * point.mean),
        ("standard deviation (points)", lambda point: 100 * point.spread),
    )
    for column, kinds in enumerate(found):
        for line, (label, measure) in enumerate(measures):
            for kind, points in kinds.items():
                places = [point.at for point in points]
                style = {"color": COLOURS[kind], "linestyle": "-" if kind == "correct" else "--", "label": kind}
                axes[line][column].plot(places, [measure(point) for point in points], linewidth=1.2, **style)
            axes[line][column].set_ylim(bottom=0)
            axes[line][0].set_ylabel(label)
    axes[1][0].set_xlabel("refresh (from the first with more than c summaries)")
    axes[1][1].set_xlabel("finished summaries")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=7)
    return save(figure, stem)
