"""How large the active set is after so many seen tokens of given traces, and how often it is chosen anew."""

from collections.abc import Sequence
from typing import Any

from eval.reporting.fidelity import Row, active_columns, cells
from eval.reporting.table1 import method_name


def gap_sentence(rows: Sequence[Row], paper_gap: float) -> str:
    """Tokens between two refreshes at semantic boundaries, over all traces, beside the paper's; empty without any."""
    # Boundaries are the text's, so that every window of ZoomR is refreshed at the same tokens.
    found = [row for row in rows if row["method"] == "zoomr" and row["refreshes"]]
    if not found:
        return ""
    gap = sum(row["tokens"] for row in found) / sum(row["refreshes"] for row in found)
    return f"ZoomR refreshes every {gap:.1f} tokens (paper: {paper_gap:.0f})."


def sizes(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Active tokens after so many seen tokens, and how many times fewer that is; empty where no trace is so long.

    Parameters
    ----------
    rows : sequence of dict
        Of eval.fidelity; those without refreshes are left out, their active tokens being their budget.

    Returns
    -------
    list of dict
        One a method and window, for people.
    """
    table = []
    for (method, window), found in cells(rows).items():
        columns = active_columns(found)
        if not any(columns.values()):
            continue
        line: dict[str, Any] = {"method": method_name(method), "window": window}
        for seen in found[0]["active_at"]:
            active = columns[f"active_at_{seen}"]
            traces = sum(row["active_at"][seen] is not None for row in found)
            line[f"active at {seen} seen"] = (
                f"{active:.0f} ({int(seen) / active:.1f}x fewer, n = {traces})" if active else "no trace so long"
            )
        table.append(line)
    return table
