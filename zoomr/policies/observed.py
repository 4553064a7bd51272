"""What the last queries see of the KVs that are left, in the order of their positions: what many ranks are made of."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import avg_pool1d, max_pool1d

from zoomr.policies.budgeted import FAR
from zoomr.policies.views import SlotView

Pool = Literal["avg", "max"]


def in_order(view: SlotView, heads: int) -> Tensor:
    """The slots in use, by position, (L, R, H, n) int64: neighbours are what is left, wherever it is stored."""
    order = torch.where(view.present, view.positions, FAR).argsort(dim=-1)[..., : view.held]
    shape = (order.shape[0], len(view.seeds), heads, view.held)
    return order.expand(shape)


def lined_up(x: Tensor, order: Tensor) -> Tensor:
    """Keys or values (L, R, H, S, d) in an order (L, R, H, n), in float32."""
    return x.gather(-2, order[..., None].expand(*order.shape, x.shape[-1])).float()


def at_slots(worth: Tensor, order: Tensor, slots: int) -> Tensor:
    """What is known in an order (L, R, H, n), at the slots (L, R, H, S); 0 where none is in use."""
    return worth.new_zeros(*order.shape[:-1], slots).scatter_(-1, order, worth)


def logits(history: Tensor, keys: Tensor, scaling: float) -> Tensor:
    """Scaled scores of queries (L, R, W, Hq, d) for keys (L, R, H, n, d), (L, R, H, g, W, n) in float32."""
    grouped = history.float().unflatten(3, (keys.shape[2], -1)).permute(0, 1, 3, 4, 2, 5)
    scores = grouped.flatten(3, 4) @ keys.transpose(-1, -2) * scaling
    return scores.unflatten(3, grouped.shape[3:5])


def pooled(weights: Tensor, pool: Pool, kernel: int) -> Tensor:
    """The mean or the largest of `kernel` neighbours, (..., n); the mean counts zeros beyond the ends."""
    lines = weights.reshape(-1, 1, weights.shape[-1])
    take = max_pool1d if pool == "max" else avg_pool1d
    return take(lines, kernel, stride=1, padding=kernel // 2).view(weights.shape)
