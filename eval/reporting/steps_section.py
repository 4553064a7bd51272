"""The report's section on single look-ups: the newest run of eval.steps."""

from pathlib import Path

from eval.reporting import html
from eval.reporting.origins import Origin, latest_run, of_manifest
from eval.reporting.sections import Section, not_run
from eval.reporting.steps import ROWS, looking_heads, steps_table, write_steps
from pipeline import read_manifest, read_rows

ANCHOR, TITLE = "steps", "Step by step: do votes find what a step needs?"
NOTE = (
    "Teacher-forced on problems of the validation split. A look-up is right when its digits would have been; "
    "only look-ups count whose paragraph had left the window. Votes on it: the share of all votes that fell on the "
    "summary of the needed paragraph, and what that share would be if heads voted blindly."
)


def section(measured: Path, results: Path) -> tuple[Section, list[Origin]]:
    """What single look-ups say of each method, and where the numbers come from.

    Parameters
    ----------
    measured : Path
        The directory of the stage.
    results : Path
        Gets the table and the figure.

    Returns
    -------
    tuple of Section and list of Origin
        Not run, and no origin, where there is no finished run.
    """
    directory = latest_run(measured, "*")
    if directory is None:
        return not_run(ANCHOR, TITLE, "python -m eval.steps"), []
    origin = of_manifest(TITLE, f"run-{directory.name}", read_manifest(directory))
    rows = read_rows(directory / ROWS)
    _, drawing, _ = write_steps(rows, results)
    caption = (
        "Left: look-ups right, 95% bootstrap interval over problems. Right: the heads' first choices. In half of the "
        f"look-ups or more they are right for (layer, query head) {looking_heads(rows)}: method.voters."
    )
    table = [row | {"method": html.Link(row["method"], origin.anchor)} for row in steps_table(rows)]
    body = html.paragraph(NOTE, "soft") + html.figure(drawing, caption) + html.table(table)
    return Section(ANCHOR, TITLE, body), [origin]
