"""Single look-ups: the newest run of eval.steps, a table and a figure."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from eval.reporting.figures import house_style, save
from eval.reporting.names import title_of
from eval.reporting.sections import Figure, Link, Origin, Section, Table, Text, newest_run, not_run
from eval.reporting.tables import to_csv
from eval.statistics import Interval, mean_interval
from pipeline import read_rows, write_atomic, write_json

ROWS = "steps.jsonl"
TITLE = "Step by step: do votes find what a step needs?"
NOTE = (
    "Teacher-forced on problems of the validation split. A look-up is right when its digits would have been; "
    "only look-ups count whose paragraph had left the window. Votes on it: the share of all votes that fell on the "
    "summary of the needed paragraph, and what that share would be if heads voted blindly."
)
SHARES = {"look_ups": "look-ups right", "hits": "paragraph zoomed into", "others": "other tokens right"}
Row = dict[str, Any]


def section(measured: Path, results: Path) -> Section:
    """What single look-ups say of each method, from the run of eval.steps that finished last."""
    directory, unfinished = newest_run(measured, "*")
    if directory is None:
        return not_run("steps", TITLE, "python -m eval.steps")
    origin = Origin.of_run(directory, TITLE)
    rows = read_rows(directory / ROWS)
    caption = (
        "Left: look-ups right, 95% bootstrap interval over problems. Right: the heads' first choices. In half of the "
        f"look-ups or more they are right for (layer, query head) {looking_heads(rows)}: method.voters. The heads were "
        "found with the answers' own dependencies, which no other task gives."
    )
    table = steps_table(rows)
    lines = [line | {"method": Link(line["method"], origin.anchor)} for line in readable(table)]
    svg = write_steps(rows, results)
    notes = Text(" ".join(filter(None, [NOTE, unfinished])), soft=True)
    return Section("steps", TITLE, [notes, Figure(svg, caption), Table(lines)], [origin])


def write_steps(rows: Sequence[Row], results: Path) -> Path:
    """Write steps.json, the CSV made from it and the figure; returns the SVG."""
    table = steps_table(rows)
    write_json(results / "steps.json", {"rows": table, "looking_heads": looking_heads(rows)})
    write_atomic(results / "steps.csv", to_csv(table))
    return draw_steps(rows, results / "steps")


def steps_table(rows: Sequence[Row]) -> list[Row]:
    """One row a method: shares with a 95% bootstrap interval over problems, None where a method has no such thing."""
    table = []
    for row in rows:
        line: Row = {"method": row["id"]}
        for key in SHARES:
            found = mean_interval(row[key]) if row[key] else None
            line |= {key: found and found.mean, f"{key}_low": found and found.low, f"{key}_high": found and found.high}
        line |= {key: row[key] for key in ("vote_share", "vote_chance")}
        line |= {key: fmean(row[key]) for key in ("active_tokens_peak", "seen_tokens")}
        table.append(line | {"n_problems": len(row["look_ups"])})
    return table


def readable(table: Sequence[Row]) -> list[Row]:
    """The table for people, in per cent."""
    return [
        {
            "method": title_of(line["method"]),
            **{title: interval_of(line, key) or "" for key, title in SHARES.items()},
            "votes on it": percent(line["vote_share"]),
            "if blind": percent(line["vote_chance"]),
            "active tokens, peak": f"{line['active_tokens_peak']:.0f}",
            "tokens seen": f"{line['seen_tokens']:.0f}",
            "problems": line["n_problems"],
        }
        for line in table
    ]


def looking_heads(rows: Sequence[Row]) -> list[list[int]]:
    """Layer and query head of those whose first choice is the needed summary in at least half of the look-ups."""
    hits: list[list[float]] = next((row["head_hits"] for row in rows if row["head_hits"]), [])
    return [[layer, head] for layer, shares in enumerate(hits) for head, hit in enumerate(shares) if hit >= 0.5]


def interval_of(line: Row, key: str) -> Interval | None:
    """A share with its interval, where a method has it."""
    if line[key] is None:
        return None
    return Interval(line[key], line[f"{key}_low"], line[f"{key}_high"], line["n_problems"])


def percent(value: float | None) -> str:
    """A share in per cent, or nothing."""
    return "" if value is None else f"{100 * value:.1f}"


def draw_steps(rows: Sequence[Row], stem: Path) -> Path:
    """Draw the look-ups right of each method, and how often each head's first choice is the needed summary."""
    plt = house_style()
    watched = next((row for row in rows if row["head_hits"]), None)
    figure, axes = plt.subplots(1, 2 if watched else 1, figsize=(6.8, 2.9), squeeze=False)
    bars, names = axes[0][0], [title_of(row["id"]) for row in rows]
    means = [mean_interval(row["look_ups"]) for row in rows]
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
        draw_heads(figure, axes[0][1], watched)
    return save(figure, stem)


def draw_heads(figure: Any, axis: Any, watched: Row) -> None:
    """Draw a square a head."""
    shown = [[100 * hit for hit in layer] for layer in watched["head_hits"]]
    image = axis.imshow(shown, vmin=0, vmax=100, cmap="viridis", aspect="auto")
    axis.grid(False)
    axis.set_xticks(range(len(shown[0])))
    axis.set_yticks(range(len(shown)))
    axis.set_xlabel("query head")
    axis.set_ylabel("layer")
    axis.set_title(f"first choice is the needed summary (%); blind: {100 * watched['vote_chance']:.0f}", fontsize=8)
    figure.colorbar(image, ax=axis)
