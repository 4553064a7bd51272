"""Choosing the next token: greedy, or sampling that depends on nothing but the row's own seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopPLogitsWarper

from zoomr.errors import UserError
from zoomr.rows import Request


@dataclass(frozen=True)
class Sampling:
    """Settings of the sampler.

    Parameters
    ----------
    temperature : float
        0 is greedy.
    top_p : float
        Nucleus; 1 is off.
    """

    temperature: float = 0.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        # below this a quotient of logits may overflow, and what is asked for is the greedy choice
        if not (self.temperature == 0 or 1e-3 <= self.temperature < float("inf")):
            raise UserError(f"temperature={self.temperature}: 0 (greedy) or a number of at least 0.001 is needed.")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p={self.top_p}: a number above 0 and up to 1 is needed.")

    def processors(self) -> LogitsProcessorList:
        """The transformers processors that shape the distribution."""
        processors = LogitsProcessorList()
        if self.temperature not in (0.0, 1.0):
            processors.append(TemperatureLogitsWarper(float(self.temperature)))
        if self.top_p < 1.0:
            processors.append(TopPLogitsWarper(self.top_p))
        return processors


class Chooser(Protocol):
    """What gives every row its next token."""

    def admit(self, row: int, request: Request) -> None:
        """A request starts at `row`."""

    def move(self, source: int, target: int) -> None:
        """The row at `source` continues at `target`."""

    def __call__(self, logits: Tensor, rows: list[int], drawn: list[int]) -> list[int]:
        """Next token of each of the rows, from logits (n, V); `drawn` is how many tokens each has had."""
        ...


class Sampler:
    """Next tokens for the rows of a batch.

    Each row draws uniform numbers from a generator of its own, one a token, and inverts the cumulative distribution:
    what a row samples does not depend on its neighbours or on the order in which rows are served.

    Parameters
    ----------
    sampling : Sampling
    batch : int
        Most rows at a time.
    max_new_tokens : int
    device
        Where the logits are.
    """

    def __init__(self, sampling: Sampling, batch: int, max_new_tokens: int, device: torch.device):
        self.greedy = sampling.temperature == 0.0
        self.processors = sampling.processors()
        self.uniforms = torch.zeros(0 if self.greedy else batch, max_new_tokens, dtype=torch.float64, device=device)

    def admit(self, row: int, request: Request) -> None:
        """Give `row` its numbers."""
        if not self.greedy:
            generator = torch.Generator().manual_seed(request.seed)
            numbers = torch.rand(self.uniforms.shape[1], generator=generator, dtype=torch.float64)
            self.uniforms[row] = numbers.to(self.uniforms.device)

    def move(self, source: int, target: int) -> None:
        """Let the row at `source` continue at `target`."""
        if not self.greedy:
            self.uniforms[target] = self.uniforms[source]

    def __call__(self, logits: Tensor, rows: list[int], drawn: list[int]) -> list[int]:
        """Next token of each row.

        Parameters
        ----------
        logits : (n, V)
        rows : list of int
            Which row each line of logits belongs to.
        drawn : list of int
            How many tokens each of these rows has had.
        """
        if not bool(torch.isfinite(logits.amax(-1)).all()):
            raise UserError("model: its logits are not numbers (NaN or infinite); a wider dtype may help.")
        if self.greedy:
            return logits.argmax(-1).tolist()
        scores = self.processors(None, logits.float())  # type: ignore[arg-type]
        return invert(scores, self.uniforms[rows, drawn])


def invert(scores: Tensor, uniforms: Tensor) -> list[int]:
    """Sample from scores (n, V) with given uniform numbers (n,): the inverse of the cumulative distribution."""
    cumulative = torch.softmax(scores.double(), dim=-1).cumsum(-1)
    target = uniforms[:, None] * cumulative[:, -1:]
    chosen = torch.searchsorted(cumulative, target, right=True)
    return chosen.clamp(max=scores.shape[-1] - 1)[:, 0].tolist()
