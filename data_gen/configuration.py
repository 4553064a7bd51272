"""What the three stages share: the composed configuration as plain Python, and whether there is work left."""

from typing import Any

import hydra
from hydra.errors import InstantiationException
from omegaconf import DictConfig, OmegaConf

from pipeline import Run
from zoomr.errors import UserError


def plain(cfg: DictConfig) -> dict[str, Any]:
    """Return the resolved configuration; of keys it holds the names of their variables only."""
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    return config


def make(cfg: DictConfig, name: str) -> Any:
    """Make the object that a part of the configuration describes.

    Raises
    ------
    UserError
        If a setting that has no default is missing.
    """
    part = OmegaConf.select(cfg, name)
    missing = sorted(OmegaConf.missing_keys(part))
    if missing:
        raise UserError(f"{missing[0]} is not set.")
    try:
        return hydra.utils.instantiate(part)
    except InstantiationException as error:
        # The sentence that an object has for its settings, without Hydra's around it.
        raise error.__cause__ if isinstance(error.__cause__, UserError) else error from None


def is_whole(run: Run) -> bool:
    """Whether a run has finished and its outputs are still there."""
    return run.complete and all((run.dir / name).exists() for name in run.manifest["outputs"])
