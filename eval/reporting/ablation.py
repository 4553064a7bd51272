"""Ablations over c and k: accuracy and active KV entries, beside what the paper says of them (its Fig. 3c and 3f)."""

from pathlib import Path
from typing import Any

from eval.reporting.cells import ScoredCell
from eval.reporting.figures import house_style, save
from eval.reporting.names import benchmark_title, look
from eval.reporting.options import options
from eval.reporting.questions import verdict
from eval.reporting.sections import Figure, Link, Section, Table, Text, cell_link, not_run
from eval.reporting.tables import accuracy, as_json, markdown, problem_count
from eval.statistics import paired_difference
from pipeline import write_atomic, write_json

METHODS = ("zoomr", "random_zoom", "recency_zoom")
KNEE = (2, 2)
TITLE = "Fig. 3c, f: ablations over c and k"


def section(cells: list[ScoredCell], paper: dict[str, Any], results: Path) -> Section:
    """The ablations of the benchmark and model with the most pairs of c and k; `cells` differ in these two only."""
    zoomed = [(cell.benchmark, cell.model["name"]) for cell in cells if cell.method == "zoomr"]
    widest = max(sorted(set(zoomed)), key=zoomed.count, default=None)
    if widest is None or zoomed.count(widest) < 2:
        return not_run("fig3c", TITLE, "python -m eval.generate -m sweep=c_k")
    here = [cell for cell in cells if (cell.benchmark, cell.model["name"]) == widest and cell.method in METHODS]
    rows, sentences = ablation_rows(here), shape_sentences(here, paper["ablations"])
    text = "".join(f"- {sentence}\n" for sentence in sentences)
    write_json(results / "ablation.json", {"rows": as_json(rows)})
    write_atomic(results / "ablation.md", f"# Ablations over c and k\n\n{text}\n{markdown(rows)}")
    caption = (
        f"Accuracy and active KV tokens over c and k, n = {problem_count(here)} "
        f"{benchmark_title(widest[0])} problems; random and recency zoom as controls. The values and their "
        "origins stand in the table."
    )
    figure = Figure(draw_ablation(here, results / "ablation"), caption)
    return Section("fig3c", TITLE, [*map(Text, sentences), figure, Table(rows)])


def grid(cells: list[ScoredCell], method: str) -> dict[tuple[int, int], ScoredCell]:
    """Cells of a zooming method by (c, k)."""
    return {(cell.policy["c"], cell.policy["k"]): cell for cell in cells if cell.method == method}


def ablation_rows(cells: list[ScoredCell]) -> list[dict[str, Any]]:
    """One row a method, c and k: accuracy and active entries, and both beside those of c=2, k=2."""
    rows = []
    for method in METHODS:
        found = grid(cells, method)
        knee = found.get(KNEE)
        for (c, k), cell in sorted(found.items()):
            meters = cell.meters
            row: dict[str, Any] = {
                "method": Link(look(method).title, cell_link(cell).anchor),
                "c": c,
                "k": k,
                "accuracy": accuracy(cell),
                "difference": "",
            }
            row |= {"active, mean": round(meters["active_tokens_mean"]), "active, relative": ""}
            if knee is not None:
                row["difference"] = paired_difference(cell.accuracy, knee.accuracy)
                share = meters["active_tokens_mean"] / knee.meters["active_tokens_mean"]
                row["active, relative"] = f"{100 * (share - 1):+.0f}%"
            rows.append(row)
    return rows


def shape_sentences(cells: list[ScoredCell], paper: dict[str, Any]) -> list[str]:
    """One sentence for each step of c and k that was run, beside `ablations` of results/paper.yaml; the last counts."""
    found = grid(cells, "zoomr")
    above = f"about +{paper['c_above_2_points']} for {paper['c_above_2_selected_kv']} KVs"
    steps = (
        ((1, 2), "c=1 against c=2", f"about {paper['c1_vs_c2_points']} points", paper["c1_vs_c2_points"]),
        ((4, 2), "c=4 against c=2", above, paper["c_above_2_points"]),
        ((2, 1), "k=1 against k=2", f"close to {paper['k1_vs_k2_points']} points", paper["k1_vs_k2_points"]),
        ((2, 4), "k=4 against k=2", paper["k_above_2"], 0),
    )
    sentences = []
    for pair, text, theirs, sign in steps:
        if pair in found and KNEE in found:
            one, knee = found[pair], found[KNEE]
            share = one.meters["active_tokens_mean"] / knee.meters["active_tokens_mean"]
            difference = paired_difference(one.accuracy, knee.accuracy)
            opposite = sign and verdict(difference) == ("no" if sign > 0 else "yes")
            reverse = "; the other way round than in the paper" if opposite else ""
            sentences.append(
                f"{text} (paper: {theirs}): {difference}{reverse}; active entries {100 * (share - 1):+.0f}%."
            )
    pairs = {(settings["c"], settings["k"]) for _, settings in options("c_k")}
    return [*sentences, f"Of the {len(pairs)} pairs of sweep=c_k, {len(pairs & found.keys())} were run with ZoomR."]


def draw_ablation(cells: list[ScoredCell], stem: Path) -> Path:
    """Draw accuracy and active entries over c (k=2) and over k (c=2), with random and recency zoom as controls."""
    plt = house_style()
    figure, axes = plt.subplots(2, 2, figsize=(6.4, 4.0), sharex="col", sharey="row", height_ratios=(2, 1))
    for column, (name, fixed) in enumerate((("c", "k = 2"), ("k", "c = 2"))):
        for method in METHODS:
            line = [
                (pair[column], cell)
                for pair, cell in sorted(grid(cells, method).items())
                if pair[1 - column] == KNEE[1]
            ]
            if not line:
                continue
            shown = look(method)
            style: Any = {"color": shown.colour, "marker": shown.marker, "markersize": 4, "linewidth": 1}
            style["label"] = shown.title
            accuracy = [100 * cell.summary["accuracy"] for _, cell in line]
            below = [100 * (cell.summary["accuracy"] - cell.summary["ci_low"]) for _, cell in line]
            above = [100 * (cell.summary["ci_high"] - cell.summary["accuracy"]) for _, cell in line]
            values = [value for value, _ in line]
            axes[0][column].errorbar(values, accuracy, yerr=[below, above], **style)
            active = [cell.meters["active_tokens_mean"] for _, cell in line]
            axes[1][column].plot(values, active, **style)
        axes[0][column].set_title(f"over {name} ({fixed}), n = {problem_count(cells)}", fontsize=8)
        axes[1][column].set_xlabel(name)
        axes[1][column].set_xticks(sorted({pair[column] for pair in grid(cells, "zoomr")}))
    axes[1][0].set_ylim(0, 1.15 * max(cell.meters["active_tokens_mean"] for cell in cells))
    axes[0][0].set_ylabel("accuracy (%), 95% interval")
    axes[1][0].set_ylabel("active KV (mean)")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=7)
    return save(figure, stem)
