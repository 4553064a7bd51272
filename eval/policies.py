"""Policies from the settings of a method: what they name by a path is read here."""

from pathlib import Path
from typing import Any

from pipeline import resolve_run
from pipeline.objects import make


def index_inputs(policy: dict[str, Any]) -> dict[str, Path]:
    """The run directory of a learned index, where a policy names one: an input of whatever uses the policy."""
    if policy.get("index") is None:
        return {}
    return {"index": resolve_run(policy["index"], setting="method.index", command="python -m train.index")}


def make_policy(name: str, settings: dict[str, Any], model: Any, **given: Any) -> Any:
    """The policy of some settings.

    Parameters
    ----------
    name : str
        Where the settings stand in the configuration, for errors.
    settings : dict
        With `_target_`; `index` is the path of a learned index, if any.
    model : transformers causal language model or None
        The one that is going to decode. None: the policy is made to be checked, and no index is read.
    given
        What no setting can say, such as targets.

    Raises
    ------
    UserError
        If a setting is refused, or the index is missing or belongs to another model.
    """
    if model is not None:
        from zoomr import load_index

        for directory in index_inputs(settings).values():
            given["index"] = load_index(directory, model)
    return make(name, settings, **given)
