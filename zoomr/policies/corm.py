"""CORM: keep what mattered to one of the last queries (arXiv 2404.15949)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from zoomr.policies.base import Records, Scope
from zoomr.policies.budgeted import Budgeted
from zoomr.policies.checks import whole
from zoomr.policies.observed import at_slots, in_order, lined_up, logits
from zoomr.policies.views import SlotView


@dataclass(frozen=True, kw_only=True)
class CORM(Budgeted):
    """Drop first what has for longest not been major: had no more than an even share of a query's attention.

    No code is public. In the paper every KV goes that was major to none of the last queries, so that heads keep unequal
    numbers; here they fill a budget, and shares are those among the KVs that are left. Defaults are unverified.

    Parameters
    ----------
    interval : int
        Tokens between evictions.
    history : int
        Number of last queries.
    recent : int
        Last tokens that are never dropped.
    """

    interval: int = 64  # type: ignore[misc]
    history: int = 256  # type: ignore[misc]
    recent: int = 256

    records: ClassVar[Records] = Records.HISTORY
    scope: ClassVar[Scope] = "head"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self, 1, "interval", "history", "recent")

    def keep_last(self, prompt: int) -> int:
        """The last `recent` tokens."""
        return self.recent

    def rank(self, view: SlotView) -> Tensor:
        """Which of the last queries, counted from 1, was the newest to which a KV was major; 0 for none."""
        assert view.history is not None
        stored, number = view.keys(), view.history.shape[2]
        order = in_order(view, stored.shape[2])
        scores = logits(view.history, lined_up(stored, order), view.scaling)
        places = torch.arange(number, device=order.device)
        positions = view.positions.expand(*order.shape[:3], -1).gather(-1, order)
        seen = positions[..., None, :] <= (view.last + 1 - number + places)[..., None]
        seen = seen[:, :, :, None]
        weights = torch.softmax(scores.masked_fill(~seen, float("-inf")), dim=-1)
        major = ((weights * seen.sum(dim=-1, keepdim=True) >= 1) & seen).any(dim=3)
        newest = (major * (places + 1)[:, None]).amax(dim=3).float()
        return at_slots(newest, order, stored.shape[3])
