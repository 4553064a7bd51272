"""Look-ups, hits and heads: a table and a figure of eval.steps' rows."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from eval.reporting.csv_table import to_csv
from eval.reporting.figures import house_style, save
from eval.reporting.table1 import NAMES
from eval.statistics import bootstrap
from pipeline import write_atomic

ROWS = "steps.jsonl"
Row = dict[str, Any]


def write_steps(rows: Sequence[Row], results: Path) -> list[Path]:
    """Write steps.csv and the figure.

    Parameters
    ----------
    rows : sequence of dict
        One a method.
    results : Path
        Where tables and figures go.

    Returns
    -------
    list of Path
        What was written.
    """
    write_atomic(results / "steps.csv", to_csv(steps_table(rows)))
    return [results / "steps.csv", *draw_steps(rows, results / "steps")]


def steps_table(rows: Sequence[Row]) -> list[Row]:
    """One row a method, shares in per cent with a 95% bootstrap interval over problems."""
    return [
        {
            "method": display_name(row["id"]),
            "look-ups right": share(row["look_ups"]),
            "paragraph zoomed into": share(row["hits"]) if row["hits"] else "",
            "other tokens right": share(row["others"]),
            "votes on it": percent(row["vote_share"]),
            "if blind": percent(row["vote_chance"]),
            "active tokens, peak": f"{fmean(row['active_tokens_peak']):.0f}",
            "tokens seen": f"{fmean(row['seen_tokens']):.0f}",
            "problems": len(row["look_ups"]),
        }
        for row in rows
    ]


def display_name(method: str) -> str:
    """A method of configs/steps.yaml for people: its name and what is said after it."""
    name, _, rest = method.partition(" ")
    return NAMES.get(name, name.replace("_", " ")) + (f", {rest}" if rest else "")


def looking_heads(rows: Sequence[Row]) -> list[list[int]]:
    """Layer and query head of those whose first choice is the needed summary in at least half of the look-ups."""
    hits: list[list[float]] = next((row["head_hits"] for row in rows if row["head_hits"]), [])
    return [[layer, head] for layer, shares in enumerate(hits) for head, hit in enumerate(shares) if hit >= 0.5]


def share(values: Sequence[float]) -> str:
    """Mean of a share over problems, in per cent with its interval."""
    found = bootstrap(values)
    return f"{100 * found.mean:.1f} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def percent(value: float | None) -> str:
    """A share in per cent, or nothing."""
    return "" if value is None else f"{100 * value:.1f}"


def draw_steps(rows: Sequence[Row], stem: Path) -> list[Path]:
    """Draw the look-ups right of each method, and how often each head's first choice is the needed summary."""
    plt = house_style()
    watched = next((row for row in rows if row["head_hits"]), None)
    drawing, axes = plt.subplots(1, 2 if watched else 1, figsize=(6.8, 2.9), squeeze=False)
    bars, names = axes[0][0], [display_name(row["id"]) for row in rows]
    means = [bootstrap(row["look_ups"]) for row in rows]
    bars.barh(
        names,
        [100 * found.mean for found in means],
        xerr=[[100 * (f.mean - f.low) for f in means], [100 * (f.high - f.mean) for f in means]],
        color="#56B4E9",
        error_kw={"linewidth": 0.8},
    )
    bars.invert_yaxis()
    bars.set_xlim(0, 100)
    bars.set_xlabel(f"look-ups right (%), n = {len(rows[0]['look_ups'])} problems")
    if watched:
        heads = axes[0][1]
        shown = [[100 * hit for hit in layer] for layer in watched["head_hits"]]
        image = heads.imshow(shown, vmin=0, vmax=100, cmap="viridis", aspect="auto")
        heads.grid(False)
        heads.set_xticks(range(len(shown[0])))
        heads.set_yticks(range(len(shown)))
        heads.set_xlabel("query head")
        heads.set_ylabel("layer")
        heads.set_title(
            f"first choice is the needed summary (%); blind: {100 * watched['vote_chance']:.0f}", fontsize=8
        )
        drawing.colorbar(image, ax=heads)
    return save(drawing, stem)
