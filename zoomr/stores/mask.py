"""The full cache with a boolean mask: nothing is moved or freed. What every other store is compared with."""

from __future__ import annotations

import torch
from torch import Tensor

from zoomr.stores.base import StoreSize, grown, write_prompt


class MaskStore:
    """Full cache of a batch; the slot of a token is its absolute position.

    Parameters
    ----------
    size : StoreSize
    groups : (int, int)
        Number of choices over layers and KV heads.
    ledger : bool
        Keep a sum of attention weights for every slot, (L, B, H, S) in fp32.
    """

    def __init__(self, size: StoreSize, groups: tuple[int, int] = (1, 1), ledger: bool = False):
        self.size, self.device = size, size.device
        shape = size.shape
        self.kv = size.empty(shape.layers)
        self.valid = torch.zeros(groups[0], size.batch, groups[1], 0, dtype=torch.bool, device=self.device)
        self.ledger = torch.zeros(shape.layers, size.batch, shape.kv_heads, 0, device=self.device) if ledger else None
        self.lengths = [0] * size.batch
        self.whole = [True] * size.batch
        self.longest = 0
        self._mask: Tensor | None = None

    def admit(self, row: int, keys: list[Tensor], values: list[Tensor], ledger: Tensor | None = None) -> None:
        """See `Store.admit`."""
        length = keys[0].shape[1]
        self._reserve(length)
        write_prompt(self.kv, row, keys, values)
        self.valid[:, row] = False
        self.valid[:, row, :, :length] = True
        if self.ledger is not None and ledger is not None:
            self.ledger[:, row] = 0.0
            self.ledger[:, row, :, :length] = ledger
        self.lengths[row], self.whole[row] = length, True

    def move(self, source: int, target: int) -> None:
        """See `Store.move`."""
        length = self.lengths[source]
        self.kv[:, :, target, :, :length] = self.kv[:, :, source, :, :length]
        self.valid[:, target] = self.valid[:, source]
        if self.ledger is not None:
            self.ledger[:, target] = self.ledger[:, source]
        self.lengths[target], self.whole[target] = length, self.whole[source]

    def open(self, positions: list[int]) -> None:
        """See `Store.open`."""
        rows = len(positions)
        self.longest = max(positions)
        self._reserve(self.longest + 1)
        self._rows = torch.arange(rows, device=self.device)
        self._slots = torch.tensor(positions, device=self.device)
        self.valid[:, self._rows, :, self._slots] = True
        self.lengths[:rows] = [position + 1 for position in positions]
        all_whole = all(self.whole[:rows]) and min(positions) == self.longest
        self._mask = None if all_whole else self.valid[:, :rows, :, None, : self.longest + 1]

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """See `Store.write`."""
        rows, length = keys.shape[0], self.longest + 1
        held = self.kv[layer]
        held[0][self._rows, :, self._slots] = keys[:, :, 0]
        held[1][self._rows, :, self._slots] = values[:, :, 0]
        return held[0, :rows, :, :length], held[1, :rows, :, :length]

    def mask(self, layer: int) -> Tensor | None:
        """See `Store.mask`."""
        if self._mask is None:
            return None
        return self._mask[min(layer, self._mask.shape[0] - 1)]

    def add_attention(self, layer: int, weights: Tensor) -> None:
        """See `Store.add_attention`."""
        assert self.ledger is not None
        self.ledger[layer, : weights.shape[0], :, : weights.shape[2]] += weights

    def install(self, rows: list[int], active: Tensor) -> list[int]:
        """See `RecallStore.install`."""
        self.valid[0, rows, 0, : active.shape[1]] = active
        self._reduced(rows)
        return [0] * len(rows)

    def keys_of(self, row: int, start: int, stop: int) -> Tensor:
        """See `RecallStore.keys_of`."""
        return self.kv[:, 0, row, :, start:stop]

    def all_keys(self, rows: list[int], length: int) -> Tensor:
        """See `RecallStore.all_keys`."""
        return self.kv[:, 0, rows, :, :length]

    def slots(self, rows: list[int]) -> tuple[Tensor, Tensor, Tensor | None]:
        """See `EvictStore.slots`."""
        length = max(self.lengths[row] for row in rows)
        index = slice(0, len(rows)) if rows == list(range(len(rows))) else rows
        positions = torch.arange(length, device=self.device)[None, None, None]
        ledger = None if self.ledger is None else self.ledger[:, index, :, :length]
        return positions, self.valid[:, index, :, :length], ledger

    def slot_keys(self, rows: list[int]) -> Tensor:
        """See `EvictStore.slot_keys`."""
        return self.kv[:, 0, rows, :, : max(self.lengths[row] for row in rows)]

    def drop(self, rows: list[int], lowest: Tensor) -> None:
        """See `EvictStore.drop`."""
        layers, _, heads, _ = lowest.shape
        layer = torch.arange(layers, device=self.device)[:, None, None, None]
        head = torch.arange(heads, device=self.device)[None, None, :, None]
        row = torch.tensor(rows, device=self.device)[None, :, None, None]
        self.valid[layer, row, head, lowest] = False
        self._reduced(rows)

    def tensors(self) -> dict[str, list[Tensor]]:
        """See `Store.tensors`."""
        return {"device": [self.kv], "host": []}

    def _reduced(self, rows: list[int]) -> None:
        for row in rows:
            self.whole[row] = False

    def _reserve(self, slots: int) -> None:
        present = self.kv.shape[4]
        if slots <= present:
            return
        capacity = self.size.capacity(slots, present)
        self.kv, self.valid = grown(self.kv, capacity, 4), grown(self.valid, capacity, 3)
        if self.ledger is not None:
            self.ledger = grown(self.ledger, capacity, 3)
