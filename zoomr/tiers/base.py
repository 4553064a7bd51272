"""What every tier is made of: the size of its buffers, and how they grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from zoomr.policies.base import Change, Shape


@dataclass(frozen=True)
class Size:
    """Shape and place of a tier: `batch` rows at most, buffers that grow in multiples of `block` slots."""

    shape: Shape
    batch: int
    dtype: torch.dtype
    device: torch.device
    block: int = 256

    @property
    def widths(self) -> tuple[int, int]:
        """Dimensions of a key and of a value."""
        return self.shape.key_dim, self.shape.value_dim

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's KVs in all layers."""
        return self.shape.bytes_per_token(self.dtype.itemsize)

    def buffers(self, *leading: int, device: torch.device | None = None) -> list[Tensor]:
        """Keys and values without slots yet: (*leading, B, H, 0, d) each."""
        dimensions = (*leading, self.batch, self.shape.kv_heads, 0)
        return [torch.zeros(*dimensions, d, dtype=self.dtype, device=device or self.device) for d in self.widths]

    def sums(self) -> Tensor:
        """A number for each slot and KV head, (L, B, H, 0)."""
        return torch.zeros(self.shape.layers, self.batch, self.shape.kv_heads, 0, device=self.device)

    def capacity(self, slots: int, present: int) -> int:
        """Slots to allocate when `slots` are needed and `present` are there: a quarter more, in whole blocks."""
        return -(-max(slots, present + present // 4) // self.block) * self.block


def resized(buffer: Tensor, capacity: int, dim: int = -2, pin: bool = False) -> Tensor:
    """A larger or smaller buffer with the same content as far as it fits, zero (False) beyond it."""
    shape = list(buffer.shape)
    number = min(capacity, shape[dim])
    shape[dim] = capacity
    other = torch.zeros(shape, dtype=buffer.dtype, device=buffer.device, pin_memory=pin)
    other.narrow(dim, 0, number).copy_(buffer.narrow(dim, 0, number))
    return other


class Tiers(Protocol):
    """Keys and values of a batch. Rows are dense: a batch of n rows is rows 0 to n - 1."""

    size: Size

    def admit(self, row: int, keys: list[Tensor], values: list[Tensor], received: Tensor | None) -> None:
        """Start `row` with a prompt's KVs, one (H, T, d) tensor a layer, and the attention it received (L, H, T)."""

    def move(self, source: int, target: int) -> None:
        """Let the row at `source` continue at `target`."""

    def open(self, positions: list[int]) -> None:
        """Prepare a step in which row b holds the token of absolute position `positions[b]` beside the others."""

    def append(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Take the step's KVs of a layer, (n, H, 1, d) each."""

    def read(self, layer: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """What is attended to: keys and values (n, H, S, d), and which of them, bool (n, 1 or H, 1, S); None: all."""
        ...

    def receive(self, layer: int, weights: Tensor) -> None:
        """Add a step's attention weights (n, H, S) to what each slot has received."""

    def places(self, layer: int) -> tuple[Tensor, Tensor]:
        """Position of each slot that `read` returns, and whether it is in use, (n, 1 or H, S)."""
        ...

    def slots(self, rows: list[int], layers: slice) -> tuple[Tensor, Tensor, Tensor | None]:
        """Positions, presence (each broadcasts to (Lg, R, Hg, S)) and attention received (L, R, H, S) of the slots."""
        ...

    def slot_kv(self, rows: list[int], layers: slice, part: int) -> Tensor:
        """Keys (part 0) or values (part 1) in the slots that `slots` describes, (L, R, H, S, d)."""
        ...

    def keys_of(self, row: int, start: int, stop: int) -> Tensor:
        """Keys of the positions from `start` to `stop`, wherever they are, (L, H, n, d)."""
        ...

    def apply(self, change: Change, lengths: list[int]) -> list[int]:
        """Carry out a change of rows that have seen `lengths` tokens; returns the bytes moved in each."""
        ...

    def tensors(self) -> dict[str, list[Tensor]]:
        """The tensors that are held: KVs on the device and on the host; in state, the attention received."""
        ...
