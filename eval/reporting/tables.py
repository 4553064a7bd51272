"""Numbers as text, and rows with equal keys as CSV, Markdown or LaTeX."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

from eval.reporting.cells import ScoredCell
from eval.statistics import Difference, Interval

Row = Mapping[str, Any]


def to_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV text: six digits of a fraction, and JSON where a value is a list or a mapping."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _plain(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def markdown(rows: Sequence[Row]) -> str:
    """Rows as a Markdown table."""
    return tabulate(_texts(rows), headers="keys", tablefmt="pipe", disable_numparse=True) + "\n" if rows else "None.\n"


def latex(rows: Sequence[Row]) -> str:
    """Rows as a LaTeX table (booktabs)."""
    return tabulate(_texts(rows), headers="keys", tablefmt="latex_booktabs", disable_numparse=True) + "\n"


def accuracy(cell: ScoredCell) -> Interval:
    """Accuracy of a cell with its interval."""
    summary = cell.summary
    return Interval(summary["accuracy"], summary["ci_low"], summary["ci_high"], summary["n_problems"])


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows as they are kept: an interval or a difference as its numbers, what only people read as its text."""
    return [{key: _kept(value) for key, value in row.items()} for row in rows]


def times(ratio: float | None) -> str:
    """A ratio, or nothing where it is unknown."""
    return "" if ratio is None else f"{ratio:.2f}x"


def problem_count(cells: Sequence[ScoredCell]) -> str:
    """Number of problems of some cells, as a range where they differ."""
    counts = sorted({cell.summary["n_problems"] for cell in cells})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _texts(rows: Sequence[Row]) -> list[dict[str, str]]:
    return [{key: str(value) for key, value in row.items()} for row in rows]


def _kept(value: Any) -> Any:
    if isinstance(value, Interval | Difference):
        return vars(value)
    return value if isinstance(value, int | float | str | dict | list | None) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else value
