"""The queries of the last tokens, for policies that look back."""

from __future__ import annotations

import torch
from torch import Tensor


class QueryHistory:
    """Queries of the last W tokens of every row, in a ring: (L, B, W, Hq, d).

    Parameters
    ----------
    layers, batch, length : int
    """

    def __init__(self, layers: int, batch: int, length: int):
        self.layers, self.batch, self.length = layers, batch, length
        self.ring: Tensor | None = None

    def admit(self, row: int, queries: Tensor, length: int) -> None:
        """Start a row with the last queries of its prompt of `length` tokens, (L, Hq, n, d)."""
        if self.ring is None:
            heads, width = queries.shape[1], queries.shape[3]
            shape = (self.layers, self.batch, self.length, heads, width)
            self.ring = torch.zeros(shape, dtype=queries.dtype, device=queries.device)
        number = queries.shape[2]
        places = torch.arange(length - number, length, device=queries.device) % self.length
        self.ring[:, row] = 0.0
        self.ring[:, row, places] = queries.transpose(1, 2)

    def write(self, layer: int, queries: Tensor, places: Tensor) -> None:
        """Enter one query a row, (n, Hq, d), at the rows' `places` in the ring (n,)."""
        assert self.ring is not None
        self.ring[layer, torch.arange(queries.shape[0], device=queries.device), places] = queries

    def move(self, source: int, target: int) -> None:
        """Let the row at `source` continue at `target`."""
        if self.ring is not None:
            self.ring[:, target] = self.ring[:, source]

    def of(self, rows: list[int], seen: int) -> Tensor:
        """Queries of some rows that have seen at least `seen` tokens, (L, R, min(W, seen), Hq, d)."""
        assert self.ring is not None
        return self.ring[:, rows, : min(self.length, seen)]
