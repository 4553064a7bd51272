"""The methods side by side: accuracy against the active tokens, paired differences, lengths and format."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.reporting.cells import ScoredCell, groups
from eval.reporting.figures import house_style, save
from eval.reporting.names import benchmark_title, look
from eval.reporting.questions import picked, plain, verdict
from eval.reporting.sections import Figure, Heading, Mark, Part, Section, Table, Text, cell_link, not_run
from eval.reporting.tables import accuracy, as_json, problem_count
from eval.statistics import paired_difference
from pipeline import write_json

Cells = Sequence[ScoredCell]
CURVES = "python -m eval.generate -m sweep=budgets"

VARIANTS = "^sDvP<X>"  # markers of a method's further cells


def against_active(cells: Cells, curves: Cells, results: Path) -> list[Section]:
    """Accuracy against active KV tokens; `curves` are cells of baselines at budgets of their own."""
    title = "Accuracy against active KV tokens"
    missing = [] if curves else [not_run("curves", "Budget curves", CURVES)]
    if not cells:
        return [not_run("active", title, "python -m eval.generate -m sweep=methods"), *missing]
    benchmarks = sorted({cell.benchmark for cell in cells})
    counts = ", ".join(
        f"n = {problem_count([cell for cell in cells if cell.benchmark == name])} {benchmark_title(name)} problems"
        for name in benchmarks
    )
    caption = (
        f"Accuracy against active KV tokens, {counts}. Open markers keep the whole prompt; bars: 95% interval, and "
        f"from the mean to the peak.{' Lines: the same methods at other budgets.' if curves else ''} Values and their "
        "origins stand in table 1."
    )
    parts: list[Part] = [Figure(draw_against_active(cells, curves, results / "accuracy_vs_active"), caption)]
    if curves:
        parts += [Heading("Budget curves"), Table(curve_rows(curves))]
    return [Section("active", title, parts), *missing]


def curve_rows(curves: Cells) -> list[dict[str, Any]]:
    """One row a method and budget."""
    place = {id(cell): (cell.benchmark, look(cell.method).order, cell.keeps_prompt) for cell in curves}
    return [
        {"benchmark": benchmark_title(cell.benchmark), "model": cell.model["name"], "method": cell_link(cell)}
        | {"budget": cell.policy["budget"], "accuracy": accuracy(cell)}
        | {f"active, {name}": round(cell.meters[f"active_tokens_{name}"]) for name in ("mean", "peak")}
        for cell in sorted(curves, key=lambda cell: (*place[id(cell)], cell.policy["budget"]))
    ]


def draw_against_active(cells: Cells, curves: Cells, stem: Path) -> Path:
    """Draw a point a cell and a line a budget curve, one panel a benchmark; returns the SVG."""
    plt = house_style()
    benchmarks = sorted({cell.benchmark for cell in cells})
    figure, axes = plt.subplots(1, len(benchmarks), figsize=(3.6 * len(benchmarks) + 1.6, 2.9), squeeze=False)
    for axis, benchmark in zip(axes[0], benchmarks, strict=True):
        here = [cell for cell in cells if cell.benchmark == benchmark]
        draw_budget_curves(axis, [cell for cell in curves if cell.benchmark == benchmark])
        several = len({cell.model_title for cell in here}) > 1
        drawn: dict[tuple[str, bool], int] = {}
        for cell in here:
            kind = cell.method, cell.keeps_prompt
            marker = VARIANTS[drawn[kind] % len(VARIANTS)] if kind in drawn else look(cell.method).marker
            drawn[kind] = drawn.get(kind, -1) + 1
            draw_cell(axis, cell, cell.title + (f", {cell.model_title}" if several else ""), marker)
        axis.set_title(f"{benchmark_title(benchmark)}, n = {problem_count(here)}", fontsize=8)
        axis.set_xlabel("active KV tokens (mean; bar to the peak)")
        axis.set_ylim(-4, 104)
        axis.set_xlim(left=0)
    axes[0][0].set_ylabel("accuracy (%), 95% interval")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside right upper", fontsize=7)
    return save(figure, stem)


def draw_budget_curves(axis: Any, cells: Cells) -> None:
    """Draw accuracy over the budget, a line a method; dashed where the prompt is kept."""
    for method, kept in sorted({(cell.method, cell.keeps_prompt) for cell in cells}):
        line = [cell for cell in cells if (cell.method, cell.keeps_prompt) == (method, kept)]
        line.sort(key=lambda cell: cell.meters["active_tokens_mean"])
        active = [cell.meters["active_tokens_mean"] for cell in line]
        accuracy = [100 * cell.summary["accuracy"] for cell in line]
        style: Any = {"color": look(method).colour, "linewidth": 0.8, "marker": ".", "markersize": 3}
        axis.plot(active, accuracy, linestyle="--" if kept else "-", **style)


def draw_cell(axis: Any, cell: ScoredCell, label: str, marker: str) -> None:
    """Draw one cell: the marker at its mean, a bar to its peak, its interval upright; open where the prompt is kept."""
    shown, summary = look(cell.method), cell.summary
    mean, peak = cell.meters["active_tokens_mean"], cell.meters["active_tokens_peak"]
    accuracy = 100 * summary["accuracy"]
    axis.errorbar(
        mean,
        accuracy,
        xerr=[[0], [max(0.0, peak - mean)]],
        yerr=[[accuracy - 100 * summary["ci_low"]], [100 * summary["ci_high"] - accuracy]],
        color=shown.colour,
        marker=marker,
        markersize=5,
        markerfacecolor="white" if cell.keeps_prompt else shown.colour,
        linewidth=0.8,
        linestyle="none",
        label=label,
    )


def differences(cells: Cells, reference: Cells, results: Path) -> Section:
    """Every method minus ZoomR as in `reference`, paired over problems."""
    rows = [
        {"benchmark": benchmark_title(benchmark), "model": model, "minus ZoomR": cell_link(cell)} | minus(cell, zoomed)
        for (benchmark, model), here in groups(cells).items()
        for zoomed in picked([cell for cell in here if cell in reference], plain("zoomr"))
        for cell in here
        if cell is not zoomed
    ]
    if not rows:
        return not_run("differences", "Paired differences from ZoomR", "python -m eval.generate method=zoomr")
    write_json(results / "differences.json", {"rows": as_json(rows)})
    note = "Accuracy in points, paired over problems: mean, 95% bootstrap interval, p of a sign-flip permutation test."
    return Section("differences", "Paired differences from ZoomR", [Text(note, soft=True), Table(rows)])


def minus(first: ScoredCell, second: ScoredCell) -> dict[str, Any]:
    """First minus second, with the problems that only one of them solves."""
    difference = paired_difference(first.accuracy, second.accuracy)
    shared = first.accuracy.keys() & second.accuracy.keys()
    return {
        "points": difference,
        "ahead of ZoomR": Mark(verdict(difference), verdict(difference)),
        "only this higher": sum(first.accuracy[name] > second.accuracy[name] for name in shared),
        "only ZoomR higher": sum(first.accuracy[name] < second.accuracy[name] for name in shared),
        "problems": difference.n,
    }


def lengths(cells: Cells) -> Section:
    """Lengths, cap hits, repetition and adherence to the format."""
    title = "Lengths, cap hits, repetition and format"
    if not cells:
        return not_run("lengths", title, "python -m eval.generate -m sweep=methods")
    note = (
        "Balanced: at least one summary, and no delimiter without its partner. With summaries: at least one, balanced "
        "or not; a method whose answers have none had nothing to zoom into."
    )
    return Section("lengths", title, [Text(note, soft=True), Table([length_row(cell) for cell in cells])])


def length_row(cell: ScoredCell) -> dict[str, Any]:
    """How one cell's answers end, and whether they keep to the format."""
    summary, meters = cell.summary, cell.meters
    shares = {key: count / summary["n_samples"] for key, count in summary["statuses"].items()}
    shown = {
        "cap hits": shares["truncated"],
        "cap hits, repeating": summary["repetition_share"],
        "no answer": shares["unparsed"],
        "grader errors": shares["grader_error"],
        "balanced": summary["balanced_share"],
        "with summaries": summary["summarised_share"],
    }
    return {
        "benchmark": benchmark_title(cell.benchmark),
        "model": cell.model_title,
        "method": cell_link(cell),
        "generated tokens": f"{meters['generated_tokens']:.0f}",
        **{name: f"{100 * share:.1f}%" for name, share in shown.items()},
        "summaries per 1k tokens": f"{1000 * meters['summaries'] / meters['generated_tokens']:.1f}",
        "refreshes": f"{meters['refreshes']:.1f}",
        "forced": f"{meters['forced_refreshes']:.1f}",
    }
