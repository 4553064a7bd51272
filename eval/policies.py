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


def make_policy(name: str, settings: dict[str, Any], model: Any = None, **given: Any) -> Any:
    """The policy of some settings.

    Parameters
    ----------
    name : str
        Where the settings stand in the configuration, such as ``method``.
    settings : dict
        With `_target_`; `index` is the path of a learned index, if any.
    model : transformers causal language model or None
        The one that is going to decode; None to check the settings before it is loaded.
    given
        What no setting can say, such as targets.

    Raises
    ------
    UserError
        If a setting is refused, or the index is missing or belongs to another model.
    """
    indices = index_inputs(settings)
    if model is not None and indices:
        from zoomr import load_index

        given["index"] = load_index(indices["index"], model)
    return make(name, {key: value for key, value in settings.items() if key not in given}, **given)
