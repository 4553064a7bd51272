"""What the decoding loop asks of a store.

Rows are dense: a batch of n rows is rows 0 to n - 1. A slot is a place for one token's KV in a row. Which slots are
attended to is decided for groups of heads: tensors that describe slots have shape (Lg, B, Hg, S), where (Lg, Hg) is
(1, 1) for a choice shared by all layers and heads, (L, 1) for one a layer, (L, H) for one a KV head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from zoomr.compat import KVShape

Scope = Literal["shared", "layer", "head"]


@dataclass(frozen=True)
class StoreSize:
    """Shape and place of a store: `batch` rows at most, buffers that grow in multiples of `block` slots."""

    shape: KVShape
    batch: int
    dtype: torch.dtype
    device: torch.device
    block: int = 256

    def empty(self, *leading: int, device: torch.device | None = None) -> Tensor:
        """A buffer without slots yet: (*leading, 2, B, H, 0, d), keys and values."""
        shape = (*leading, 2, self.batch, self.shape.kv_heads, 0, self.shape.head_dim)
        return torch.zeros(shape, dtype=self.dtype, device=device or self.device)

    def capacity(self, slots: int, present: int) -> int:
        """Slots to allocate when `slots` are needed and `present` are there: a quarter more, in whole blocks."""
        return -(-max(slots, present + present // 4) // self.block) * self.block

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's KVs in all layers."""
        return self.shape.bytes_per_token(self.dtype.itemsize)


def group_counts(scope: Scope, shape: KVShape) -> tuple[int, int]:
    """Number of choices over layers and over KV heads, (Lg, Hg)."""
    return {"shared": (1, 1), "layer": (shape.layers, 1), "head": (shape.layers, shape.kv_heads)}[scope]


def grown(buffer: Tensor, capacity: int, dim: int, pin: bool = False) -> Tensor:
    """A larger buffer with the same content, zero (False) beyond it."""
    shape = list(buffer.shape)
    shape[dim] = capacity
    larger = torch.zeros(shape, dtype=buffer.dtype, device=buffer.device, pin_memory=pin)
    larger.narrow(dim, 0, buffer.shape[dim]).copy_(buffer)
    return larger


def write_prompt(kv: Tensor, row: int, keys: list[Tensor], values: list[Tensor]) -> None:
    """Copy a prompt's KVs, one (H, T, d) tensor a layer, into the first slots of a row of `kv` (L, 2, B, H, S, d)."""
    for layer, pair in enumerate(zip(keys, values, strict=True)):
        for part, tensor in enumerate(pair):
            kv[layer, part, row, :, : tensor.shape[1]] = tensor


class Store(Protocol):
    """Keys and values of a batch, as the attention of a step sees them."""

    size: StoreSize
    longest: int

    def admit(self, row: int, keys: list[Tensor], values: list[Tensor], ledger: Tensor | None) -> None:
        """Start `row` with a prompt's KVs, one (H, T, d) tensor a layer, and its attention sums (L, H, T)."""

    def move(self, source: int, target: int) -> None:
        """Let the row at `source` continue at `target`."""

    def open(self, positions: list[int]) -> None:
        """Prepare a step in which row b writes the token of absolute position `positions[b]`."""

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write the step's KVs (n, H, 1, d) and return what is attended to, (n, H, S, d) each."""
        ...

    def mask(self, layer: int) -> Tensor | None:
        """Which of the returned slots are attended to, bool (n, 1 or H, 1, S); None for all."""

    def add_attention(self, layer: int, weights: Tensor) -> None:
        """Add a step's attention weights (n, H, S) to the ledger."""

    def tensors(self) -> dict[str, list[Tensor]]:
        """The tensors that hold KVs, by tier: device and host."""
        ...


class RecallStore(Store, Protocol):
    """A store that holds every KV of a row and can make any set of positions active."""

    def install(self, rows: list[int], active: Tensor) -> list[int]:
        """Attend to `active` (R, T), by absolute position, from the next step on; returns each row's bytes moved."""
        ...

    def keys_of(self, row: int, start: int, stop: int) -> Tensor:
        """Keys of the positions from `start` to `stop`, (L, H, n, d)."""
        ...

    def all_keys(self, rows: list[int], length: int) -> Tensor:
        """Keys of the first `length` positions, (L, R, H, length, d)."""
        ...


class EvictStore(Store, Protocol):
    """A store that drops slots for good."""

    def slots(self, rows: list[int]) -> tuple[Tensor, Tensor, Tensor | None]:
        """Positions, presence (each broadcasts to (Lg, R, Hg, S)) and ledger (L, R, H, S) of the slots."""
        ...

    def slot_keys(self, rows: list[int]) -> Tensor:
        """Keys in the slots that `slots` describes, (L, R, H, S, d)."""
        ...

    def drop(self, rows: list[int], lowest: Tensor) -> None:
        """Drop the slots of index `lowest` (Lg, R, Hg, n)."""
