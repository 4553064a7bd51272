"""A policy's damage on one given trace: its predictions beside those of the full cache, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import kl_div

from zoomr.chunked import Visit, forced_in_chunks
from zoomr.loop import Prompt
from zoomr.policies import Full, Policy
from zoomr.results import Usage


@dataclass(frozen=True)
class Damage:
    """What a policy does to the predictions of a given continuation, means over its tokens.

    Attributes
    ----------
    tokens : int
    nll_full, nll : float
        Negative log-likelihood of the given tokens, in nats, with the full cache and with the policy.
    kl : float
        Kullback-Leibler divergence KL(full || policy), nats.
    top1_agreement : float
        Share of positions where both prefer the same token.
    usage : Usage
        Of the policy's run.
    """

    tokens: int
    nll_full: float
    nll: float
    kl: float
    top1_agreement: float
    usage: Usage

    @property
    def delta_nll(self) -> float:
        """What the policy adds to the negative log-likelihood of a token."""
        return self.nll - self.nll_full


class Reference:
    """The full cache's predictions on one trace, kept for comparison: tokens x vocabulary numbers of four bytes.

    Parameters
    ----------
    model, tokenizer, prompt, boundaries
        See `zoomr.generate`.
    continuation : list of int
    """

    def __init__(self, model: Any, tokenizer: Any, prompt: Prompt, continuation: list[int], boundaries: Any = None):
        self.model, self.tokenizer, self.prompt, self.continuation = model, tokenizer, prompt, continuation
        self.boundaries = boundaries
        chunks: list[Tensor] = []
        self.usage = self._force(Full(), lambda logits: chunks.append(torch.log_softmax(logits.float(), dim=-1)))
        self.log_probs = torch.cat(chunks)
        self.given = torch.tensor(continuation, device=self.log_probs.device)
        self.nll = -self.log_probs.gather(1, self.given[:, None]).double().mean().item()

    def undamaged(self) -> Damage:
        """The full cache beside itself."""
        return Damage(len(self.given), self.nll, self.nll, 0.0, 1.0, self.usage)

    def damage(self, policy: Policy, **settings: Any) -> Damage:
        """Run a policy over the same tokens and compare.

        Parameters
        ----------
        policy : Policy
        settings
            `seed`, `number` and `trace` of `forced_in_chunks`.
        """
        done = 0
        nll = kl = agree = 0.0

        def compare(logits: Tensor) -> None:
            nonlocal done, nll, kl, agree
            own = torch.log_softmax(logits.float(), dim=-1)
            here = slice(done, done + len(own))
            full = self.log_probs[here]
            nll -= own.gather(1, self.given[here, None]).double().sum().item()
            kl += kl_div(own, full, reduction="none", log_target=True).sum(-1).double().sum().item()
            agree += (full.argmax(-1) == own.argmax(-1)).sum().item()
            done += len(own)

        usage = self._force(policy, compare, **settings)
        return Damage(done, self.nll, nll / done, kl / done, agree / done, usage)

    def _force(self, policy: Policy, visit: Visit, **settings: Any) -> Usage:
        given = {"policy": policy, "visit": visit, "boundaries": self.boundaries} | settings
        return forced_in_chunks(self.model, self.tokenizer, self.prompt, self.continuation, **given)
