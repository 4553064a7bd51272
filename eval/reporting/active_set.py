"""The active set over a whole sample, the paper's Fig. 2 made real, and the viewer's page of that sample."""

from pathlib import Path
from typing import Any

import numpy as np

from eval.reporting.cells import ScoredCell
from eval.reporting.figures import house_style, save
from eval.reporting.sections import Figure, Section, Text, not_run, sources
from eval.view import render
from pipeline import write_atomic

TITLE = "Fig. 2: the active set of one sample"
PAGE = "trace.html"
# A kind's place in the list is its value in the map; tokens to come are transparent, so that night and day both do.
KINDS = ("not yet generated", "absent", "window and since the refresh", "summary", "zoomed paragraph", "prompt")
COLOURS = ("#00000000", "#8080802E", "#56B4E9", "#E0A000", "#D55E00", "#808080")
LARGEST = (400, 1600)  # refreshes and tokens of the picture; a longer sample is thinned out


def section(cells: list[ScoredCell], generated: Path, results: Path) -> Section:
    """The first sample of the first ZoomR cell that keeps its refreshes, and the viewer's page of it."""
    for cell in cells:
        row = traced(generated, cell) if cell.method == "zoomr" else None
        if row is not None:
            settings = cell.summary["settings"]
            write_atomic(results / PAGE, render(row, settings))
            kinds = active_set(row["trace"], settings["method"]["policy"])
            caption = (
                f"What each refresh leaves on the device: sample {row['problem']}, {row['refreshes']} refreshes over "
                f"{row['seen_tokens']} tokens, an answer that is {verdict(cell, row['id'])}."
            )
            lead = Text("Walk through this sample: its text, the votes, and every refresh.", path=PAGE)
            figure = Figure(draw_active_set(kinds, results / "active_set"), caption)
            return Section("fig2", TITLE, [lead, figure, sources([cell])])
    return not_run("fig2", TITLE, "python -m eval.generate method=zoomr traces=3")


def traced(generated: Path, cell: ScoredCell) -> dict[str, Any] | None:
    """The first sample of a cell that has refreshes to show."""
    return next((row for row in cell.samples(generated) if row.get("trace", {}).get("refreshes")), None)


def verdict(cell: ScoredCell, sample: str) -> str:
    """What the grader says of a sample."""
    return str(next(row["status"] for row in cell.scores() if row["id"] == sample))


def active_set(trace: dict[str, Any], policy: dict[str, Any]) -> np.ndarray:
    """What becomes of each token at each refresh.

    Parameters
    ----------
    trace : dict
        The ``trace`` of a row: edges of the segments, and the refreshes.
    policy : dict
        Settings of the method.

    Returns
    -------
    np.ndarray
        (refreshes, tokens), indices into KINDS. A row holds from its refresh up to the next.
    """
    edges, total = trace["edges"], len(trace["pieces"])
    positions = [refresh["position"] for refresh in trace["refreshes"]]
    kinds = np.zeros((len(positions), total), dtype=np.uint8)
    for line, (refresh, begin, end) in enumerate(
        zip(trace["refreshes"], positions, [*positions[1:], total], strict=True)
    ):
        kinds[line, :end] = KINDS.index("absent")
        kinds[line, max(0, begin - policy["window"]) : end] = KINDS.index("window and since the refresh")
        for index in refresh["shown"]:
            kinds[line, edges[2 * index + 1] : edges[2 * index + 2]] = KINDS.index("summary")
        for index in refresh["zoomed"]:
            kinds[line, edges[2 * index] : edges[2 * index + 1]] = KINDS.index("zoomed paragraph")
        kinds[line, : trace["prompt_tokens"]] = KINDS.index("prompt")
    return kinds


def draw_active_set(kinds: np.ndarray, stem: Path) -> Path:
    """Draw tokens across and refreshes down."""
    plt = house_style()
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    figure, axis = plt.subplots(figsize=(6.4, 3.2))
    refreshes, tokens = kinds.shape
    thin = tuple(-(-size // most) for size, most in zip(kinds.shape, LARGEST, strict=True))
    axis.imshow(
        kinds[:: thin[0], :: thin[1]],
        cmap=ListedColormap(list(COLOURS)),
        vmin=-0.5,
        vmax=len(KINDS) - 0.5,
        aspect="auto",
        interpolation="nearest",
        extent=(0, tokens, refreshes + 0.5, 0.5),
    )
    axis.grid(False)
    axis.set_xlabel("tokens seen")
    axis.set_ylabel("refresh")
    patches = [Patch(facecolor=colour, label=kind) for kind, colour in zip(KINDS, COLOURS, strict=True)][:0:-1]
    figure.legend(handles=patches, loc="outside upper center", ncols=5, fontsize=7, handlelength=1)
    return save(figure, stem)
