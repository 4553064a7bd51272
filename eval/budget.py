"""Matched budgets: a baseline gets what the reference method really used on the same model and benchmark."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zoomr.runs import UserError, read_manifest

SHARED = ("model", "benchmark", "generation", "prompt", "seed", "limit")


@dataclass(frozen=True)
class Reference:
    """The cell whose use of the cache is matched.

    Attributes
    ----------
    method : str
        Its method.
    policy : dict
        Settings that its policy must have.
    statistic : str
        ``peak`` or ``mean`` active tokens of a sample; the budget is the mean over problems (paper.md 3.24).
    """

    method: str
    policy: dict[str, Any]
    statistic: str


def matched_budget(generated: Path, settings: dict[str, Any], reference: Reference) -> int:
    """Look up the budget of the reference cell.

    Parameters
    ----------
    generated : Path
        The directory of the generate stage.
    settings : dict
        Settings of the cell that asks.
    reference : Reference
        What to match.

    Returns
    -------
    int
        Tokens.

    Raises
    ------
    UserError
        When the reference cell is missing, unfinished or not unique; names the command that makes it.
    """
    found = []
    for path in sorted(generated.glob("*/manifest.json")):
        manifest = read_manifest(path.parent)
        theirs = manifest["settings"]
        if (
            manifest["ended"]
            and theirs["shard"] is None
            and theirs["method"]["name"] == reference.method
            and reference.policy.items() <= theirs["method"]["policy"].items()
            and all(theirs[key] == settings[key] for key in SHARED)
        ):
            found.append(manifest["counts"][f"active_tokens_{reference.statistic}"])
    if not found:
        raise UserError(
            f"method.budget=match needs a finished cell of {reference.method} on the same model and benchmark: "
            f"run `python -m eval.generate method={reference.method}` with the same options, or set a budget in tokens."
        )
    if len(set(found)) > 1:
        raise UserError(
            f"method.budget=match finds {len(found)} cells of {reference.method} with different budgets: "
            "name more of its settings in match.policy."
        )
    return round(found[0])
