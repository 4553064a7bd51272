"""Slots on the device: what is attended to, without gaps, and what lies below."""

from __future__ import annotations

import torch
from torch import Tensor

from zoomr.policies.base import Change
from zoomr.policies.spans import label_spans
from zoomr.tiers.base import Size, resized
from zoomr.tiers.host import HostRow, runs
from zoomr.tiers.low import LowPrecision

FAR = torch.iinfo(torch.int64).max


class SlotTiers:
    """Active KVs of a batch in slots without gaps; each group of heads holds its own, all groups equally many.

    Keys are rotated at absolute positions, so that the order of slots is free: new tokens take the slots at the end,
    and where some leave, the last ones take their places. With a host tier, every KV is copied there once, at its row's
    next change, before anything can leave; a change then moves only the difference.

    Parameters
    ----------
    size : Size
    groups : (int, int)
        Number of choices over layers and KV heads.
    received : bool
        Keep a sum of attention weights for every slot, (L, B, H, S) in fp32, that moves with its KV.
    host : bool
        Keep every KV on the host too.
    low : LowPrecision or None
        The tier for what leaves and is still attended to.
    place : torch.device or None
        Where the slots are, if not on the model's device.
    """

    def __init__(
        self,
        size: Size,
        groups: tuple[int, int] = (1, 1),
        received: bool = False,
        host: bool = False,
        low: LowPrecision | None = None,
        place: torch.device | None = None,
    ):
        self.size, self.device, self.low = size, size.device, low
        shape = size.shape
        self.place = place or size.device
        self.pin = self.place.type == "cpu" and size.device.type == "cuda"
        self.kv = size.buffers(shape.layers, device=self.place)
        self.positions = torch.full((groups[0], size.batch, groups[1], 0), FAR, device=self.device)
        self.received = (
            torch.zeros(shape.layers, size.batch, shape.kv_heads, 0, device=self.device) if received else None
        )
        self.hosts = [HostRow(size) for _ in range(size.batch)] if host else None
        self.saved = [0] * size.batch  # tokens from this slot on are not on the host yet
        self.used = [0] * size.batch
        self.peak = 0  # most slots of a row that a step attended to
        self._mask: Tensor | None = None

    def admit(self, row: int, keys: list[Tensor], values: list[Tensor], received: Tensor | None = None) -> None:
        """See `Tiers.admit`."""
        length = keys[0].shape[1]
        self._reserve(length)
        for buffer, tensors in zip(self.kv, (keys, values), strict=True):
            for layer, tensor in enumerate(tensors):
                buffer[layer, row, :, :length] = tensor
        self.positions[:, row, :, :length] = torch.arange(length, device=self.device)
        if self.received is not None and received is not None:
            self.received[:, row, :, :length] = received
        if self.hosts is not None:
            self.hosts[row] = HostRow(self.size)
        if self.low is not None:
            self.low.clear(row)
        self.used[row], self.saved[row] = length, 0

    def move(self, source: int, target: int) -> None:
        """See `Tiers.move`."""
        used = self.used[source]
        for buffer in self.kv:
            buffer[:, target, :, :used] = buffer[:, source, :, :used]
        self.positions[:, target] = self.positions[:, source]
        if self.received is not None:
            self.received[:, target] = self.received[:, source]
        if self.hosts is not None:
            self.hosts[target], self.hosts[source] = self.hosts[source], HostRow(self.size)
        if self.low is not None:
            self.low.move(source, target)
        self.used[target], self.saved[target] = used, self.saved[source]

    def open(self, positions: list[int]) -> None:
        """See `Tiers.open`."""
        rows = len(positions)
        ends = self.used[:rows]
        self._reserve(max(ends) + 1)
        self._rows = torch.arange(rows, device=self.device)
        self._slots = torch.tensor(ends, device=self.device)
        # at equal ends a slice is written, which is faster than places named one by one
        self._end = ends[0] if min(ends) == max(ends) else None
        newest = torch.tensor(positions, device=self.device)
        self.positions[:, self._rows, :, self._slots] = newest[:, None, None]
        if self.received is not None:
            self.received[:, self._rows, :, self._slots] = 0.0
        self.used[:rows] = [end + 1 for end in ends]
        self._filled = max(self.used[:rows])
        self.peak = max(self.peak, self._filled)
        self._mask = None if self._end is not None else self._occupied(list(range(rows)), self._filled)[:, None]

    def append(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """See `Tiers.append`."""
        self._append([buffer[layer] for buffer in self.kv], keys, values)

    def read(self, layer: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """See `Tiers.read`."""
        return self._read([buffer[layer] for buffer in self.kv], layer)

    def receive(self, layer: int, weights: Tensor) -> None:
        """See `Tiers.receive`."""
        if self.received is not None:
            self.received[layer, : weights.shape[0], :, : self._filled] += weights[:, :, : self._filled]

    def places(self, layer: int) -> tuple[Tensor, Tensor]:
        """See `Tiers.places`."""
        rows = list(range(len(self._rows)))
        positions = self.positions[min(layer, self.positions.shape[0] - 1), : len(rows), :, : self._filled]
        return positions, self._occupied(rows, self._filled).expand(positions.shape)

    def slots(self, rows: list[int], layers: slice) -> tuple[Tensor, Tensor, Tensor | None]:
        """See `Tiers.slots`."""
        filled = max(self.used[row] for row in rows)
        index = slice(0, len(rows)) if rows == list(range(len(rows))) else rows
        own = layers if self.positions.shape[0] > 1 else slice(0, 1)
        positions = self.positions[own, index, :, :filled]
        present = self._occupied(rows, filled)[None].expand(positions.shape)
        return positions, present, None if self.received is None else self.received[layers, index, :, :filled]

    def slot_kv(self, rows: list[int], layers: slice, part: int) -> Tensor:
        """See `Tiers.slot_kv`."""
        filled = max(self.used[row] for row in rows)
        return self.kv[part][layers, :, :, :filled][:, rows].to(self.device)

    def keys_of(self, row: int, start: int, stop: int) -> Tensor:
        """See `Tiers.keys_of`: from the slots, or from the host where a part has left already."""
        held = self.positions[0, row, 0, : self.used[row]]
        slots = ((held >= start) & (held < stop)).nonzero()[:, 0]
        if len(slots) < stop - start:
            assert self.hosts is not None
            self._save(row)
            return self.hosts[row].read([(start, stop)], self.device)[0]
        slots = slots[held[slots].argsort()].to(self.place)
        return self.kv[0][:, row].index_select(2, slots).to(self.device)

    def apply(self, change: Change, lengths: list[int]) -> list[int]:
        """See `Tiers.apply`."""
        if change.spans is not None:
            spans = zip(change.rows, change.spans, lengths, strict=True)
            moved = [self._install(row, label_spans(own, length) >= 0) for row, own, length in spans]
        else:
            assert change.leave is not None
            moved = [0] * len(change.rows)
            if change.to == "lower":
                assert self.low is not None
                self.low.take(change.rows, self._picked(change.rows, change.leave))
            self._vacate(change.rows, change.leave)
        self._fit()
        return moved

    def tensors(self) -> dict[str, list[Tensor]]:
        """See `Tiers.tensors`."""
        low = [] if self.low is None else self.low.tensors()
        host = [block for row in self.hosts or [] for block in row.blocks]
        return {"device": [*self.kv, *low], "host": host, "state": [] if self.received is None else [self.received]}

    def _append(self, held: list[Tensor], keys: Tensor, values: Tensor) -> None:
        rows = keys.shape[0]
        for buffer, new in zip(held, (keys, values), strict=True):
            if self._end is not None:
                buffer[:rows, :, self._end] = new[:, :, 0]
            else:
                buffer[self._rows, :, self._slots] = new[:, :, 0]

    def _read(self, held: list[Tensor], layer: int) -> tuple[Tensor, Tensor, Tensor | None]:
        rows = len(self._rows)
        keys, values = (buffer[:rows, :, : self._filled] for buffer in held)
        if self.low is None or not self.low.holds(rows):
            return keys, values, self._mask
        below, used = self.low.read(layer, rows)
        present = self._occupied(list(range(rows)), self._filled)[:, None]
        mask = torch.cat([present, used[:, None, None]], dim=-1)
        return torch.cat([keys, below[0]], dim=2), torch.cat([values, below[1]], dim=2), mask

    def _occupied(self, rows: list[int], filled: int) -> Tensor:
        """Which of the first slots are in use, (R, 1, filled)."""
        used = torch.tensor([self.used[row] for row in rows], device=self.device)
        return (torch.arange(filled, device=self.device) < used[:, None])[:, None]

    def _index(self, rows: list[int], slots: Tensor, place: torch.device) -> tuple[Tensor, ...]:
        """Indices that, with slots (Lg, R, Hg, n), name those of all layers and heads."""
        shape = self.size.shape
        layer = torch.arange(shape.layers, device=place)[:, None, None, None]
        head = torch.arange(shape.kv_heads, device=place)[None, None, :, None]
        return layer, torch.tensor(rows, device=place)[None, :, None, None], head, slots.to(place)

    def _picked(self, rows: list[int], slots: Tensor) -> list[Tensor]:
        """Keys and values in slots (Lg, R, Hg, n), in order of position: (L, R, H, n, d) each."""
        order = self.positions[:, rows].gather(-1, slots).argsort(dim=-1)
        index = self._index(rows, slots.gather(-1, order), self.place)
        return [buffer[index] for buffer in self.kv]

    def _vacate(self, rows: list[int], slots: Tensor) -> None:
        """Drop slots (Lg, R, Hg, n) of rows that hold equally many; the last slots that stay take their places."""
        number, used = slots.shape[-1], self.used[rows[0]]
        left = used - number
        staying = torch.ones(*slots.shape[:-1], used, dtype=torch.bool, device=slots.device).scatter_(-1, slots, False)
        # where fewer move than leave, the pairs beyond them lie behind the end and mean nothing
        movers = (~staying[..., left:]).sort(dim=-1, stable=True).indices + left
        holes = slots.gather(-1, (slots >= left).sort(dim=-1, stable=True).indices)
        source, target = self._index(rows, movers, self.place), self._index(rows, holes, self.place)
        for buffer in self.kv:
            buffer[target] = buffer[source]
        group = (torch.arange(size, device=self.device) for size in (self.positions.shape[0], self.positions.shape[2]))
        layer, head = next(group)[:, None, None, None], next(group)[None, None, :, None]
        row = torch.tensor(rows, device=self.device)[None, :, None, None]
        self.positions[layer, row, head, holes] = self.positions[layer, row, head, movers]
        if self.received is not None:
            self.received[self._index(rows, holes, self.device)] = self.received[self._index(rows, movers, self.device)]
        for one in rows:
            self.used[one] = left

    def _install(self, row: int, active: Tensor) -> int:
        """Hold just the `active` positions (T,); returns the bytes moved."""
        assert self.hosts is not None
        moved, used = self._save(row), self.used[row]
        held = self.positions[0, row, 0, :used].cpu()
        gone = (~active[held]).nonzero()[:, 0]
        arriving = active.clone()
        arriving[held] = False
        new = arriving.nonzero()[:, 0]
        reused = min(len(gone), len(new))
        size = used + len(new) - len(gone)
        self._reserve(size)
        if len(new):
            target = torch.cat([gone[:reused], torch.arange(used, used + len(new) - reused)])
            arrived = self.hosts[row].read(runs(new), self.place)
            for buffer, tensor in zip(self.kv, arrived, strict=True):
                buffer[:, row].index_copy_(2, target.to(self.place), tensor)
            self.positions[0, row, 0, target.to(self.device)] = new.to(self.device)
            moved += len(new) * self.size.token_bytes
        if len(gone) > reused:
            self._vacate([row], gone[reused:].to(self.device)[None, None, None])
        self.used[row] = self.saved[row] = size
        return moved

    def _save(self, row: int) -> int:
        """Copy the row's new tokens to the host; returns the bytes."""
        assert self.hosts is not None
        new = [buffer[:, row, :, self.saved[row] : self.used[row]] for buffer in self.kv]
        self.saved[row] = self.used[row]
        return self.hosts[row].append(new) if new[0].shape[2] else 0

    def _reserve(self, slots: int) -> None:
        if slots > self.kv[0].shape[-2]:
            self._resize(self.size.capacity(slots, self.kv[0].shape[-2]))

    def _fit(self) -> None:
        """Give back what a prompt needed and no step does."""
        needed = max(self.peak, *self.used)
        if self.kv[0].shape[-2] > 1.25 * needed + self.size.block:
            self._resize(self.size.capacity(needed, 0))

    def _resize(self, capacity: int) -> None:
        for part in range(len(self.kv)):  # one after the other, so that at no time both are held twice
            self.kv[part] = resized(self.kv[part], capacity, pin=self.pin)
        self.positions = resized(self.positions, capacity, dim=-1)
        if self.received is not None:
            self.received = resized(self.received, capacity, dim=-1)
