"""Matched budgets: a baseline gets what the reference method really used on the same model and benchmark."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.cells import has_settings
from pipeline import read_manifest
from zoomr.errors import UserError

SHARED = ("benchmark", "generation", "prompt", "seed", "limit")


@dataclass(frozen=True)
class Reference:
    """The cell whose use of the cache is matched.

    Attributes
    ----------
    method : str
        Its method.
    policy : dict
        Settings that its policy must have, where it has these at all.
    statistic : str
        ``peak`` or ``mean`` active tokens of a sample; the budget is the mean over problems (paper.md 3.24).
    checkpoint : str or None
        ``export`` or ``base``; None takes the kind of checkpoint of the cell that asks.
    """

    method: str
    policy: dict[str, Any]
    statistic: str
    checkpoint: str | None = None


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
    model = settings["model"]["name"], reference.checkpoint or settings["model"]["checkpoint"]
    found = []
    for path in sorted(generated.glob("*/manifest.json")):
        manifest = read_manifest(path.parent)
        theirs = manifest["settings"]
        if (
            manifest["ended"]
            and theirs["shard"] is None
            and theirs["method"]["name"] == reference.method
            and has_settings(theirs["method"]["policy"], reference.policy)
            and (theirs["model"]["name"], theirs["model"]["checkpoint"]) == model
            and all(theirs[key] == settings[key] for key in SHARED)
        ):
            weights = manifest["inputs"].get("checkpoint", {}).get("sha256")
            found.append((manifest["ended"], weights, manifest["counts"][f"active_tokens_{reference.statistic}"]))
    if not found:
        raise UserError(
            f"method.budget=match needs a finished cell of {reference.method} on the same model and benchmark: "
            f"run `python -m eval.generate method={reference.method}` with the same options, or set a budget in tokens."
        )
    newest = max(found, key=lambda cell: cell[0])[1]  # cells of a checkpoint that was replaced since do not count
    budgets = {budget for _, weights, budget in found if weights == newest}
    if len(budgets) > 1:
        raise UserError(
            f"method.budget=match finds {len(budgets)} cells of {reference.method} with different budgets: "
            "name more of its settings in match.policy."
        )
    return round(budgets.pop())
