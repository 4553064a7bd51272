"""What a policy does to a model's predictions on a given trace, without sampling noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import kl_div

from zoomr.batch import Batch
from zoomr.forcing import Forcing
from zoomr.loop import Prompt, token_ids
from zoomr.plan import Mode, Plan
from zoomr.policies import Full, Policy
from zoomr.results import Usage
from zoomr.rows import Request
from zoomr.runs import UserError
from zoomr.segments import boundary_table, delimiter_ids


@dataclass(frozen=True)
class Fidelity:
    """A policy beside the full cache, over the tokens of one given continuation.

    Attributes
    ----------
    prompt, tokens : int
        Index of the prompt; tokens compared.
    nll_full, nll : float
        Mean negative log-likelihood of the given tokens, in nats, with the full cache and with the policy.
    delta_nll : float
        nll - nll_full.
    kl : float
        Mean Kullback-Leibler divergence of the policy's distribution from the full cache's, KL(full || policy), nats.
    top1_agreement : float
        Share of positions where both prefer the same token.
    stats : Usage
        Of the policy's run.
    """

    prompt: int
    tokens: int
    nll_full: float
    nll: float
    delta_nll: float
    kl: float
    top1_agreement: float
    stats: Usage

    def to_dict(self) -> dict[str, Any]:
        """A flat dictionary: these fields and those of the usage."""
        row = asdict(self)
        return row | row.pop("stats")


class _Reference(Forcing):
    """Forcing that keeps the log-probabilities of its latest step."""

    latest: Tensor

    def __call__(self, logits: Tensor, rows: list[int], drawn: list[int]) -> list[int]:
        self.latest = torch.log_softmax(logits.float(), dim=-1)
        return super().__call__(logits, rows, drawn)


class _Compared(Forcing):
    """Forcing that compares each step's distributions with those of a reference that is at the same step."""

    def __init__(self, targets: list[list[int]], reference: _Reference):
        super().__init__(targets)
        self.reference = reference
        self.kl: list[list[Tensor]] = [[] for _ in targets]

    def __call__(self, logits: Tensor, rows: list[int], drawn: list[int]) -> list[int]:
        full, own = self.reference.latest, torch.log_softmax(logits.float(), dim=-1)
        divergence = kl_div(own, full, reduction="none", log_target=True).sum(-1).cpu()
        for line, row in enumerate(rows):
            self.kl[self._prompt_of[row]].append(divergence[line])
        return super().__call__(logits, rows, drawn)


def fidelity(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Prompt],
    continuations: Sequence[Sequence[int]],
    *,
    policy: Policy,
    batch_size: int = 4,
    mode: Mode = "gather",
    boundaries: Iterable[int] | None = None,
) -> list[Fidelity]:
    """Feed given tokens through a policy and through the full cache, step by step side by side.

    Parameters
    ----------
    model, tokenizer, prompts, policy, batch_size, mode, boundaries
        See `zoomr.generate`.
    continuations : sequence of token-id lists
        One a prompt, not empty.

    Returns
    -------
    list of Fidelity
        One a prompt, in order.
    """
    if len(continuations) != len(prompts) or not all(continuations):
        raise UserError("continuations: one is needed for every prompt, of at least one token")
    targets = [list(continuation) for continuation in continuations]
    table = frozenset(boundary_table(tokenizer) if boundaries is None else boundaries)
    reference = _Reference(targets)
    compared = _Compared(targets, reference)
    delimiters, size = delimiter_ids(tokenizer), max(1, min(batch_size, len(prompts)))
    full = Batch(model, Plan(Full(), table, frozenset(), delimiters), reference, size)
    own = Batch(model, Plan(policy, table, frozenset(), delimiters, mode), compared, size)
    stats: dict[int, Usage] = {}
    for start in range(0, len(prompts), size):
        requests = [
            Request(index, 0, index, token_ids(tokenizer, prompts[index]), len(targets[index]), is_last_sample=True)
            for index in range(start, min(start + size, len(prompts)))
        ]
        full.admit(requests)
        ended = own.admit(requests)
        while own.rows:
            full.step()
            ended += own.step()
        stats |= {row.request.prompt: row.usage() for row, _ in ended}
    return [_compare(index, reference, compared, stats[index]) for index in range(len(prompts))]


def _compare(index: int, reference: _Reference, compared: _Compared, stats: Usage) -> Fidelity:
    full, own = -torch.stack(reference.log_probs[index]).mean(), -torch.stack(compared.log_probs[index]).mean()
    same = torch.stack(reference.top[index]) == torch.stack(compared.top[index])
    return Fidelity(
        prompt=index,
        tokens=len(same),
        nll_full=float(full),
        nll=float(own),
        delta_nll=float(own - full),
        kl=float(torch.stack(compared.kl[index]).mean()),
        top1_agreement=float(same.float().mean()),
        stats=stats,
    )
