"""Fidelity to the full cache: the newest runs of eval.fidelity, a table and a figure each."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from eval.reporting.fidelity_table import Row, active_at, draw_fidelity, draw_variants, fidelity_table, grouped
from eval.reporting.names import title_of
from eval.reporting.sections import Figure, Heading, Link, Origin, Part, Section, Table, Text, newest_run, not_run
from eval.reporting.tables import to_csv
from pipeline import read_manifest, read_rows, write_atomic, write_json

ROWS = "rows.jsonl"
TITLE = "Fidelity to the full cache"
GRIDS = {
    "fidelity": (
        "Methods",
        "Added NLL and KL divergence against active KV tokens, teacher-forced. Open markers keep the whole prompt; "
        "bars: 95% bootstrap interval over traces.",
    ),
    "ambiguities": (
        "What the paper leaves open",
        "ZoomR with one setting changed beside ZoomR with our defaults on the same traces, teacher-forced; "
        "bars: 95% bootstrap interval over traces. Left of zero a change does less damage.",
    ),
}


def section(measured: Path, paper: Mapping[str, Any], results: Path) -> Section:
    """What the methods do to the predictions on given traces, a part for each grid of GRIDS."""
    parts: list[Part] = []
    origins = []
    for name, (title, caption) in GRIDS.items():
        directory, unfinished = newest_run(measured, name)
        if directory is None:
            parts += [Text(unfinished)] if unfinished else []
            continue
        origin = Origin.of_run(directory, f"Fidelity: {title}")
        manifest, rows = read_manifest(directory), read_rows(directory / ROWS)
        svg = write_fidelity(rows, manifest, results)
        table = [row | {"method": Link(row["method"], origin.anchor)} for row in readable(fidelity_table(rows))]
        gap = gap_sentence(rows, paper["consensus"]["mean_refresh_gap_tokens"])
        budgets = budget_sentence(rows, manifest["settings"]["fidelity"]["match"])
        note = manifest["config"]["model"].get("note", "")
        sentences = filter(None, [halves_sentence(rows), gap, budgets, note, unfinished])
        parts += [Heading(title), Text(" ".join(sentences)), Figure(svg, caption), Table(table)]
        if sized := sizes(rows):
            parts.append(Table(sized))
        origins.append(origin)
    if not origins:
        return not_run("fidelity", TITLE, "python -m eval.fidelity")
    return Section("fidelity", TITLE, parts, origins)


def write_fidelity(rows: Sequence[Row], manifest: Mapping[str, Any], results: Path) -> Path:
    """Write `<name>.json`, the CSV made from it and the figure: curves over windows, or one window's variants."""
    settings = manifest["settings"]
    stem = results / settings["fidelity"]["name"]
    table = fidelity_table(rows)
    model = {key: settings["model"][key] for key in ("name", "checkpoint")}
    note = manifest["config"]["model"].get("note", "")
    write_json(stem.with_suffix(".json"), {"model": model, "note": note, "commit": manifest["commit"], "rows": table})
    write_atomic(stem.with_suffix(".csv"), to_csv(table))
    if len({row["window"] for row in rows if row["window"]}) > 1:
        return draw_fidelity(table, stem)
    variants = {method: found for (method, window), found in grouped(rows).items() if window}
    return draw_variants(variants, settings["fidelity"]["match"]["method"], stem)


def readable(table: Sequence[Row]) -> list[Row]:
    """The table for people."""
    return [
        {
            "method": title_of(line["method"]),
            "budget": budget_text(line),
            "active, peak": f"{line['active_tokens_peak']:.0f}",
            "active, mean": f"{line['active_tokens_mean']:.0f}",
            "seen": f"{line['seen_tokens_mean']:.0f}",
            "added NLL": signed(line, "delta_nll", "ci_low", "ci_high"),
            "minus ZoomR's": signed(line, "minus_zoomr", "minus_zoomr_low", "minus_zoomr_high"),
            "KL": f"{line['kl']:.4f}",
            "top-1 agreement": f"{100 * line['top1_agreement']:.1f}%",
            "refresh gap": f"{line['refresh_gap']:.1f}" if line["refresh_gap"] else "",
            "traces": line["n_traces"],
        }
        for line in table
    ]


def budget_text(line: Row) -> str:
    """What a method was given: tokens, or a window."""
    window = f"window {line['window']}" if line["window"] else ""
    return f"{line['budget']:.0f} tokens ({window})" if line["budget"] else window


def signed(line: Row, mean: str, low: str, high: str) -> str:
    """A figure of a line with its interval; empty where there is none."""
    return "" if line[mean] is None else f"{line[mean]:+.4f} [{line[low]:+.4f}, {line[high]:+.4f}]"


def budget_sentence(rows: Sequence[Row], match: Mapping[str, Any]) -> str:
    """What rivals with a budget got, and what they held of it; empty where there are none."""
    shares = []
    for (_, window), found in grouped(rows).items():
        zoomed = {row["trace"]: row for row in rows if (row["method"], row["window"]) == (match["method"], window)}
        shares += [
            row["active_tokens_mean"] / zoomed[row["trace"]]["active_tokens_mean"]
            for row in found
            if "budget" in row["policy"] and row["trace"] in zoomed
        ]
    if not shares:
        return ""
    return (
        f"Methods with a budget get {title_of(match['method'])}'s {match['statistic']} of the same trace and hold it "
        f"only once they are full: their own mean is {100 * fmean(shares):.0f}% of {title_of(match['method'])}'s."
    )


def gap_sentence(rows: Sequence[Row], paper_gap: float) -> str:
    """Tokens between two refreshes at semantic boundaries, over all traces, beside the paper's; empty without any."""
    # Boundaries are the text's, so that every window of ZoomR is refreshed at the same tokens.
    found = [row for row in rows if row["method"] == "zoomr" and row["refreshes"]]
    if not found:
        return ""
    gap = sum(row["tokens"] for row in found) / sum(row["refreshes"] for row in found)
    return f"ZoomR refreshes every {gap:.1f} tokens (paper: {paper_gap:.0f})."


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
    distance = sum((place - second.index(key)) ** 2 for place, key in enumerate(first))
    rho = 1 - 6 * distance / (n * (n**2 - 1))
    return (
        f"Two disjoint halves of the {len(traces)} traces order the {n} methods and budgets with a rank correlation of "
        f"{rho:.2f}."
    )


def ranking(rows: Sequence[Row]) -> list[tuple[str, int | None]]:
    """Methods at their windows, from the least added NLL on; the full cache left out."""
    added = {key: fmean(row["delta_nll"] for row in found) for key, found in grouped(rows).items() if key[1]}
    return sorted(added, key=lambda key: added[key])


def sizes(rows: Sequence[Row]) -> list[Row]:
    """Active tokens after so many seen tokens, and how many times fewer that is, a row a method and window.

    Methods without refreshes are left out, their active tokens being their budget; empty where no trace is so long.
    """
    table = []
    for (method, window), found in grouped(rows).items():
        known = active_at(found)
        if any(known.values()):
            line: Row = {"method": title_of(method), "window": window}
            for seen in found[0]["active_at"]:
                active = known[f"active_at_{seen}"]
                traces = sum(row["active_at"][seen] is not None for row in found)
                fewer = f"{active:.0f} ({int(seen) / active:.1f}x fewer, n = {traces})" if active else ""
                line[f"active at {seen} seen"] = fewer or "no trace so long"
            table.append(line)
    return table
