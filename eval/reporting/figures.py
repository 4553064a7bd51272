"""The house style of figures: colour-blind safe, vector and PNG, the same bytes for the same cells."""

from pathlib import Path
from typing import Any

HOUSE: Any = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "svg.hashsalt": "zoomr",
    "figure.constrained_layout.use": True,
}
# Of what is no method: Okabe and Ito's blue, vermilion and green.
BLUE, RED, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"


def house_style() -> Any:
    """Import pyplot with the house style set."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(HOUSE)
    from matplotlib import pyplot

    return pyplot


def save(figure: Any, stem: Path) -> Path:
    """Write a figure as SVG and PNG, without dates or versions in it; returns the SVG."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(stem.with_suffix(".svg"), transparent=True, metadata={"Date": None, "Creator": None})
    figure.savefig(stem.with_suffix(".png"), dpi=200, metadata={"Software": None})
    house_style().close(figure)
    return stem.with_suffix(".svg")
