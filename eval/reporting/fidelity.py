"""Fidelity to the full cache: a table and a figure of eval.fidelity's rows."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from eval.reporting.csv_table import to_csv
from eval.reporting.figures import OTHER, STYLES, house_style, save
from eval.reporting.table1 import method_name
from eval.reporting.variants import against, draw_variants
from eval.statistics import bootstrap
from pipeline import write_atomic

ROWS = "rows.jsonl"
Row = dict[str, Any]
Cell = tuple[str, int | None]


def write_fidelity(rows: Sequence[Row], manifest: dict[str, Any], results: Path) -> list[Path]:
    """Write `<name>.csv` and the figure of a finished run: curves over budgets, or differences at a single one.

    Parameters
    ----------
    rows : sequence of dict
        Of the run.
    manifest : dict
        Of the run.
    results : Path
        Where tables and figures go.

    Returns
    -------
    list of Path
        What was written.
    """
    settings = manifest["settings"]
    stem = results / settings["fidelity"]["name"]
    table = stem.with_suffix(".csv")
    note = {"note": manifest["config"]["model"].get("note", "")}
    write_atomic(table, to_csv([csv_row(line | note) for line in fidelity_table(rows, settings["model"])]))
    if len({row["window"] for row in rows if row["window"]}) > 1:
        return [table, *draw_fidelity(rows, stem)]
    variants = {method: found for (method, window), found in cells(rows).items() if window}
    return [table, *draw_variants(variants, settings["fidelity"]["match"]["method"], stem)]


def cells(rows: Sequence[Row]) -> dict[Cell, list[Row]]:
    """Rows by method and window, from the smallest window on; else in the order of their first appearance."""
    groups: dict[Cell, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["window"] or 0):
        groups.setdefault((row["method"], row["window"]), []).append(row)
    return groups


def fidelity_table(rows: Sequence[Row], model: dict[str, Any]) -> list[Row]:
    """One row a method and budget: means over traces, with 95% bootstrap intervals of the added NLL.

    Parameters
    ----------
    rows : sequence of dict
        One a trace, method and window.
    model : dict
        What identifies the model.
    """
    table = []
    grouped = cells(rows)
    for (method, window), found in grouped.items():
        added = bootstrap([row["delta_nll"] for row in found])
        budgets = [row["policy"]["budget"] for row in found if "budget" in row["policy"]]
        policy = {key: value for key, value in found[0]["policy"].items() if key not in ("budget", "_target_")}
        # With a budget the count is of evictions, which come with every token.
        gaps = [row["tokens"] / row["refreshes"] for row in found if row["refreshes"] and "budget" not in row["policy"]]
        table.append(
            {
                "model": f"{model['name']} ({model['checkpoint']})",
                "method": method,
                "settings": json.dumps(policy, sort_keys=True),
                "budget": f"{fmean(budgets):.0f} tokens" if budgets else f"window {window}" if window else "",
                "active_tokens_mean": fmean(row["active_tokens_mean"] for row in found),
                "delta_nll": added.mean,
                "ci_low": added.low,
                "ci_high": added.high,
                "kl": fmean(row["kl"] for row in found),
                "top1_agreement": fmean(row["top1_agreement"] for row in found),
                "n_traces": len(found),
                "seen_tokens_mean": fmean(row["seen_tokens"] for row in found),
                "refresh_gap": fmean(gaps) if gaps else None,
            }
            | active_columns(found)
            | difference_columns(found, grouped.get(("zoomr", window), []))
        )
    return table


def difference_columns(found: Sequence[Row], zoomed: Sequence[Row]) -> dict[str, float | None]:
    """Added NLL minus ZoomR's with the same window, paired over traces; None for ZoomR itself and the full cache."""
    names = ("minus_zoomr", "minus_zoomr_low", "minus_zoomr_high")
    difference = None if zoomed is found else against(found, zoomed)
    if difference is None:
        return dict.fromkeys(names)
    return dict(zip(names, (difference.mean, difference.low, difference.high), strict=True))


def active_columns(found: Sequence[Row]) -> dict[str, float | None]:
    """Mean active tokens at each number of seen tokens, over the traces that are so long."""
    columns: dict[str, float | None] = {}
    for seen in dict.fromkeys(seen for row in found for seen in row["active_at"]):
        sizes = [row["active_at"][seen] for row in found if row["active_at"].get(seen) is not None]
        columns[f"active_at_{seen}"] = fmean(sizes) if sizes else None
    return columns


def csv_row(line: Row) -> Row:
    """A line of the table with figures of six digits."""
    return {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in line.items()}


def ranking(rows: Sequence[Row]) -> list[Cell]:
    """Methods at their budgets, from the least added NLL on; the full cache left out."""
    added = {cell: fmean(row["delta_nll"] for row in found) for cell, found in cells(rows).items() if cell[1]}
    return sorted(added, key=lambda cell: added[cell])


def halves_sentence(rows: Sequence[Row]) -> str:
    """Whether two disjoint halves of the traces order the methods alike: Spearman's rank correlation."""
    traces = list(dict.fromkeys(row["trace"] for row in rows))
    if len(traces) < 2:
        return "One trace cannot be halved."
    even = set(traces[::2])
    first = ranking([row for row in rows if row["trace"] in even])
    second = ranking([row for row in rows if row["trace"] not in even])
    n = len(first)
    if n < 2:
        return "One method has no order."
    distance = sum((place - second.index(cell)) ** 2 for place, cell in enumerate(first))
    rho = 1 - 6 * distance / (n * (n**2 - 1))
    return (
        f"Two disjoint halves of the {len(traces)} traces order the {n} methods and budgets with a rank correlation of "
        f"{rho:.2f}."
    )


def draw_fidelity(rows: Sequence[Row], stem: Path) -> list[Path]:
    """Draw added NLL and KL divergence against the mean active tokens, a line a method."""
    plt = house_style()
    figure, axes = plt.subplots(1, 2, figsize=(6.8, 2.9))
    lines = fidelity_table([row for row in rows if row["window"]], {"name": "", "checkpoint": ""})
    for method in dict.fromkeys(line["method"] for line in lines):
        own = sorted((line for line in lines if line["method"] == method), key=lambda line: line["active_tokens_mean"])
        colour, marker = STYLES.get(method.removesuffix("_prompt"), OTHER)
        filled = "white" if method.endswith("_prompt") else colour
        style: Any = {"color": colour, "marker": marker, "markersize": 4, "markerfacecolor": filled, "linewidth": 0.8}
        active = [line["active_tokens_mean"] for line in own]
        below = [line["delta_nll"] - line["ci_low"] for line in own]
        above = [line["ci_high"] - line["delta_nll"] for line in own]
        added = [line["delta_nll"] for line in own]
        axes[0].errorbar(active, added, yerr=[below, above], label=method_name(method), **style)
        axes[1].plot(active, [line["kl"] for line in own], **style)
    traces = len({row["trace"] for row in rows})
    axes[0].set_ylabel(f"added NLL (nats a token), n = {traces}")
    axes[1].set_ylabel("KL(full, policy) (nats a token)")
    for axis in axes:
        axis.set_xlabel("active KV tokens, mean")
        axis.set_xlim(left=0)
        axis.set_ylim(bottom=0)
    axes[0].set_ylim(auto=True)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=7)
    return save(figure, stem)
