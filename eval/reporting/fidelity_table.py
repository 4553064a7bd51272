"""The rows of eval.fidelity by method and window: the table of their means, and its two figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from eval.reporting.figures import GREY, RED, house_style, save
from eval.reporting.names import look, title_of
from eval.statistics import Difference, mean_interval, paired_difference

Row = dict[str, Any]
Groups = dict[tuple[str, int | None], list[Row]]


def grouped(rows: Sequence[Row]) -> Groups:
    """Rows by method and window, from the smallest window on; else in the order of their first appearance."""
    groups: Groups = {}
    for row in sorted(rows, key=lambda row: row["window"] or 0):
        groups.setdefault((row["method"], row["window"]), []).append(row)
    return groups


def fidelity_table(rows: Sequence[Row]) -> list[Row]:
    """One row a method and window: means over traces, with 95% bootstrap intervals.

    Parameters
    ----------
    rows : sequence of dict
        One a trace, method and window.

    Returns
    -------
    list of dict
        ``minus_zoomr`` is paired over traces with ZoomR at the same window; None for ZoomR and for the full cache.
    """
    groups = grouped(rows)
    return [group_row(*key, found, groups.get(("zoomr", key[1]), [])) for key, found in groups.items()]


def group_row(method: str, window: int | None, found: Sequence[Row], zoomed: Sequence[Row]) -> Row:
    """The row of one method at one window."""
    added = mean_interval([row["delta_nll"] for row in found])
    budgets = [row["policy"]["budget"] for row in found if "budget" in row["policy"]]
    # With a budget the count is of evictions, which come with every token.
    gaps = [row["tokens"] / row["refreshes"] for row in found if row["refreshes"] and not budgets]
    difference = None if zoomed is found else against(found, zoomed)
    means = {key: fmean(row[key] for row in found) for key in ("active_tokens_mean", "active_tokens_peak")}
    return {
        "method": method,
        "settings": {key: value for key, value in found[0]["policy"].items() if key not in ("budget", "_target_")},
        "window": window,
        "budget": fmean(budgets) if budgets else None,
        **means,
        "delta_nll": added.mean,
        "ci_low": added.low,
        "ci_high": added.high,
        **{key: fmean(row[key] for row in found) for key in ("kl", "top1_agreement")},
        "n_traces": len(found),
        "seen_tokens_mean": fmean(row["seen_tokens"] for row in found),
        "refresh_gap": fmean(gaps) if gaps else None,
        **active_at(found),
        "minus_zoomr": difference and difference.mean,
        "minus_zoomr_low": difference and difference.low,
        "minus_zoomr_high": difference and difference.high,
    }


def against(found: Sequence[Row], others: Sequence[Row]) -> Difference | None:
    """Paired difference of the added NLL over the traces that both have; None where they share none."""
    one, other = ({row["trace"]: row["delta_nll"] for row in group} for group in (found, others))
    return paired_difference(one, other) if one.keys() & other.keys() else None


def active_at(found: Sequence[Row]) -> dict[str, float | None]:
    """Mean active tokens at each number of seen tokens, over the traces that are so long."""
    sizes_at: dict[str, float | None] = {}
    for seen in dict.fromkeys(seen for row in found for seen in row["active_at"]):
        known = [row["active_at"][seen] for row in found if row["active_at"].get(seen) is not None]
        sizes_at[f"active_at_{seen}"] = fmean(known) if known else None
    return sizes_at


def draw_fidelity(table: Sequence[Row], stem: Path) -> Path:
    """Draw added NLL and KL divergence against the mean active tokens, a line a method."""
    plt = house_style()
    figure, axes = plt.subplots(1, 2, figsize=(6.8, 2.9))
    lines = [line for line in table if line["window"]]
    for method in dict.fromkeys(line["method"] for line in lines):
        own = sorted((line for line in lines if line["method"] == method), key=lambda line: line["active_tokens_mean"])
        shown = look(method)
        style: Any = {"color": shown.colour, "marker": shown.marker, "markersize": 4, "linewidth": 0.8}
        style["markerfacecolor"] = "white" if own[0]["settings"].get("keep_prompt") else shown.colour
        active = [line["active_tokens_mean"] for line in own]
        below = [line["delta_nll"] - line["ci_low"] for line in own]
        above = [line["ci_high"] - line["delta_nll"] for line in own]
        added = [line["delta_nll"] for line in own]
        axes[0].errorbar(active, added, yerr=[below, above], label=title_of(method), **style)
        axes[1].plot(active, [line["kl"] for line in own], **style)
    axes[0].set_ylabel(f"added NLL (nats a token), n = {max(line['n_traces'] for line in lines)}")
    axes[1].set_ylabel("KL(full, policy) (nats a token)")
    for axis in axes:
        axis.set_xlabel("active KV tokens, mean")
        axis.set_xlim(left=0)
        axis.set_ylim(bottom=0)
    axes[0].set_ylim(auto=True)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=7)
    return save(figure, stem)


def draw_variants(groups: Mapping[str, Sequence[Row]], method: str, stem: Path) -> Path:
    """Draw the paired difference of every variant to a method among them, a line a variant."""
    plt = house_style()
    found = {name: against(rows, groups[method]) for name, rows in groups.items() if name != method}
    shown = {name: difference for name, difference in found.items() if difference is not None}
    figure, axis = plt.subplots(figsize=(4.6, 0.8 + 0.24 * max(1, len(shown))))
    for place, difference in enumerate(shown.values()):
        mean, low, high = difference.mean, difference.low, difference.high
        axis.errorbar(mean, place, xerr=[[mean - low], [high - mean]], color=RED, marker="o", markersize=4)
    axis.axvline(0, color=GREY, linewidth=0.8)
    axis.set_yticks(range(len(shown)), [title_of(name) for name in shown])
    axis.invert_yaxis()
    axis.locator_params(axis="x", nbins=5)
    axis.set_xlabel("added NLL minus the defaults' (nats a token)")
    return save(figure, stem)
