"""A cell is one model, method, benchmark and set of settings: what it is called and what samples it asks for."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from data_gen.benchmarks import Problem
from eval.reporting.names import method_label as method_label
from zoomr.errors import UserError


@dataclass(frozen=True)
class Request:
    """One sample to generate; of a traced one every refresh is kept."""

    problem: Problem
    sample: int
    seed: int
    traced: bool = False

    @property
    def id(self) -> str:
        """Key of the sample in its cell."""
        return f"{self.problem.id}#{self.sample}"


def has_settings(policy: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a cell's policy has the wanted settings where it has these at all: an older cell lacks a newer one."""
    return all(policy.get(key, value) == value for key, value in wanted.items())


def sample_seed(seed: int, problem: str, sample: int) -> int:
    """Seed of one sample; it depends on nothing else, so that batch size, order and shards do not change a result.

    Parameters
    ----------
    seed : int
        Seed of the evaluation.
    problem : str
        Id of the problem.
    sample : int
        Index of the sample.

    Returns
    -------
    int
        From 0 to 2^63 - 1.
    """
    digest = hashlib.sha256(f"{seed} {problem} {sample}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def requests(problems: Sequence[Problem], samples: int, seed: int, shard: str | None, traced: int = 0) -> list[Request]:
    """List the samples of a cell, or of one shard of it.

    Parameters
    ----------
    problems : sequence of Problem
        The problems of the cell.
    samples : int
        Samples a problem.
    seed : int
        Seed of the evaluation.
    shard : str or None
        ``i/n`` takes every n-th problem from the i-th, i from 1 to n.
    traced : int
        Of the first so many problems the first sample keeps every refresh.

    Returns
    -------
    list of Request
        Problem-major, sample-minor.

    Raises
    ------
    UserError
        When the shard is not of that form.
    """
    first, step = 1, 1
    if shard is not None:
        match = re.fullmatch(r"(\d+)/(\d+)", str(shard))
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise UserError(f"shard={shard}: write it as i/n with i from 1 to n, such as 1/4.")
        first, step = int(match[1]), int(match[2])
    return [
        Request(problem, sample, sample_seed(seed, problem.id, sample), traced=number < traced and sample == 0)
        for number, problem in list(enumerate(problems))[first - 1 :: step]
        for sample in range(samples)
    ]


def generation_settings(generation: DictConfig) -> dict[str, Any]:
    """What of the generation's settings shapes a sample; cells are compared where these are equal."""
    return {key: generation[key] for key in ("temperature", "top_p", "samples", "max_new_tokens")}


def method_settings(method: DictConfig) -> tuple[str, dict[str, Any]]:
    """Name of a method, and the settings of its policy, `_target_` among them."""
    policy: Any = OmegaConf.to_container(method, resolve=True)
    policy.pop("show", None)
    return policy.pop("name"), policy


def directory_label(*parts: str) -> str:
    """Join parts into a directory name of letters, digits, dots and hyphens."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(parts)).strip("-")
