"""The full cache with a boolean mask: nothing is moved or freed. What every other store is compared with."""

from __future__ import annotations

import torch
from torch import Tensor

from zoomr.compat import KVShape


class MaskStore:
    """Full cache of a batch; the slot of a token is its absolute position.

    Parameters
    ----------
    shape : KVShape
    batch : int
        Most rows at a time.
    groups : (int, int)
        Number of choices over layers and KV heads.
    dtype, device
        Of the model.
    ledger : bool
        Keep a sum of attention weights for every slot, (L, B, H, S) in fp32.
    block : int
        The buffer grows in multiples of this many slots.
    """

    def __init__(
        self,
        shape: KVShape,
        batch: int,
        groups: tuple[int, int],
        dtype: torch.dtype,
        device: torch.device,
        ledger: bool = False,
        block: int = 256,
    ):
        self.block = block
        self.kv = torch.zeros(2, shape.layers, batch, shape.kv_heads, 0, shape.head_dim, dtype=dtype, device=device)
        self.valid = torch.zeros(groups[0], batch, groups[1], 0, dtype=torch.bool, device=device)
        self.ledger = torch.zeros(shape.layers, batch, shape.kv_heads, 0, device=device) if ledger else None
        self.lengths = [0] * batch
        self.whole = [True] * batch
        self.longest = 0
        self.device = device

    def admit(self, row: int, keys: list[Tensor], values: list[Tensor], ledger: Tensor | None = None) -> None:
        """See `Store.admit`."""
        length = keys[0].shape[1]
        self._reserve(length)
        for layer, pair in enumerate(zip(keys, values, strict=True)):
            for part, tensor in enumerate(pair):
                self.kv[part, layer, row, :, :length] = tensor
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
        self.kv[0, layer][self._rows, :, self._slots] = keys[:, :, 0]
        self.kv[1, layer][self._rows, :, self._slots] = values[:, :, 0]
        return self.kv[0, layer, :rows, :, :length], self.kv[1, layer, :rows, :, :length]

    def mask(self, layer: int) -> Tensor | None:
        """See `Store.mask`."""
        if self._mask is None:
            return None
        return self._mask[min(layer, self._mask.shape[0] - 1)]

    def add_attention(self, layer: int, weights: Tensor) -> None:
        """Add a step's attention weights (n, H, S) to the ledger."""
        assert self.ledger is not None
        self.ledger[layer, : weights.shape[0], :, : weights.shape[2]] += weights

    def install(self, rows: list[int], active: Tensor) -> list[int]:
        """Attend to `active` (R, T), by absolute position, from the next step on; returns each row's bytes moved."""
        index = torch.tensor(rows, device=self.device)
        self.valid[0, index, 0, : active.shape[1]] = active
        for row in rows:
            self.whole[row] = False
        return [0] * len(rows)

    def keys_of(self, row: int, start: int, stop: int) -> Tensor:
        """Keys of the positions from `start` to `stop`, (L, H, n, d)."""
        return self.kv[0, :, row, :, start:stop]

    def all_keys(self, rows: list[int], length: int) -> Tensor:
        """Keys of the first `length` positions, (L, R, H, length, d)."""
        return self.kv[0][:, rows, :, :length]

    def slots(self, rows: list[int]) -> tuple[Tensor, Tensor, Tensor | None]:
        """Positions (1, 1, 1, S), presence (Lg, R, Hg, S) and ledger (L, R, H, S) of the slots in use."""
        length = max(self.lengths[row] for row in rows)
        index = slice(0, len(rows)) if rows == list(range(len(rows))) else rows
        positions = torch.arange(length, device=self.device)[None, None, None]
        ledger = None if self.ledger is None else self.ledger[:, index, :, :length]
        return positions, self.valid[:, index, :, :length], ledger

    def keep(self, rows: list[int], kept: Tensor) -> None:
        """Attend only to `kept` (Lg, R, Hg, S) of the slots in use, as many in each group."""
        index = slice(0, len(rows)) if rows == list(range(len(rows))) else rows
        self.valid[:, index, :, : kept.shape[3]] = kept
        for row in rows:
            self.whole[row] = False

    def _reserve(self, slots: int) -> None:
        capacity = self.kv.shape[4]
        if slots <= capacity:
            return
        extra = -(-max(slots - capacity, capacity // 4) // self.block) * self.block
        pad = torch.nn.functional.pad
        self.kv = pad(self.kv, (0, 0, 0, extra))
        self.valid = pad(self.valid, (0, extra))
        if self.ledger is not None:
            self.ledger = pad(self.ledger, (0, extra))
