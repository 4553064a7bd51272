"""Two tiers: the active set in slots on the device, and every KV on the host."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from zoomr.stores.base import StoreSize, grown
from zoomr.stores.host import HostRow
from zoomr.stores.moves import plan_moves, runs


class SlotStore:
    """Active KVs of a batch in slots without gaps, the same for all layers and heads; the host has everything.

    Keys are rotated at absolute positions, so that the order of slots is free. The prompt and
    new tokens take the slots at the end and are copied to the host at the row's next refresh, before anything can
    leave; a refresh then moves only the difference between the old and the new active set.

    Parameters
    ----------
    size : StoreSize
    tier : torch.device or None
        Where the slots are, if not on the model's device.
    """

    def __init__(self, size: StoreSize, tier: torch.device | None = None):
        self.size, self.device = size, size.device
        self.tier = tier or size.device
        self.pin = self.tier.type == "cpu" and size.device.type == "cuda"
        self.kv = size.empty(size.shape.layers, device=self.tier)
        self.where = [np.empty(0, dtype=np.int64) for _ in range(size.batch)]  # position of the token in each slot
        self.used = [0] * size.batch
        self.saved = [0] * size.batch  # tokens from this slot on are not on the host yet
        self.hosts = [HostRow(size) for _ in range(size.batch)]
        self.longest = 0
        self._mask: Tensor | None = None

    def admit(self, row: int, keys: list[Tensor], values: list[Tensor], ledger: Tensor | None = None) -> None:
        """See `Store.admit`."""
        length = keys[0].shape[1]
        self._reserve(length)
        kv = torch.stack([torch.stack(pair) for pair in zip(keys, values, strict=True)])
        self.kv[:, :, row, :, :length] = kv.to(self.tier)
        self.where[row] = np.arange(length)
        self.hosts[row] = HostRow(self.size)
        self.used[row], self.saved[row] = length, 0

    def move(self, source: int, target: int) -> None:
        """See `Store.move`."""
        used = self.used[source]
        self.kv[:, :, target, :, :used] = self.kv[:, :, source, :, :used]
        self.where[target], self.used[target], self.saved[target] = self.where[source], used, self.saved[source]
        self.hosts[target], self.hosts[source] = self.hosts[source], HostRow(self.size)

    def open(self, positions: list[int]) -> None:
        """See `Store.open`."""
        rows = len(positions)
        self.longest = max(positions)
        slots = self.used[:rows]
        self._slots = torch.tensor(slots, device=self.device)
        self._rows = torch.arange(rows, device=self.device)
        for row, (slot, position) in enumerate(zip(slots, positions, strict=True)):
            if slot == len(self.where[row]):
                self.where[row] = np.concatenate([self.where[row], np.empty(self.size.block, dtype=np.int64)])
            self.where[row][slot] = position
            self.used[row] = slot + 1
        self._filled = max(slots) + 1
        self._reserve(self._filled)
        ragged = min(slots) + 1 < self._filled
        ends = self._slots[:, None, None, None]
        self._mask = torch.arange(self._filled, device=self.device) <= ends if ragged else None

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """See `Store.write`."""
        return self._write(self.kv[layer], keys, values)

    def mask(self, layer: int) -> Tensor | None:
        """See `Store.mask`."""
        return self._mask

    def add_attention(self, layer: int, weights: Tensor) -> None:
        """See `Store.add_attention`; a recalling policy keeps no ledger."""
        raise NotImplementedError

    def install(self, rows: list[int], active: Tensor) -> list[int]:
        """See `RecallStore.install`."""
        chosen = active.cpu().numpy()
        return [self._install(row, chosen[place]) for place, row in enumerate(rows)]

    def keys_of(self, row: int, start: int, stop: int) -> Tensor:
        """See `RecallStore.keys_of`: from the slots, or from the host where a part has left already."""
        held = self.where[row][: self.used[row]]
        slots = np.flatnonzero((held >= start) & (held < stop))
        if len(slots) < stop - start:
            self._save(row)
            return self.hosts[row].read([(start, stop)], self.device)[:, 0]
        slots = slots[np.argsort(held[slots])]
        return self.kv[:, 0, row][:, :, slots].to(self.device)

    def all_keys(self, rows: list[int], length: int) -> Tensor:
        """See `RecallStore.all_keys`."""
        shape = self.size.shape
        dimensions = (shape.layers, len(rows), shape.kv_heads, length, shape.head_dim)
        keys = torch.zeros(dimensions, dtype=self.size.dtype, device=self.device)
        for place, row in enumerate(rows):
            self._save(row)
            known = min(length, self.hosts[row].length)
            keys[:, place, :, :known] = self.hosts[row].read([(0, known)], self.device)[:, 0]
        return keys

    def tensors(self) -> dict[str, list[Tensor]]:
        """See `Store.tensors`."""
        return {"device": [self.kv], "host": [block for host in self.hosts for block in host.blocks]}

    def _write(self, held: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        rows = keys.shape[0]
        held[0][self._rows, :, self._slots] = keys[:, :, 0]
        held[1][self._rows, :, self._slots] = values[:, :, 0]
        return held[0, :rows, :, : self._filled], held[1, :rows, :, : self._filled]

    def _save(self, row: int) -> int:
        """Copy the row's new tokens to the host; returns the bytes."""
        new = self.kv[:, :, row, :, self.saved[row] : self.used[row]]
        self.saved[row] = self.used[row]
        return self.hosts[row].append(new) if new.shape[3] else 0

    def _install(self, row: int, active: np.ndarray) -> int:
        moved = self._save(row)
        where, used = self.where[row], self.used[row]
        moves = plan_moves(where[:used], active)
        self._reserve(moves.size)
        if moves.size > len(where):
            where = self.where[row] = np.concatenate([where, np.empty(moves.size - len(where), dtype=np.int64)])
        held, split = self.kv[:, :, row], len(moves.movers)
        if split:
            holes = torch.from_numpy(moves.holes[:split]).to(self.tier)
            held.index_copy_(3, holes, held[:, :, :, torch.from_numpy(moves.movers).to(self.tier)])
            where[moves.holes[:split]] = where[moves.movers]
        if len(moves.arriving):
            arrived = self.hosts[row].read(runs(moves.arriving), self.tier)
            held.index_copy_(3, torch.from_numpy(moves.holes[split:]).to(self.tier), arrived)
            where[moves.holes[split:]] = moves.arriving
            moved += len(moves.arriving) * self.size.token_bytes
        self.used[row] = self.saved[row] = moves.size
        return moved

    def _reserve(self, slots: int) -> None:
        present = self.kv.shape[4]
        if slots > present:
            self.kv = grown(self.kv, self.size.capacity(slots, present), 4, self.pin)
