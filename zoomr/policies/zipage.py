"""Zipage's selection: attention that fades slowly, less redundancy within blocks (arXiv 2603.08743)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from zoomr.errors import UserError
from zoomr.policies.base import Records, Scope, Site, State
from zoomr.policies.budgeted import Budgeted, Eviction
from zoomr.policies.checks import flags, share, whole
from zoomr.policies.observed import at_slots, in_order, lined_up, logits, pooled
from zoomr.policies.rkv import NEAR
from zoomr.policies.views import Clock, SlotView, View


@dataclass(frozen=True, kw_only=True)
class Zipage(Budgeted):
    """When the last block of a row is full, keep all but a block of its KVs, one choice a KV head.

    The selection alone: no pages, and blocks are of neighbours in time, not of the engine's store. The authors keep 8
    of 9 blocks of 256 tokens, which is `Zipage(budget=2303)`.

    Parameters
    ----------
    interval : int
        Tokens between evictions: a block of the engine.
    block : int
        KVs within which redundancy is looked for.
    history : int
        Number of last queries; as many last tokens are never dropped.
    sinks : int
        First tokens that are never dropped.
    fading : float
        A KV's attention is at least this part of what it was at the eviction before; 0: it is the present one.
    kernel : int
        Width of the max pooling over neighbouring KVs, odd.
    pool_again : bool
        Pool at every eviction, not only at a row's first.
    importance : float
        Share of the attention in the worth; the rest is for how little a key repeats.
    temperature : float
        Of the softmax over redundancies.
    """

    interval: int = 256  # type: ignore[misc]
    block: int = 256
    history: int = 16  # type: ignore[misc]
    sinks: int = 0  # type: ignore[misc]
    fading: float = 0.8
    kernel: int = 5
    pool_again: bool = False
    importance: float = 0.2
    temperature: float = 0.4

    records: ClassVar[Records] = Records.HISTORY | Records.KEYS
    scope: ClassVar[Scope] = "head"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self, 1, "interval", "block", "history", "kernel")
        whole(self, 0, "sinks")
        share(self, "fading", "importance")
        flags(self, "pool_again")
        if self.kernel % 2 == 0:
            raise UserError(f"kernel={self.kernel}: an odd number is needed.")
        if not self.temperature > 0:
            raise UserError(f"temperature={self.temperature}: a number above 0 is needed.")

    def keep_last(self, prompt: int) -> int:
        """The tokens whose queries are kept."""
        return self.history

    def attention(self, view: SlotView, order: Tensor, keys: Tensor) -> Tensor:
        """Largest weight in the group, averaged over the last queries, which see what is not newer, (L, R, H, n)."""
        assert view.history is not None
        scores = logits(view.history, keys, view.scaling)
        number = scores.shape[-2]
        later = torch.ones(number, view.held, dtype=torch.bool, device=keys.device).triu(view.held - number + 1)
        return torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1).amax(dim=3).mean(dim=3)

    def worth(self, attention: Tensor, keys: Tensor) -> Tensor:
        """The mix of attention and redundancy, (L, R, H, n)."""
        repeats = redundancy(keys, self.block) / (self.temperature * self.block)
        return self.importance * attention - (1 - self.importance) * torch.softmax(repeats, dim=-1)

    def rank(self, view: SlotView) -> Tensor:
        """The worth at a row's first eviction."""
        stored = view.keys()
        order = in_order(view, stored.shape[2])
        keys = lined_up(stored, order)
        attention = pooled(self.attention(view, order, keys), "max", self.kernel)
        return at_slots(self.worth(attention, keys), order, stored.shape[3])

    def start(self, site: Site) -> State:
        """A state that remembers the attention that was."""
        return Fading(self, site)


class Fading(Eviction):
    """An eviction that remembers the attention of each layer's and row's KVs, by position."""

    policy: Zipage

    def __init__(self, policy: Zipage, site: Site):
        super().__init__(policy, site)
        self.before: list[dict[int, tuple[Tensor, Tensor]]] = [{} for _ in range(site.batch)]

    def admit(self, row: int, clock: Clock) -> None:
        """See `State.admit`."""
        super().admit(row, clock)
        self.before[row] = {}

    def move(self, source: int, target: int) -> None:
        """See `State.move`."""
        super().move(source, target)
        self.before[target], self.before[source] = self.before[source], {}

    def tensors(self) -> list[Tensor]:
        """Positions and attention of the KVs at each row's last eviction."""
        return [tensor for row in self.before for pair in row.values() for tensor in pair]

    def _rank(self, view: View, rows: list[int], layers: slice, slots: SlotView) -> Tensor:
        policy, stored = self.policy, slots.keys()
        order = in_order(slots, stored.shape[2])
        keys = lined_up(stored, order)
        attention = policy.attention(slots, order, keys)
        positions = slots.positions.expand(*order.shape[:3], -1).gather(-1, order)
        for place, row in enumerate(rows):
            now, here = attention[:, place], positions[:, place].contiguous()
            if policy.fading and layers.start in self.before[row]:
                known, was = self.before[row][layers.start]
                index = torch.searchsorted(known, here).clamp(max=known.shape[-1] - 1)
                faded = torch.where(known.gather(-1, index) == here, was.gather(-1, index) * policy.fading, 0.0)
                now = attention[:, place] = torch.maximum(now, faded)
            again = layers.start in self.before[row]
            self.before[row][layers.start] = here, now.clone()
            if policy.pool_again or not again:
                attention[:, place] = pooled(now, "max", policy.kernel)
        return at_slots(policy.worth(attention, keys), order, stored.shape[3])


def redundancy(keys: Tensor, block: int) -> Tensor:
    """Sum of each key's cosines (..., n, d) within its block, without the newest near copy of each key, (..., n)."""
    unit = keys / (keys.norm(dim=-1, keepdim=True) + 1e-8)
    number = unit.shape[-2]
    blocks = torch.nn.functional.pad(unit, (0, 0, 0, -number % block)).unflatten(-2, (-1, block))
    cosines = blocks @ blocks.transpose(-1, -2)
    cosines.diagonal(dim1=-2, dim2=-1).zero_()
    near = cosines > NEAR
    newest = block - 1 - near.flip(-1).byte().argmax(dim=-1, keepdim=True)
    spared = torch.where(near.any(dim=-1, keepdim=True), 0.0, cosines.gather(-1, newest))
    return cosines.scatter_(-1, newest, spared).sum(dim=-2).flatten(-2)[..., :number]
