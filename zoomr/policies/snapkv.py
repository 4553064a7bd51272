"""SnapKV in its decoding forms: keep what the last queries attend to (arXiv 2404.14469; R-KV and Random Attention)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import avg_pool1d, max_pool1d

from zoomr.errors import UserError
from zoomr.policies.base import Records, Scope, SlotView
from zoomr.policies.budgeted import FAR, Budgeted
from zoomr.policies.checks import one_of, whole

Group = Literal["mean", "max"]
Pool = Literal["avg", "max"]


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
        """Pooled attention of the last queries, over the slots in the order of their positions."""
        assert view.history is not None
        keys = view.keys()
        layers, rows, kv_heads, slots, width = keys.shape
        number = view.history.shape[2]
        queries = view.history.float().view(layers, rows, number, kv_heads, -1, width)
        queries = queries.permute(0, 1, 3, 4, 2, 5).flatten(3, 4)
        scores = (queries @ keys.float().transpose(-1, -2)).view(layers, rows, kv_heads, -1, number, slots)
        candidates = view.present & (view.positions <= view.last - self.history)
        scores = (scores * view.scaling).masked_fill(~candidates[:, :, :, None, None], float("-inf"))
        if self.group == "max":
            scores = scores.amax(dim=3, keepdim=True)
        weights = torch.nan_to_num(torch.softmax(scores, dim=-1)).mean(dim=(3, 4))
        # neighbours are the KVs that are left, whatever lies between them in the store
        order = torch.where(view.present, view.positions, FAR).argsort(dim=-1)[..., : view.held]
        order = order.expand(layers, rows, kv_heads, view.held)
        lined = weights.gather(-1, order).flatten(0, 2)[:, None]
        pad = self.kernel // 2
        if self.pool == "max":
            pooled = max_pool1d(lined, self.kernel, stride=1, padding=pad)
        else:
            pooled = avg_pool1d(lined, self.kernel, stride=1, padding=pad)
        return torch.zeros_like(weights).scatter_(-1, order, pooled.view(order.shape))
