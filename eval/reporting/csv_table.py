"""cells.csv: one row a cell, for people who would rather compute for themselves."""

import csv
import io
import json
from pathlib import Path
from typing import Any

from eval.reporting.cells import ScoredCell

MEANS = {
    "generated_tokens_mean": "generated_tokens",
    "seen_tokens_mean": "seen_tokens",
    "active_tokens_mean": "active_tokens_mean",
    "active_tokens_peak": "active_tokens_peak",
    "kv_saving_mean": "kv_saving",
    "refreshes_mean": "refreshes",
    "forced_refreshes_mean": "forced_refreshes",
    "summaries_mean": "summaries",
    "tokens_per_s": "tokens_per_s",
}


def csv_row(cell: ScoredCell) -> dict[str, Any]:
    """The row of a cell: what it is, its accuracy with a 95% interval, shares of outcomes, means over problems."""
    summary = cell.summary
    shares = {f"{key}_share": count / summary["n_samples"] for key, count in summary["statuses"].items()}
    row: dict[str, Any] = {
        "preset": summary["preset"],
        "model": cell.model["name"],
        "checkpoint": cell.model["checkpoint"],
        "benchmark": cell.benchmark,
        "method": cell.label,
        "settings": json.dumps(summary["settings"], sort_keys=True),
        "n_problems": summary["n_problems"],
        "n_samples": summary["n_samples"],
        "expected_samples": summary["expected_samples"],
        "accuracy": summary["accuracy"],
        "ci_low": summary["ci_low"],
        "ci_high": summary["ci_high"],
        "majority": summary["majority"],
        "truncated_share": shares["truncated_share"],
        "unparsed_share": shares["unparsed_share"],
        "grader_error_share": shares["grader_error_share"],
        "repetition_share": summary["repetition_share"],
        "balanced_share": summary["balanced_share"],
    }
    row |= {name: summary["meters"][key] for name, key in MEANS.items()}
    row |= {"budget": summary["settings"].get("budget"), "commit": summary["commit"]}
    return {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}


def to_csv(rows: list[dict[str, Any]]) -> str:
    """Rows with equal keys as CSV text."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of a table that `to_csv` wrote."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
