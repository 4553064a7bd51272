"""What the three stages share: the composed configuration as plain Python, and whether there is work left."""

from typing import Any

from omegaconf import DictConfig, OmegaConf

from zoomr.runs import Run


def plain(cfg: DictConfig) -> dict[str, Any]:
    """Return the resolved configuration; of keys it holds the names of their variables only."""
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    return config


def is_whole(run: Run) -> bool:
    """Whether a run has finished and its outputs are still there."""
    return run.complete and all((run.dir / name).exists() for name in run.manifest["outputs"])
