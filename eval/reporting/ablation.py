"""Ablations over c and k: accuracy and active KV entries, beside what the paper says of them (its Fig. 3c and 3f)."""

from pathlib import Path
from typing import Any

from eval.reporting.cells import ScoredCell
from eval.reporting.figures import STYLES, house_style, save
from eval.reporting.table1 import NAMES, accuracy_text, points
from eval.statistics import paired_difference

METHODS = ("zoomr", "random_zoom", "recency_zoom")
KNEE = (2, 2)


def grid(cells: list[ScoredCell], method: str) -> dict[tuple[int, int], ScoredCell]:
    """Cells of a zooming method by (c, k)."""
    return {(cell.policy["c"], cell.policy["k"]): cell for cell in cells if cell.method == method}


def ablation_rows(cells: list[ScoredCell]) -> list[dict[str, Any]]:
    """One row for each c and k, compared with c=2, k=2.

    Parameters
    ----------
    cells : list of ScoredCell
        Cells of one benchmark and model with equal generation settings.

    Returns
    -------
    list of dict
        Accuracy, the paired difference in points, active entries and their ratio to those of c=2, k=2.
    """
    rows = []
    for method in METHODS:
        found = grid(cells, method)
        knee = found.get(KNEE)
        for (c, k), cell in sorted(found.items()):
            meters = cell.summary["meters"]
            row = {"method": NAMES[method], "c": c, "k": k, "accuracy": accuracy_text(cell), "difference": ""}
            row |= {"active, mean": f"{meters['active_tokens_mean']:.0f}", "active, relative": ""}
            if knee is not None:
                row["difference"] = points(paired_difference(cell.accuracy, knee.accuracy))
                share = meters["active_tokens_mean"] / knee.summary["meters"]["active_tokens_mean"]
                row["active, relative"] = f"{100 * (share - 1):+.0f}%"
            rows.append(row)
    return rows


def shape_sentences(cells: list[ScoredCell], paper: dict[str, Any]) -> list[str]:
    """Compare the shapes of the ablations with the paper's statements.

    Parameters
    ----------
    cells : list of ScoredCell
        Cells of one benchmark and model.
    paper : dict
        ``ablations`` of results/paper.yaml.

    Returns
    -------
    list of str
        One sentence for each step of c and k that was run.
    """
    found = grid(cells, "zoomr")
    steps = (
        ((1, 2), (2, 2), f"c=1 against c=2 (paper: about {paper['c1_vs_c2_points']} points)"),
        (
            (4, 2),
            (2, 2),
            f"c=4 against c=2 (paper: about +{paper['c_above_2_points']} for {paper['c_above_2_selected_kv']} KVs)",
        ),
        ((2, 1), (2, 2), f"k=1 against k=2 (paper: close to {paper['k1_vs_k2_points']} points)"),
        ((2, 4), (2, 2), f"k=4 against k=2 (paper: {paper['k_above_2']})"),
    )
    sentences = []
    for first, second, text in steps:
        if first in found and second in found:
            one, other = found[first], found[second]
            share = one.summary["meters"]["active_tokens_mean"] / other.summary["meters"]["active_tokens_mean"]
            difference = points(paired_difference(one.accuracy, other.accuracy))
            sentences.append(f"{text}: {difference} points with {100 * (share - 1):+.0f}% active entries.")
    return sentences


def draw_ablation(cells: list[ScoredCell], stem: Path) -> list[Path]:
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
            colour, marker = STYLES[method]
            style: Any = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1, "label": NAMES[method]}
            accuracy = [100 * cell.summary["accuracy"] for _, cell in line]
            below = [100 * (cell.summary["accuracy"] - cell.summary["ci_low"]) for _, cell in line]
            above = [100 * (cell.summary["ci_high"] - cell.summary["accuracy"]) for _, cell in line]
            values = [value for value, _ in line]
            axes[0][column].errorbar(values, accuracy, yerr=[below, above], **style)
            active = [cell.summary["meters"]["active_tokens_mean"] for _, cell in line]
            axes[1][column].plot(values, active, **style)
        axes[0][column].set_title(
            f"over {name} ({fixed}), n = {max(c.summary['n_problems'] for c in cells)}", fontsize=8
        )
        axes[1][column].set_xlabel(name)
        axes[1][column].set_xticks(sorted({pair[column] for pair in grid(cells, "zoomr")}))
    axes[1][0].margins(y=0.15)
    axes[1][0].autoscale_view()
    axes[1][0].set_ylim(bottom=0)
    axes[0][0].set_ylabel("accuracy (%), 95% interval")
    axes[1][0].set_ylabel("active KV (mean)")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=7)
    return save(figure, stem)
