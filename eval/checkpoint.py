"""The model that is evaluated: the exported one of this preset, or the base model as it came."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from pipeline import resolve_run


@dataclass(frozen=True)
class Checkpoint:
    """Where a model lies.

    Attributes
    ----------
    path : str
        Directory or hub id.
    settings : dict
        What identifies it in a cell.
    inputs : dict
        Directories whose contents identify it.
    revision, dtype : str or None
        Passed to ``zoomr.load``.
    """

    path: str
    settings: dict[str, Any]
    inputs: dict[str, Path]
    revision: str | None
    dtype: str | None

    def load(self, device: str | None) -> tuple[Any, Any]:
        """Load model and tokenizer."""
        from zoomr import load

        return load(self.path, revision=self.revision, dtype=self.dtype, device=device)


def find_checkpoint(cfg: DictConfig) -> Checkpoint:
    """Find the model to evaluate without loading it.

    Parameters
    ----------
    cfg : DictConfig
        The composed configuration: ``checkpoint`` is ``base`` or a run of train.export.

    Returns
    -------
    Checkpoint
        Its place and identity.

    Raises
    ------
    UserError
        When there is no finished export; names the setting and the command.
    """
    name, dtype = cfg.model.name, cfg.model.get("dtype")
    if cfg.checkpoint == "base":
        settings = {"name": name, "checkpoint": "base", "revision": cfg.model.revision, "dtype": dtype}
        local = Path(cfg.model.path)
        inputs = {"checkpoint": local} if local.is_dir() else {}  # a hub id is identified by its revision
        return Checkpoint(cfg.model.path, settings, inputs, cfg.model.revision, dtype)
    run = resolve_run(cfg.checkpoint, setting="checkpoint", command="python -m train.export")
    settings = {"name": name, "checkpoint": "export", "revision": None, "dtype": dtype}
    return Checkpoint(str(run / "merged"), settings, {"checkpoint": run}, None, dtype)
