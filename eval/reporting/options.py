"""ZoomR with one setting changed: what the paper leaves open, and the window, beside ZoomR as in table 1."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.reporting import html
from eval.reporting.ablation import KNEE
from eval.reporting.cells import ScoredCell
from eval.reporting.claims import groups
from eval.reporting.origins import link
from eval.reporting.sections import Section, not_run
from eval.reporting.table1 import BENCHMARKS, NAMES, accuracy_text, markdown, points
from eval.statistics import paired_difference
from pipeline import write_atomic

CONTROLS = ("random_zoom", "recency_zoom", "sumr")
TITLE = "What the paper leaves open, and the window"


def section(cells: list[ScoredCell], reference: dict[str, Any], results: Path) -> Section:
    """ZoomR's cells that differ from the reference in more than c and k.

    Parameters
    ----------
    cells : list of ScoredCell
        Cells of equal generation settings.
    reference : dict
        Settings of ZoomR in table 1.
    results : Path
        Gets options.md.

    Returns
    -------
    Section
        Not run where there is no such cell beside one of the reference.
    """
    rows = []
    for (benchmark, model), here in groups(cells).items():
        zoomed = [(changes(cell, reference), cell) for cell in here if cell.method == "zoomr"]
        plain = next((cell for changed, cell in zoomed if not changed), None)
        if plain is not None:
            head = {"benchmark": BENCHMARKS.get(benchmark, benchmark), "model": model}
            others = [(changed, cell) for changed, cell in zoomed if changed.keys() - {"c", "k"}]
            controls = [cell for cell in here if cell.method in CONTROLS and not changes(cell, reference)]
            rows += [head | row(changed, cell, plain, controls) for changed, cell in others]
    if not rows:
        return not_run("options", TITLE, "python -m eval.generate -m sweep=ambiguities")
    note = (
        f"ZoomR with c = {KNEE[0]} and k = {KNEE[1]} where nothing else is said; minus ZoomR as in table 1, in points, "
        "paired over problems; so are the differences from the controls."
    )
    write_atomic(results / "options.md", f"# {TITLE}\n\n{note}\n\n{markdown(rows)}")
    return Section("options", TITLE, html.paragraph(note, "soft") + html.table(rows))


def changes(cell: ScoredCell, reference: dict[str, Any]) -> dict[str, Any]:
    """Settings of a cell's policy that are not the reference's."""
    return {key: value for key, value in cell.policy.items() if key in reference and value != reference[key]}


def row(changed: dict[str, Any], cell: ScoredCell, plain: ScoredCell, controls: Sequence[ScoredCell]) -> dict[str, Any]:
    """One line of the table."""
    meters, others = cell.summary["meters"], plain.summary["meters"]
    share = meters["active_tokens_peak"] / others["active_tokens_peak"]
    words = [key.replace("_", " ") + ("" if value is True else f" {value}") for key, value in changed.items()]
    return {
        "ZoomR with": link(cell, ", ".join(words)),
        "accuracy": accuracy_text(cell),
        "minus ZoomR": points(paired_difference(cell.accuracy, plain.accuracy)),
        "active, peak": f"{meters['active_tokens_peak']:.0f}",
        "relative": f"{100 * (share - 1):+.0f}%",
        "saving": f"{meters['kv_saving']:.2f}x",
    } | {f"minus {NAMES[other.method]}": points(paired_difference(cell.accuracy, other.accuracy)) for other in controls}
