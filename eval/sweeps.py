"""The cells that the sweeps of configs/sweep ask for, listed without running them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from eval.cells import method_label, method_settings
from pipeline import fingerprint
from pipeline.cli import CONFIGS
from zoomr.errors import UserError

GROUPS = ("model", "benchmark", "method", "generation")


@dataclass(frozen=True)
class Cell:
    """A cell of a sweep.

    Attributes
    ----------
    sweep : str
        Name of the sweep.
    overrides : tuple of str
        What ``python -m eval.generate`` is called with, besides the preset.
    config : DictConfig
        What these overrides settle: the groups of GROUPS, and ``checkpoint``.
    """

    sweep: str
    overrides: tuple[str, ...]
    config: DictConfig

    @property
    def base(self) -> bool:
        """Whether it evaluates the model without fine-tuning."""
        return bool(self.config.checkpoint == "base")

    @property
    def label(self) -> str:
        """The cell in words."""
        generation, benchmark = self.config.generation, self.config.benchmark
        model = self.config.model.name + (" without fine-tuning" if self.base else "")
        task = f"{benchmark.name}, {generation.name} x{generation.samples}, {generation.max_new_tokens:,} tokens"
        return f"{model}, {method_label(*method_settings(self.config.method))}, {task}"


def jobs(sweep: str) -> list[tuple[str, ...]]:
    """List the overrides of every job of a sweep, in the order in which Hydra runs them.

    Raises
    ------
    UserError
        When there is no such sweep.
    """
    path = CONFIGS / "sweep" / f"{sweep}.yaml"
    if not path.exists():
        raise UserError(f"plan.cells names the sweep {sweep}: there is no {path}.")
    params: Any = OmegaConf.to_container(OmegaConf.load(path))
    lines = [f"{key}={value}" for key, value in params.items()]
    choices = [
        [f"{override.key_or_group}={value}" for value in override.sweep_string_iterator()]
        if override.is_sweep_override()
        else [line]
        for line, override in zip(lines, OverridesParser.create().parse_overrides(lines), strict=True)
    ]
    return list(product(*choices))


def cells(entries: Sequence[dict[str, Any]], cfg: DictConfig, model: str) -> list[Cell]:
    """List the cells of several sweeps, each once.

    Parameters
    ----------
    entries : sequence of dict
        ``plan.cells``: a sweep, and the models that run it.
    cfg : DictConfig
        A composed configuration: what no override names.
    model : str
        The choice of configs/model of an entry without models.

    Returns
    -------
    list of Cell
        In the order of the entries. Two jobs that settle the same are one cell, as eval.generate skips what exists.
    """
    found: dict[str, Cell] = {}
    for entry in entries:
        for choice in entry.get("models", [model]):
            for job in jobs(entry["sweep"]):
                overrides = (f"model={choice}", *job)
                cell = Cell(entry["sweep"], overrides, settle(overrides, cfg))
                found.setdefault(fingerprint(OmegaConf.to_container(cell.config, resolve=True)), cell)
    return list(found.values())


def settle(overrides: Sequence[str], cfg: DictConfig) -> DictConfig:
    """Read what overrides settle from the groups' files: Hydra would take minutes to compose hundreds of cells."""
    chosen = dict(override.split("=", 1) for override in overrides)
    groups = {group: read_choice(group, chosen.pop(group)) if group in chosen else cfg[group] for group in GROUPS}
    if "option" in chosen:
        groups["method"] = OmegaConf.merge(groups["method"], read_choice("option", chosen.pop("option")))
    start = OmegaConf.create({"seed": cfg.seed, "checkpoint": "export", **groups})
    single = [
        f"{key}={value}" for key, value in chosen.items() if key == "checkpoint" or key.partition(".")[0] in GROUPS
    ]
    return OmegaConf.merge(start, OmegaConf.from_dotlist(single))  # type: ignore[return-value]


@cache
def read_choice(group: str, choice: str) -> DictConfig:
    """A file of a config group."""
    return OmegaConf.load(CONFIGS / group / f"{choice}.yaml")  # type: ignore[return-value]
