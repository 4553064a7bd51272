"""What a policy does to a model's predictions on a given trace, without sampling noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import kl_div

from zoomr.chunks import Visit, forced_in_chunks
from zoomr.errors import UserError
from zoomr.policies import Full, Policy
from zoomr.prompts import Prompt, as_prompts
from zoomr.results import Usage
from zoomr.trace import Trace


@dataclass(frozen=True)
class Fidelity:
    """A policy beside the full cache, over the tokens of one given continuation.

    Attributes
    ----------
    prompt, tokens : int
        Index of the prompt; tokens compared.
    nll_full, nll : float
        Mean negative log-likelihood of the given tokens, in nats, with the full cache and with the policy.
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
    kl: float
    top1_agreement: float
    stats: Usage

    @property
    def delta_nll(self) -> float:
        """What the policy adds to the negative log-likelihood of a token: nll - nll_full."""
        return self.nll - self.nll_full

    def to_dict(self) -> dict[str, Any]:
        """A flat dictionary: these fields, delta_nll and the fields of the usage."""
        row = asdict(self) | {"delta_nll": self.delta_nll}
        return row | row.pop("stats")


def fidelity(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Prompt],
    continuations: Sequence[Sequence[int]],
    *,
    policy: Policy,
    boundaries: Iterable[int] | None = None,
) -> list[Fidelity]:
    """Feed given tokens through the full cache and through a policy, in chunks, prompt by prompt.

    Parameters
    ----------
    model, tokenizer, prompts, policy, boundaries
        See `zoomr.generate`.
    continuations : sequence of token-id lists
        One a prompt, not empty.

    Returns
    -------
    list of Fidelity
        One a prompt, in order.
    """
    prompts = as_prompts(prompts)
    if len(continuations) != len(prompts) or not all(continuations):
        raise UserError("continuations: one is needed for every prompt, of at least one token")
    table = None if boundaries is None else frozenset(boundaries)
    return [
        Reference(model, tokenizer, prompt, list(continuation), number, table).compare([policy], seed=number)[0]
        for number, (prompt, continuation) in enumerate(zip(prompts, continuations, strict=True))
    ]


class Reference:
    """The full cache's predictions on one trace, kept for comparison: tokens x vocabulary numbers of four bytes.

    Parameters
    ----------
    model, tokenizer, prompt, boundaries
        See `zoomr.generate`.
    continuation : list of int
    number : int
        Index of the prompt.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        prompt: Prompt,
        continuation: list[int],
        number: int = 0,
        boundaries: Iterable[int] | None = None,
    ):
        self.model, self.tokenizer, self.prompt, self.continuation = model, tokenizer, prompt, continuation
        self.number, self.boundaries = number, boundaries
        chunks: list[Tensor] = []
        (self.stats,) = self._force([Full()], [lambda logits: chunks.append(torch.log_softmax(logits.float(), dim=-1))])
        self.log_probs = torch.cat(chunks)
        self.given = torch.tensor(continuation, device=self.log_probs.device)
        self.nll = -self.log_probs.gather(1, self.given[:, None]).double().mean().item()

    def itself(self) -> Fidelity:
        """The full cache beside itself."""
        return Fidelity(self.number, len(self.given), self.nll, self.nll, 0.0, 1.0, self.stats)

    def compare(
        self, policies: Sequence[Policy], seed: int = 0, traces: Sequence[Trace | None] | None = None
    ) -> list[Fidelity]:
        """Run policies over the same tokens and compare each.

        Parameters
        ----------
        policies : sequence of Policy
        seed : int
            For policies that draw.
        traces : sequence of callable or None
            One a policy; see `zoomr.generate`.
        """
        tallies = [_Tally(self) for _ in policies]
        usages = self._force(policies, [tally.visit for tally in tallies], seed=seed, traces=traces)
        return [tally.result(usage) for tally, usage in zip(tallies, usages, strict=True)]

    def _force(
        self,
        policies: Sequence[Policy],
        visits: Sequence[Visit],
        seed: int = 0,
        traces: Sequence[Trace | None] | None = None,
    ) -> list[Usage]:
        return forced_in_chunks(
            self.model,
            self.tokenizer,
            self.prompt,
            self.continuation,
            policies=policies,
            visits=visits,
            traces=traces,
            seed=seed,
            number=self.number,
            boundaries=self.boundaries,
        )


class _Tally:
    """Adds up, chunk by chunk, how a policy's predictions differ from the reference's."""

    def __init__(self, reference: Reference):
        self.reference = reference
        self.done = self.agree = 0
        self.nll = self.kl = 0.0

    def visit(self, logits: Tensor) -> None:
        """Take the logits (n, V) of the next n given tokens."""
        own = torch.log_softmax(logits.float(), dim=-1)
        here = slice(self.done, self.done + len(own))
        full, given = self.reference.log_probs[here], self.reference.given[here, None]
        self.nll -= own.gather(1, given).double().sum().item()
        self.kl += kl_div(own, full, reduction="none", log_target=True).sum(-1).double().sum().item()
        self.agree += int((full.argmax(-1) == own.argmax(-1)).sum())
        self.done += len(own)

    def result(self, usage: Usage) -> Fidelity:
        """Means over all tokens."""
        done, reference = self.done, self.reference
        return Fidelity(
            reference.number, done, reference.nll, self.nll / done, self.kl / done, self.agree / done, usage
        )
