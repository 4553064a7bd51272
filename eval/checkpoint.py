"""The model that is evaluated: the exported one of this preset, or the base model as it came."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipeline import resolve_run
from pipeline.objects import model_path
from pipeline.run import content_digest


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

    @property
    def digest(self) -> str | None:
        """Digest of its files; None for a hub id, which its revision stands for."""
        return content_digest(self.inputs["checkpoint"]) if self.inputs else None

    def load(self, device: str | None) -> tuple[Any, Any]:
        """Load model and tokenizer."""
        from zoomr import load

        return load(self.path, revision=self.revision, dtype=self.dtype, device=device)


def find_checkpoint(cfg: DictConfig, setting: str = "checkpoint") -> Checkpoint:
    """Find the model to evaluate without loading it.

    Parameters
    ----------
    cfg : DictConfig
        The composed configuration.
    setting : str
        The setting that is ``base`` or a run of train.export.

    Returns
    -------
    Checkpoint
        Its place and identity.

    Raises
    ------
    UserError
        When there is no finished export; names the setting and the command.
    """
    name, dtype, path = cfg.model.name, cfg.model.get("dtype"), OmegaConf.select(cfg, setting)
    if path == "base":
        settings = {"name": name, "checkpoint": "base", "revision": cfg.model.revision, "dtype": dtype}
        local = Path(model_path(cfg.model))
        inputs = {"checkpoint": local} if local.is_dir() else {}  # a hub id is identified by its revision
        return Checkpoint(str(local), settings, inputs, cfg.model.revision, dtype)
    run = resolve_run(path, setting=setting, command="python -m train.export")
    settings = {"name": name, "checkpoint": "export", "revision": None, "dtype": dtype}
    return Checkpoint(str(run / "merged"), settings, {"checkpoint": run}, None, dtype)
