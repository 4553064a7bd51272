"""Matched budgets: a baseline gets what the reference method really used on the same model and benchmark."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.cells import has_settings
from eval.checkpoint import Checkpoint
from eval.samples import generated_cells
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
    checkpoint : Checkpoint
        Its model.
    """

    method: str
    policy: dict[str, Any]
    statistic: str
    checkpoint: Checkpoint


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
        When the reference cell is missing, unfinished, lacks a shard or is not unique; names the command that makes it.
    """
    model, weights = reference.checkpoint.settings, reference.checkpoint.digest
    found = [
        cell
        for cell in generated_cells(generated)
        if cell.settings["method"]["name"] == reference.method
        and has_settings(cell.settings["method"]["policy"], reference.policy)
        and (cell.settings["model"], cell.checkpoint) == (model, weights)
        and all(cell.settings[key] == settings[key] for key in SHARED)
    ]
    finished = [cell for cell in found if not cell.missing]
    command = f"python -m eval.generate method={reference.method}"
    if not finished:
        lacking = [shard for cell in found for shard in cell.missing if shard != "1/1"]
        raise UserError(
            f"method.budget=match needs a finished cell of {reference.method} on the same model and benchmark: "
            + (f"of this one the shards {', '.join(lacking)} are missing; " if lacking else "")
            + f"run `{command}{f' shard={lacking[0]}' if lacking else ''}` with the same options, "
            "or set a budget in tokens."
        )
    budgets = {round(cell.mean(f"active_tokens_{reference.statistic}")) for cell in finished}
    if len(budgets) > 1:
        raise UserError(
            f"method.budget=match finds {len(finished)} cells of {reference.method} with different budgets: "
            "name more of its settings in match.policy."
        )
    return budgets.pop()
