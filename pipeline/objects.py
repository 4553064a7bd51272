"""Objects that the configuration names, made so that what they refuse is one sentence with the setting's name."""

import re
from collections.abc import Mapping
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import get_object, instantiate
from omegaconf import DictConfig, OmegaConf

from zoomr.errors import UserError


def make(name: str, settings: Mapping[str, Any], **given: Any) -> Any:
    """Make an object from its settings.

    Parameters
    ----------
    name : str
        Where the settings stand in the configuration, such as ``method``.
    settings : mapping
        ``_target_`` and its arguments, as plain values.
    given : Any
        Further arguments, passed as they are.

    Raises
    ------
    UserError
        If the object does not exist, does not know a setting, or refuses a value: with the setting's full name.
    """
    try:
        return instantiate(dict(settings), _partial_=True, _convert_="all")(**given)
    except InstantiationException as error:
        raise UserError(f"{name}._target_={settings['_target_']}: there is no such object.") from error
    except TypeError as error:
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if not unknown:
            raise
        kind = get_object(settings["_target_"]).__name__
        raise UserError(f"{name}.{unknown[1]}: {kind} has no such setting.") from error
    except (UserError, ValueError) as error:
        about = re.match(r"(\w+)[=:]", str(error))
        named = about is not None and about[1] in {*settings, *given}
        raise UserError(f"{name}.{error}" if named else f"{name}: {error}") from error


def model_path(model: DictConfig) -> str:
    """The directory or hub id of the configured `model`; what its `fetch` names fills the directory on first use."""
    if "fetch" in model:
        make("model.fetch", OmegaConf.to_container(model.fetch, resolve=True))  # type: ignore[arg-type]
    return str(model.path)
