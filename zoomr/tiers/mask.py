"""The full cache with a boolean mask: nothing is moved or freed. What every other tier is compared with."""

from __future__ import annotations

import torch
from torch import Tensor

from zoomr.policies.base import Change
from zoomr.policies.spans import label_spans
from zoomr.tiers.base import Size, resized
from zoomr.tiers.low import rounded


class MaskTiers:
    """Full cache of a batch; the slot of a token is its absolute position.

    Parameters
    ----------
    size : Size
    groups : (int, int)
        Number of choices over layers and KV heads.
    received : bool
        Keep a sum of attention weights for every slot, (L, B, H, S) in fp32.
    bits : int or None
        What leaves to low precision is rounded to so many bits where it is.
    """

    def __init__(self, size: Size, groups: tuple[int, int] = (1, 1), received: bool = False, bits: int | None = None):
        self.size, self.device, self.bits = size, size.device, bits
        shape = size.shape
        self.kv = size.buffers(shape.layers)
        self.valid = torch.zeros(groups[0], size.batch, groups[1], 0, dtype=torch.bool, device=self.device)
        self.low = torch.zeros_like(self.valid)  # attended to, and no longer among the slots
        self.received = (
            torch.zeros(shape.layers, size.batch, shape.kv_heads, 0, device=self.device) if received else None
        )
        self.lengths = [0] * size.batch
        self.whole = [True] * size.batch
        self._mask: Tensor | None = None

    def admit(self, row: int, keys: list[Tensor], values: list[Tensor], received: Tensor | None = None) -> None:
        """See `Tiers.admit`."""
        length = keys[0].shape[1]
        self._reserve(length)
        for buffer, tensors in zip(self.kv, (keys, values), strict=True):
            for layer, tensor in enumerate(tensors):
                buffer[layer, row, :, :length] = tensor
        self.valid[:, row] = self.low[:, row] = False
        self.valid[:, row, :, :length] = True
        if self.received is not None and received is not None:
            self.received[:, row] = 0.0
            self.received[:, row, :, :length] = received
        self.lengths[row], self.whole[row] = length, True

    def move(self, source: int, target: int) -> None:
        """See `Tiers.move`."""
        length = self.lengths[source]
        for buffer in self.kv:
            buffer[:, target, :, :length] = buffer[:, source, :, :length]
        for held in (self.valid, self.low):
            held[:, target] = held[:, source]
        if self.received is not None:
            self.received[:, target] = self.received[:, source]
        self.lengths[target], self.whole[target] = length, self.whole[source]

    def open(self, positions: list[int]) -> None:
        """See `Tiers.open`."""
        rows, self._filled = len(positions), max(positions) + 1
        self._reserve(self._filled)
        self._rows = torch.arange(rows, device=self.device)
        self._slots = torch.tensor(positions, device=self.device)
        self.valid[:, self._rows, :, self._slots] = True
        self.lengths[:rows] = [position + 1 for position in positions]
        all_whole = all(self.whole[:rows]) and min(positions) + 1 == self._filled
        attended = self.valid[:, :rows, :, None, : self._filled]
        self._mask = None if all_whole else attended | self.low[:, :rows, :, None, : self._filled]

    def append(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """See `Tiers.append`."""
        for buffer, new in zip(self.kv, (keys, values), strict=True):
            buffer[layer][self._rows, :, self._slots] = new[:, :, 0]

    def read(self, layer: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """See `Tiers.read`."""
        rows = len(self._rows)
        keys, values = (buffer[layer, :rows, :, : self._filled] for buffer in self.kv)
        return keys, values, None if self._mask is None else self._mask[min(layer, self._mask.shape[0] - 1)]

    def receive(self, layer: int, weights: Tensor) -> None:
        """See `Tiers.receive`."""
        if self.received is not None:
            self.received[layer, : weights.shape[0], :, : weights.shape[2]] += weights

    def places(self, layer: int) -> tuple[Tensor, Tensor]:
        """See `Tiers.places`."""
        valid = self.valid[min(layer, self.valid.shape[0] - 1), : len(self._rows), :, : self._filled]
        return torch.arange(self._filled, device=self.device).expand(valid.shape), valid

    def slots(self, rows: list[int], layers: slice) -> tuple[Tensor, Tensor, Tensor | None]:
        """See `Tiers.slots`."""
        length = max(self.lengths[row] for row in rows)
        index = slice(0, len(rows)) if rows == list(range(len(rows))) else rows
        own = layers if self.valid.shape[0] > 1 else slice(0, 1)
        positions = torch.arange(length, device=self.device)[None, None, None]
        received = None if self.received is None else self.received[layers, index, :, :length]
        return positions, self.valid[own, index, :, :length], received

    def slot_kv(self, rows: list[int], layers: slice, part: int) -> Tensor:
        """See `Tiers.slot_kv`."""
        length = max(self.lengths[row] for row in rows)
        return self.kv[part][layers, :, :, :length][:, rows]

    def keys_of(self, row: int, start: int, stop: int) -> Tensor:
        """See `Tiers.keys_of`."""
        return self.kv[0][:, row, :, start:stop]

    def apply(self, change: Change, lengths: list[int]) -> list[int]:
        """See `Tiers.apply`."""
        if change.spans is not None:
            for row, spans, length in zip(change.rows, change.spans, lengths, strict=True):
                self.valid[0, row, 0, :length] = (label_spans(spans, length) >= 0).to(self.device)
        else:
            assert change.leave is not None
            self._leave(change.rows, change.leave, change.to == "lower")
        for row in change.rows:
            self.whole[row] = False
        return [0] * len(change.rows)

    def tensors(self) -> dict[str, list[Tensor]]:
        """See `Tiers.tensors`."""
        return {"device": list(self.kv), "host": [], "state": [] if self.received is None else [self.received]}

    def _leave(self, rows: list[int], slots: Tensor, to_low: bool) -> None:
        def index(layers: int, heads: int) -> tuple[Tensor, ...]:
            layer = torch.arange(layers, device=self.device)[:, None, None, None]
            head = torch.arange(heads, device=self.device)[None, None, :, None]
            return layer, torch.tensor(rows, device=self.device)[None, :, None, None], head, slots

        slots = slots.sort(dim=-1).values
        own = index(self.valid.shape[0], self.valid.shape[2])
        self.valid[own] = False
        if to_low:
            assert self.bits is not None
            self.low[own] = True
            every = index(self.size.shape.layers, self.size.shape.kv_heads)
            keys, values = rounded(self.kv[0][every], self.kv[1][every], self.bits)
            self.kv[0][every], self.kv[1][every] = keys, values

    def _reserve(self, slots: int) -> None:
        present = self.kv[0].shape[-2]
        if slots <= present:
            return
        capacity = self.size.capacity(slots, present)
        self.kv = [resized(buffer, capacity) for buffer in self.kv]
        self.valid, self.low = (resized(held, capacity, dim=-1) for held in (self.valid, self.low))
        if self.received is not None:
            self.received = resized(self.received, capacity, dim=-1)
