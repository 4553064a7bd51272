"""SnapKV in its decoding forms: keep what the last queries attend to (arXiv 2404.14469; R-KV and Random Attention)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from zoomr.errors import UserError
from zoomr.policies.base import Records, Scope
from zoomr.policies.budgeted import Budgeted
from zoomr.policies.checks import one_of, whole
from zoomr.policies.observed import Pool, at_slots, in_order, lined_up, logits, pooled
from zoomr.policies.views import SlotView

Group = Literal["mean", "max"]


@dataclass(frozen=True, kw_only=True)
class SnapKV(Budgeted):
    """Every `interval` tokens, keep the KVs that the last `history` queries attend to, and those queries' own.

    The default is the form of the Random Attention repository. That of the R-KV repository is
    `SnapKV(interval=128, history=8, group="max", pool="max", kernel=7)`.

    Parameters
    ----------
    interval : int
        Tokens between evictions.
    history : int
        Number of last queries; as many last tokens are never dropped.
    group : "mean" or "max"
        The query heads of a KV head are joined by the mean of their weights, or the largest of their scores.
    pool : "avg" or "max"
        Pooling of the weights over neighbouring KVs.
    kernel : int
        Width of the pooling, odd.
    """

    interval: int = 64  # type: ignore[misc]
    history: int = 64  # type: ignore[misc]
    group: Group = "mean"
    pool: Pool = "avg"
    kernel: int = 5

    records: ClassVar[Records] = Records.HISTORY
    scope: ClassVar[Scope] = "head"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self, 1, "interval", "history", "kernel")
        one_of(self, "group", Group)
        one_of(self, "pool", Pool)
        if self.kernel % 2 == 0:
            raise UserError(f"kernel={self.kernel}: an odd number is needed.")

    def keep_last(self, prompt: int) -> int:
        """The tokens whose queries are kept."""
        return self.history

    def rank(self, view: SlotView) -> Tensor:
        """Pooled attention of the last queries, over the KVs in the order of their positions."""
        assert view.history is not None
        keys = view.keys()
        order = in_order(view, keys.shape[2])
        scores = logits(view.history, lined_up(keys, order), view.scaling)
        scores[..., view.held - self.history :] = float("-inf")
        if self.group == "max":
            scores = scores.amax(dim=3, keepdim=True)
        weights = torch.nan_to_num(torch.softmax(scores, dim=-1)).mean(dim=(3, 4))
        return at_slots(pooled(weights, self.pool, self.kernel), order, keys.shape[3])
