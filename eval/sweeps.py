"""The cells that a preset's stages ask for, composed without running them."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import hydra
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from eval.cells import method_label, method_settings
from pipeline import fingerprint
from pipeline.cli import composing

MODULE = "eval.generate"
SHAPING = ("model", "benchmark", "method", "generation", "checkpoint", "seed", "limit")
MULTIRUN = ("-m", "--multirun")


@dataclass(frozen=True)
class PlannedCell:
    """A cell that a stage asks for.

    Attributes
    ----------
    stage : str
        The stage's own overrides, as the preset has them.
    overrides : tuple of str
        What ``python -m eval.generate`` is called with for this cell alone, the preset among them.
    config : DictConfig
        What these overrides compose.
    """

    stage: str
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


def jobs(overrides: Sequence[str]) -> list[tuple[str, ...]]:
    """List the overrides of every job of a command, in the order in which Hydra runs them.

    Parameters
    ----------
    overrides : sequence of str
        Those of one call of ``python -m eval.generate``, with or without ``-m``.
    """
    given = [override for override in overrides if override not in MULTIRUN]
    if len(given) == len(overrides):
        return [tuple(given)]
    parser = OverridesParser.create()
    parsed = parser.parse_overrides(given)
    single = [str(override.input_line) for override in parsed if not override.is_sweep_override()]
    params = hydra.compose("eval", overrides=single, return_hydra_config=True).hydra.sweeper.params or {}
    named = {override.key_or_group for override in parsed}
    added = parser.parse_overrides([f"{key}={value}" for key, value in params.items() if key not in named])
    (batch,) = BasicSweeper.split_arguments([*added, *parsed], max_batch_size=None)
    return [tuple(job) for job in batch]


def planned_cells(stages: Sequence[str], given: Sequence[str]) -> list[PlannedCell]:
    """List the cells of some stages, each once.

    Parameters
    ----------
    stages : sequence of str
        A preset's stages; those that are no calls of eval.generate are left out.
    given : sequence of str
        Overrides of all of them, the preset among them.

    Returns
    -------
    list of PlannedCell
        In the order of the stages. Two jobs that ask for the same are one cell, as eval.generate skips what exists.
    """
    found: dict[str, PlannedCell] = {}
    with composing():
        for module, *own in map(shlex.split, stages):
            for job in jobs([*given, *own]) if module == MODULE else []:
                config = hydra.compose("eval", overrides=list(job))
                settled: Any = OmegaConf.to_container(config, resolve=True)
                shape = fingerprint({key: settled[key] for key in SHAPING})
                found.setdefault(shape, PlannedCell(shlex.join(own), job, config))
    return list(found.values())
