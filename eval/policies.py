"""Policies from the settings of a method: what they name by a path is read here."""

from pathlib import Path
from typing import Any

from hydra.utils import instantiate

from pipeline import resolve_run


def index_inputs(policy: dict[str, Any]) -> dict[str, Path]:
    """The run directory of a learned index, where a policy names one: an input of whatever uses the policy."""
    if policy.get("index") is None:
        return {}
    return {"index": resolve_run(policy["index"], setting="method.index", command="python -m train.index")}


def make_policy(settings: dict[str, Any], model: Any, **given: Any) -> Any:
    """The policy of some settings.

    Parameters
    ----------
    settings : dict
        With `_target_`; `index` is the path of a learned index, if any.
    model : transformers causal language model
        The one that is going to decode.
    given
        What no setting can say, such as targets.

    Raises
    ------
    UserError
        If the index is missing, or belongs to another model.
    """
    from zoomr import load_index

    for directory in index_inputs(settings).values():
        given["index"] = load_index(directory, model)
    return instantiate(settings, **given, _convert_="all")
