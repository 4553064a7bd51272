"""What the decoding loop asks of a store.

Rows are dense: a batch of n rows is rows 0 to n - 1. A slot is a place for one token's KV in a row. Which slots are
attended to is decided for groups of heads: `valid`, `positions` and the ledger have shape (Lg, B, Hg, S), where
(Lg, Hg) is (1, 1) for a choice shared by all layers and heads, (L, 1) for one a layer, (L, H) for one a KV head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from torch import Tensor

if TYPE_CHECKING:
    from zoomr.compat import KVShape

Scope = Literal["shared", "layer", "head"]


def group_counts(scope: Scope, shape: KVShape) -> tuple[int, int]:
    """Number of choices over layers and over KV heads, (Lg, Hg)."""
    return {"shared": (1, 1), "layer": (shape.layers, 1), "head": (shape.layers, shape.kv_heads)}[scope]


class Store(Protocol):
    """Keys and values of a batch."""

    longest: int

    def admit(self, row: int, keys: list[Tensor], values: list[Tensor], ledger: Tensor | None) -> None:
        """Start `row` with a prompt's KVs, one (H, T, d) tensor a layer, and its attention sums (L, H, T)."""

    def move(self, source: int, target: int) -> None:
        """Let the row at `source` continue at `target`."""

    def open(self, positions: list[int]) -> None:
        """Prepare a step in which row b writes the token of absolute position `positions[b]`."""

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write the step's KVs (n, H, 1, d) and return what is attended to, (n, H, S, d) each."""

    def add_attention(self, layer: int, weights: Tensor) -> None:
        """Add a step's attention weights (n, H, S) to the ledger."""

    def mask(self, layer: int) -> Tensor | None:
        """Which of the returned slots are attended to, bool (n, 1 or H, 1, S); None for all."""
