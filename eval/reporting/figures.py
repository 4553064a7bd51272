"""Figures in one house style: colour-blind safe, vector and PNG, the same bytes for the same cells."""

from pathlib import Path
from typing import Any

from eval.reporting.cells import ScoredCell
from eval.reporting.table1 import BENCHMARKS, problem_count, title

# Okabe and Ito's palette and two of Tol's; a marker each, so that no reading depends on colour.
STYLES = {
    "full": ("#000000", "s"),
    "zoomr": ("#D55E00", "o"),
    "sumr": ("#E69F00", "D"),
    "streaming_llm": ("#0072B2", "v"),
    "h2o": ("#009E73", "^"),
    "random_zoom": ("#CC79A7", "P"),
    "recency_zoom": ("#56B4E9", "X"),
    "oracle_zoom": ("#999933", "*"),
    "given_zoom": ("#AA4499", "<"),
    "random_attention": ("#666666", "p"),
    "snapkv": ("#666666", "<"),
    "snapkv_rkv": ("#666666", ">"),
    "streaming_llm_reassigned": ("#666666", "1"),
}
OTHER = ("#666666", "h")
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


def accuracy_against_active(cells: list[ScoredCell], curves: list[ScoredCell], stem: Path) -> list[Path]:
    """Draw accuracy against the active KV tokens of every cell, one panel a benchmark.

    Parameters
    ----------
    cells : list of ScoredCell
        Cells with equal generation settings.
    curves : list of ScoredCell
        Cells of the same methods at budgets of their own, drawn as lines.
    stem : Path
        Where to write, without suffix.

    Returns
    -------
    list of Path
        The SVG and the PNG.
    """
    plt = house_style()
    benchmarks = sorted({cell.benchmark for cell in cells})
    figure, axes = plt.subplots(1, len(benchmarks), figsize=(3.6 * len(benchmarks) + 1.6, 2.9), squeeze=False)
    for axis, benchmark in zip(axes[0], benchmarks, strict=True):
        here = [cell for cell in cells if cell.benchmark == benchmark]
        draw_budget_curves(axis, [cell for cell in curves if cell.benchmark == benchmark])
        models = {cell.model_title for cell in here}
        for cell in here:
            draw_point(axis, cell, title(cell) + (f", {cell.model_title}" if len(models) > 1 else ""))
        axis.set_title(f"{BENCHMARKS.get(benchmark, benchmark)}, n = {problem_count(here)}", fontsize=8)
        axis.set_xlabel("active KV tokens (mean; bar to the peak)")
        axis.set_ylim(-4, 104)
        axis.set_xlim(left=0)
    axes[0][0].set_ylabel("accuracy (%), 95% interval")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside right upper", fontsize=7)
    return save(figure, stem)


def draw_budget_curves(axis: Any, cells: list[ScoredCell]) -> None:
    """Draw accuracy over the budget, a line a method; dashed where the prompt is kept."""
    for method, kept in sorted({(cell.method, bool(cell.policy.get("keep_prompt"))) for cell in cells}):
        line = [cell for cell in cells if (cell.method, bool(cell.policy.get("keep_prompt"))) == (method, kept)]
        line.sort(key=lambda cell: cell.summary["meters"]["active_tokens_mean"])
        active = [cell.summary["meters"]["active_tokens_mean"] for cell in line]
        accuracy = [100 * cell.summary["accuracy"] for cell in line]
        colour, _ = STYLES.get(method, OTHER)
        axis.plot(
            active, accuracy, color=colour, linewidth=0.8, linestyle="--" if kept else "-", marker=".", markersize=3
        )


def draw_point(axis: Any, cell: ScoredCell, label: str) -> None:
    """Draw one cell: the marker at its mean, a bar to its peak, its interval upright; open where the prompt is kept."""
    colour, marker = STYLES.get(cell.method, OTHER)
    summary, meters = cell.summary, cell.summary["meters"]
    mean, peak = meters["active_tokens_mean"], meters["active_tokens_peak"]
    accuracy = 100 * summary["accuracy"]
    axis.errorbar(
        mean,
        accuracy,
        xerr=[[0], [max(0.0, peak - mean)]],
        yerr=[[accuracy - 100 * summary["ci_low"]], [100 * summary["ci_high"] - accuracy]],
        color=colour,
        marker=marker,
        markersize=5,
        markerfacecolor="white" if cell.policy.get("keep_prompt") else colour,
        linewidth=0.8,
        linestyle="none",
        label=label,
    )


def house_style() -> Any:
    """Import pyplot with the house style set."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(HOUSE)
    from matplotlib import pyplot

    return pyplot


def save(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as SVG and PNG, without dates or versions in it."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_suffix(".svg"), stem.with_suffix(".png")]
    figure.savefig(paths[0], transparent=True, metadata={"Date": None, "Creator": None})
    figure.savefig(paths[1], dpi=200, metadata={"Software": None})
    house_style().close(figure)
    return paths
