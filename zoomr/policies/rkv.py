"""R-KV: keep what the last queries attend to and no newer key repeats (Cai et al., arXiv 2505.24133)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from zoomr.errors import UserError
from zoomr.policies.base import Records, Scope
from zoomr.policies.budgeted import Budgeted
from zoomr.policies.checks import share, whole
from zoomr.policies.observed import at_slots, in_order, lined_up, logits, pooled
from zoomr.policies.views import SlotView

NEAR = 0.5  # cosine from which a key counts as a copy
BLOCK = 64  # keys compared with all others at a time, so that no square matrix exists


@dataclass(frozen=True, kw_only=True)
class RKV(Budgeted):
    """Every `interval` tokens, keep the KVs of high importance and low redundancy, one choice a KV head.

    Unlike the authors' code, neighbours are pooled by position and not in the order of the last event's scores, and
    room is made before the budget is passed, not each time `interval` tokens were fed.

    Parameters
    ----------
    interval : int
        Tokens between evictions.
    history : int
        Number of last queries; as many last tokens are never dropped.
    importance : float
        Share of the importance in the worth, lambda in the paper; the rest is for how little a key repeats.
    kernel : int
        Width of the pooling of the importance over neighbouring KVs, odd.
    """

    interval: int = 128  # type: ignore[misc]
    history: int = 8  # type: ignore[misc]
    importance: float = 0.1
    kernel: int = 7

    records: ClassVar[Records] = Records.HISTORY | Records.KEYS
    scope: ClassVar[Scope] = "head"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self, 1, "interval", "history", "kernel")
        share(self, "importance")
        if self.kernel % 2 == 0:
            raise UserError(f"kernel={self.kernel}: an odd number is needed.")

    def keep_last(self, prompt: int) -> int:
        """The tokens whose queries are kept."""
        return self.history

    def rank(self, view: SlotView) -> Tensor:
        """Importance to the last queries, less redundancy among all keys."""
        assert view.history is not None
        stored = view.keys()
        order = in_order(view, stored.shape[2])
        keys = lined_up(stored, order)
        scores = logits(view.history, keys, view.scaling).amax(dim=3)
        scores[..., view.held - self.history :] = float("-inf")
        importance = pooled(torch.softmax(scores, dim=-1).mean(dim=3), "max", self.kernel)
        worth = self.importance * importance - (1 - self.importance) * redundancy(keys)
        return at_slots(worth, order, stored.shape[3])


def redundancy(keys: Tensor) -> Tensor:
    """How much each key (..., n, d), in order of position, repeats others: softmax of its mean cosine, (..., n).

    Of the near copies of a key the newest is spared; a key without any spares the first one, as in the authors' code.
    """
    unit = keys / (keys.norm(dim=-1, keepdim=True) + 1e-8)
    number = unit.shape[-2]
    total = torch.zeros_like(unit[..., 0])
    for start in range(0, number, BLOCK):
        rows = torch.arange(start, min(start + BLOCK, number), device=keys.device)
        cosines = unit[..., rows, :] @ unit.transpose(-1, -2)
        cosines[..., rows - start, rows] = 0.0
        near = cosines > NEAR
        newest = number - 1 - near.flip(-1).byte().argmax(dim=-1, keepdim=True)
        newest = torch.where(near.any(dim=-1, keepdim=True), newest, 0)
        total += cosines.scatter_(-1, newest, 0.0).sum(dim=-2)
    return torch.softmax(total / number, dim=-1)
