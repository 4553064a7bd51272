"""Variants of one method at one budget: what each adds to the method as configured, pair by pair of traces."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.reporting.figures import house_style, save
from eval.statistics import Difference, paired_difference


def against(found: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> Difference | None:
    """Paired difference of the added NLL over the traces that both have; None where they share none."""
    one, other = ({row["trace"]: row["delta_nll"] for row in group} for group in (found, others))
    return paired_difference(one, other) if one.keys() & other.keys() else None


def draw_variants(groups: Mapping[str, Sequence[dict[str, Any]]], method: str, stem: Path) -> list[Path]:
    """Draw the difference of every variant to the method, a line a variant.

    Parameters
    ----------
    groups : mapping of str to sequence of dict
        Rows of eval.fidelity by variant, the method itself among them.
    method : str
        What the variants are compared with.
    stem : Path
        Where to write, without suffix.

    Returns
    -------
    list of Path
        The SVG and the PNG.
    """
    plt = house_style()
    found = {name: against(rows, groups[method]) for name, rows in groups.items() if name != method}
    shown = {name: difference for name, difference in found.items() if difference is not None}
    figure, axis = plt.subplots(figsize=(4.6, 0.8 + 0.24 * max(1, len(shown))))
    for place, difference in enumerate(shown.values()):
        mean, low, high = difference.mean, difference.low, difference.high
        axis.errorbar(mean, place, xerr=[[mean - low], [high - mean]], color="#D55E00", marker="o", markersize=4)
    axis.axvline(0, color="#666666", linewidth=0.8)
    axis.set_yticks(range(len(shown)), [name.replace("_", " ") for name in shown])
    axis.invert_yaxis()
    axis.locator_params(axis="x", nbins=5)
    axis.set_xlabel("added NLL minus the defaults' (nats a token)")
    return save(figure, stem)
