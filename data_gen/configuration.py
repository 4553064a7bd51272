"""The composed configuration as plain Python."""

from typing import Any

from omegaconf import DictConfig, OmegaConf


def plain(cfg: DictConfig) -> dict[str, Any]:
    """Return the resolved configuration; of keys it holds the names of their variables only."""
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    return config
