"""Real eviction: each group of heads holds its own slots, and a dropped KV is overwritten by the next token's."""

from __future__ import annotations

import torch
from torch import Tensor

from zoomr.stores.base import StoreSize, grown, write_prompt

FAR = torch.iinfo(torch.int64).max


class SlotEvictStore:
    """KVs of a batch without a host tier, for policies that never recall (and for the full cache).

    All groups of a row hold the same number of KVs. When one is dropped from each, its slot waits for the next token;
    when several are, the rest is compacted in the order of positions.

    Parameters
    ----------
    size : StoreSize
    groups : (int, int)
        Number of choices over layers and KV heads.
    ledger : bool
        Keep a sum of attention weights for every slot, (L, B, H, S) in fp32, that moves with its KV.
    """

    def __init__(self, size: StoreSize, groups: tuple[int, int] = (1, 1), ledger: bool = False):
        self.size, self.device = size, size.device
        shape = size.shape
        self.kv = size.empty(shape.layers)
        self.positions = torch.full((groups[0], size.batch, groups[1], 0), FAR, device=self.device)
        self.ledger = torch.zeros(shape.layers, size.batch, shape.kv_heads, 0, device=self.device) if ledger else None
        self.free = torch.zeros(groups[0], size.batch, groups[1], dtype=torch.int64, device=self.device)
        self.used = [0] * size.batch  # the next token's slot, where no dropped one waits
        self.hole = [False] * size.batch
        self.longest = 0
        self._mask: Tensor | None = None
        self._layer = torch.arange(groups[0], device=self.device)[:, None, None]
        self._group = torch.arange(groups[1], device=self.device)[None, None, :]
        self._head = torch.arange(shape.kv_heads, device=self.device)[None, :]

    def admit(self, row: int, keys: list[Tensor], values: list[Tensor], ledger: Tensor | None = None) -> None:
        """See `Store.admit`."""
        length = keys[0].shape[1]
        self._reserve(length)
        write_prompt(self.kv, row, keys, values)
        self.positions[:, row, :, :length] = torch.arange(length, device=self.device)
        if self.ledger is not None and ledger is not None:
            self.ledger[:, row, :, :length] = ledger
        self.used[row], self.hole[row] = length, False

    def move(self, source: int, target: int) -> None:
        """See `Store.move`."""
        used = self.used[source]
        self.kv[:, :, target, :, :used] = self.kv[:, :, source, :, :used]
        self.positions[:, target] = self.positions[:, source]
        if self.ledger is not None:
            self.ledger[:, target] = self.ledger[:, source]
        self.free[:, target] = self.free[:, source]
        self.used[target], self.hole[target] = used, self.hole[source]

    def open(self, positions: list[int]) -> None:
        """See `Store.open`."""
        rows = len(positions)
        self.longest = max(positions)
        self._rows = torch.arange(rows, device=self.device)
        ends = torch.tensor(self.used[:rows], device=self.device)[None, :, None]
        waiting = torch.tensor(self.hole[:rows], device=self.device)[None, :, None]
        self._slots = torch.where(waiting, self.free[:, :rows], ends)
        for row in range(rows):
            self.used[row] += not self.hole[row]
            self.hole[row] = False
        filled = max(self.used[:rows])
        self._reserve(filled)
        newest = torch.tensor(positions, device=self.device)[None, :, None]
        self.positions[self._layer, self._rows[None, :, None], self._group, self._slots] = newest
        if self.ledger is not None:
            self.ledger[self._layer, self._rows[None, :, None], self._group, self._slots] = 0.0
        self._filled = filled
        self._mask = self._occupied(list(range(rows)), filled) if min(self.used[:rows]) < filled else None

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """See `Store.write`."""
        rows = keys.shape[0]
        held = self.kv[layer]
        slots = self._slots[min(layer, self._slots.shape[0] - 1)]
        held[0][self._rows[:, None], self._head, slots] = keys[:, :, 0]
        held[1][self._rows[:, None], self._head, slots] = values[:, :, 0]
        return held[0, :rows, :, : self._filled], held[1, :rows, :, : self._filled]

    def mask(self, layer: int) -> Tensor | None:
        """See `Store.mask`."""
        return self._mask

    def add_attention(self, layer: int, weights: Tensor) -> None:
        """See `Store.add_attention`."""
        assert self.ledger is not None
        self.ledger[layer, : weights.shape[0], :, : weights.shape[2]] += weights

    def slots(self, rows: list[int]) -> tuple[Tensor, Tensor, Tensor | None]:
        """See `EvictStore.slots`."""
        filled = max(self.used[row] for row in rows)
        index = slice(0, len(rows)) if rows == list(range(len(rows))) else rows
        positions = self.positions[:, index, :, :filled]
        present = self._occupied(rows, filled).transpose(0, 1).expand(positions.shape)
        ledger = None if self.ledger is None else self.ledger[:, index, :, :filled]
        return positions, present, ledger

    def slot_keys(self, rows: list[int]) -> Tensor:
        """See `EvictStore.slot_keys`."""
        return self.kv[:, 0, rows, :, : max(self.used[row] for row in rows)]

    def drop(self, rows: list[int], lowest: Tensor) -> None:
        """See `EvictStore.drop`."""
        if lowest.shape[-1] == 1:
            self.free[:, rows] = lowest[..., 0]
            for row in rows:
                self.hole[row] = True
            return
        for place, row in enumerate(rows):
            self._compact(row, lowest[:, place])

    def tensors(self) -> dict[str, list[Tensor]]:
        """See `Store.tensors`."""
        return {"device": [self.kv], "host": []}

    def _occupied(self, rows: list[int], filled: int) -> Tensor:
        used = torch.tensor([self.used[row] for row in rows], device=self.device)
        return (torch.arange(filled, device=self.device) < used[:, None])[:, None, None, :]

    def _compact(self, row: int, lowest: Tensor) -> None:
        used, shape = self.used[row], self.size.shape
        left = used - lowest.shape[-1]
        held = self.positions[:, row, :, :used].clone().scatter_(-1, lowest, FAR)
        positions, order = held.sort(dim=-1)
        order = order[..., :left].expand(shape.layers, shape.kv_heads, left)
        gathered = order[:, None, :, :, None].expand(-1, 2, -1, -1, shape.head_dim)
        self.kv[:, :, row, :, :left] = self.kv[:, :, row, :, :used].gather(3, gathered)
        self.positions[:, row, :, :left] = positions[..., :left]
        if self.ledger is not None:
            self.ledger[:, row, :, :left] = self.ledger[:, row, :, :used].gather(2, order)
        self.used[row] = left

    def _reserve(self, slots: int) -> None:
        present = self.kv.shape[4]
        if slots <= present:
            return
        capacity = self.size.capacity(slots, present)
        self.kv, self.positions = grown(self.kv, capacity, 4), grown(self.positions, capacity, 3)
        if self.ledger is not None:
            self.ledger = grown(self.ledger, capacity, 3)
