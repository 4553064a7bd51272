"""Reasoning Path Compression: now and then, keep the part of the path that its end attends to (arXiv 2505.13866)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from zoomr.errors import UserError
from zoomr.policies.base import Records
from zoomr.policies.budgeted import Budgeted
from zoomr.policies.checks import flags, one_of, whole
from zoomr.policies.observed import at_slots, in_order, lined_up, logits, pooled
from zoomr.policies.views import Clock, SlotView

Scope = Literal["layer", "head"]


@dataclass(frozen=True, kw_only=True)
class RPC(Budgeted):
    """Every `period` tokens, keep the KVs that the last `recent` tokens attend to; of each period a share stays.

    As the authors' code, which counts the newest of its queries twice, where the paper has as many distinct ones; a
    budget is ours.

    Parameters
    ----------
    budget : int, float, str or None
        None: the cache grows by `period / ratio` tokens each period, as in the paper, beside the prompt and the last
        tokens. Else what is kept is cut to the budget instead.
    period, ratio : int
        P and c in the paper.
    recent : int
        R in the paper: as many last tokens are never dropped, and their queries choose.
    newest_twice : bool
        The code's form: `recent` - 1 queries, the newest of which counts twice.
    scope : "layer" or "head"
        Whether all heads of a layer choose together, or those of each KV head.
    kernel : int
        Width of the mean over neighbouring KVs, odd.
    """

    budget: int | float | str | None = None  # type: ignore[assignment]
    keep_prompt: bool = True
    period: int = 1024
    ratio: int = 4
    recent: int = 32
    newest_twice: bool = True
    scope: Scope = "layer"  # type: ignore[misc]
    kernel: int = 7

    records: ClassVar[Records] = Records.HISTORY

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self, 1, "period", "ratio", "kernel")
        whole(self, 2, "recent")
        flags(self, "newest_twice")
        one_of(self, "scope", Scope)
        if self.kernel % 2 == 0:
            raise UserError(f"kernel={self.kernel}: an odd number is needed.")
        if self.ratio > self.period:
            raise UserError(f"ratio={self.ratio}: at most the period, {self.period}, is needed.")

    @property
    def history(self) -> int:  # type: ignore[override]
        """Distinct queries that choose."""
        return self.recent - 1 if self.newest_twice else self.recent

    @property
    def interval(self) -> int:  # type: ignore[override]
        """Tokens for which room is made: of a period, all that do not stay."""
        return self.period - (self.period // self.ratio if self.budget is None else 0)

    def limit(self, clock: Clock) -> int:
        """The budget; or the shares of all periods so far, and room for one more period."""
        if self.budget is not None:
            return self.tokens
        kept = clock.refreshes * (self.period // self.ratio)
        return self.keep_first(clock.prompt) + kept + self.recent + self.period - 1

    def keep_last(self, prompt: int) -> int:
        """The tokens whose queries choose."""
        return self.recent

    def check(self, prompt: int) -> None:
        """See `Budgeted.check`; a cache that grows holds every prompt."""
        if self.budget is not None:
            super().check(prompt)

    def rank(self, view: SlotView) -> Tensor:
        """Pooled attention among what may leave, summed over the queries and averaged over the query heads."""
        assert view.history is not None
        stored = view.keys()
        order = in_order(view, stored.shape[2])
        scores = logits(view.history, lined_up(stored, order), view.scaling)
        positions = view.positions.expand(*order.shape[:3], -1).gather(-1, order)
        spared = positions > view.last - self.recent
        if self.keep_prompt:
            spared = spared | (positions < view.prompt)
        weights = torch.softmax(scores.masked_fill(spared[:, :, :, None, None], float("-inf")), dim=-1)
        total = weights.sum(dim=4) + (weights[..., -1, :] if self.newest_twice else 0.0)
        return at_slots(pooled(total.mean(dim=3), "avg", self.kernel), order, stored.shape[3])
