"""Every method against ZoomR, paired over problems."""

from typing import Any

from eval.reporting import html
from eval.reporting.cells import ScoredCell
from eval.reporting.claims import answer, groups, picked, plain
from eval.reporting.origins import link
from eval.reporting.sections import Section, not_run
from eval.reporting.table1 import BENCHMARKS, points, title
from eval.statistics import paired_difference

TITLE = "Paired differences from ZoomR"


def section(cells: list[ScoredCell]) -> Section:
    """Every method minus ZoomR, paired over problems."""
    rows = []
    for (benchmark, model), here in groups(cells).items():
        for zoomed in picked(here, plain("zoomr")):
            for cell in here:
                if cell is not zoomed:
                    rows.append(
                        {"benchmark": BENCHMARKS.get(benchmark, benchmark), "model": model}
                        | {"minus ZoomR": link(cell, title(cell))}
                        | compared(cell, zoomed)
                    )
    if not rows:
        return not_run("differences", TITLE, "python -m eval.generate method=zoomr")
    note = "Accuracy in points, paired over problems: mean, 95% bootstrap interval, p of a sign-flip permutation test."
    return Section("differences", TITLE, html.paragraph(note, "soft") + html.table(rows))


def compared(first: ScoredCell, second: ScoredCell) -> dict[str, Any]:
    """First minus second, with the problems that only one of them solves."""
    difference = paired_difference(first.accuracy, second.accuracy)
    shared = first.accuracy.keys() & second.accuracy.keys()
    return {
        "points": points(difference),
        "ahead of ZoomR": answer(difference),
        "only this higher": sum(first.accuracy[name] > second.accuracy[name] for name in shared),
        "only ZoomR higher": sum(first.accuracy[name] < second.accuracy[name] for name in shared),
        "problems": difference.n,
    }
