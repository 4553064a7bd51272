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
from eval.reporting.figures import BLUE, RED, house_style, save
from eval.reporting.names import benchmark_title
from eval.reporting.sections import Figure, Section, Text, not_run, sources

COLOURS = {"correct": BLUE, "incorrect": RED}
FEWEST = 5  # samples behind a point
TITLE = "Fig. 3d, e: agreeability"


@dataclass(frozen=True)
class CurvePoint:
    """Mean and standard deviation of agreeability over samples at one refresh, or at one number of summaries."""

    at: int
    mean: float
    spread: float
    samples: int


Curves = dict[str, list[CurvePoint]]


def section(cells: list[ScoredCell], paper: dict[str, Any], results: Path) -> Section:
    """Agreeability of the first ZoomR cell that has samples with more than c summaries."""
    for cell in cells:
        found = curves_of(cell) if cell.method == "zoomr" else ({}, {})
        if any(found[0].values()):
            svg = draw_agreeability(found, cell.policy["c"], paper["consensus"], results / "agreeability")
            statuses = cell.summary["statuses"]
            caption = (
                "Share of the votes that fell on the consensus set, mean and standard deviation over samples, "
                f"{benchmark_title(cell.benchmark)}: n = {statuses['correct']} correct, "
                f"{cell.summary['n_samples'] - statuses['correct']} incorrect. Steps with no more than c summaries are "
                f"left out; a point has at least {FEWEST} samples. Right: at equal numbers of summaries."
            )
            sentences = map(Text, agreeability_sentences(found, paper["consensus"]))
            return Section("fig3d", TITLE, [*sentences, Figure(svg, caption), sources([cell])])
    return not_run("fig3d", TITLE, "python -m eval.generate method=zoomr")


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
            CurvePoint(at, fmean(values), pstdev(values), len(values))
            for at, values in sorted(found.items())
            if len(values) >= FEWEST
        ]
        for kind, found in groups.items()
    }


def curves_of(cell: ScoredCell) -> tuple[Curves, Curves]:
    """The curves of a scored cell."""
    return curves(cell.scores(), cell.policy["c"])


def agreeability_sentences(found: tuple[Curves, Curves], paper: dict[str, Any]) -> list[str]:
    """Compare early agreeability and its spread with the paper's statements."""
    early = paper["early_steps"]
    parts = [
        f"{100 * gap[0]:+z.1f} points {name} ({gap[1]} places)"
        for name, kinds in zip(("at equal refreshes", "at equal numbers of summaries"), found, strict=True)
        if (gap := early_gap(kinds, early)) is not None
    ]
    if not parts:
        return ["Correct and incorrect answers cannot be compared: too few of one kind."]
    spread = {kind: 100 * fmean(point.spread for point in points) for kind, points in found[0].items()}
    return [
        f"Agreeability of correct minus incorrect answers over the first {early} places: {'; '.join(parts)}; "
        f"the paper finds {paper['correct_minus_incorrect_points']:+.1f} points at equal refreshes.",
        f"Its standard deviation over samples, mean of all refreshes: {spread['correct']:.1f} points for correct and "
        f"{spread['incorrect']:.1f} for incorrect answers; the paper finds {paper['std_correct']} and "
        f"{paper['std_incorrect']}.",
    ]


def early_gap(kinds: Curves, early: int) -> tuple[float, int] | None:
    """Mean of correct minus incorrect over the places before ``early`` that both have, and the number of these."""
    places = {kind: {point.at: point.mean for point in points if point.at < early} for kind, points in kinds.items()}
    shared = places["correct"].keys() & places["incorrect"].keys()
    if not shared:
        return None
    return fmean(places["correct"][at] - places["incorrect"][at] for at in shared), len(shared)


def draw_agreeability(found: tuple[Curves, Curves], c: int, paper: dict[str, Any], stem: Path) -> Path:
    """Draw mean and standard deviation, by refresh and by number of summaries.

    Dotted at the left: the refresh at which the paper's curves cross; at the right: agreeability if votes were spread
    evenly, c over the number of summaries (paper.md 1.7).
    """
    plt = house_style()
    figure, axes = plt.subplots(2, 2, figsize=(6.4, 4.0), sharex="col", sharey="row")
    values: tuple[tuple[str, Callable[[CurvePoint], float]], ...] = (
        ("agreeability (%)", lambda point: 100 * point.mean),
        ("standard deviation (points)", lambda point: 100 * point.spread),
    )
    for column, kinds in enumerate(found):
        for line, (label, value) in enumerate(values):
            for kind, points in kinds.items():
                places = [point.at for point in points]
                style: Any = {"color": COLOURS[kind], "linestyle": "-" if kind == "correct" else "--", "label": kind}
                axes[line][column].plot(places, [value(point) for point in points], linewidth=1.2, **style)
            axes[line][0].set_ylabel(label)
    draw_guides(axes, found, c, paper["early_steps"])
    for axis in axes[:, 0]:
        axis.set_ylim(bottom=0)
    axes[1][0].set_xlabel("refresh (from the first with more than c summaries)")
    axes[1][1].set_xlabel("finished summaries")
    named = {label: line for axis in axes.flat for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(list(named.values()), list(named), loc="outside upper center", ncols=4, fontsize=7)
    return save(figure, stem)


def draw_guides(axes: Any, found: tuple[Curves, Curves], c: int, crossing: int) -> None:
    """Draw where the paper's curves cross, and what evenly spread votes would give."""
    style: Any = {"color": "#808080", "linewidth": 1}
    for axis in axes[:, 0]:
        if axis.get_xlim()[1] > crossing:
            axis.axvline(crossing, linestyle=":", label="the paper's curves cross", **style)
    places = sorted({point.at for points in found[1].values() for point in points})
    evenly = [100 * c / at for at in places]
    axes[0][1].plot(places, evenly, linestyle="-.", label="votes spread evenly", **style)
