"""What the attention of a forward notes down for the policy."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from zoomr.policies.base import Site
from zoomr.policies.views import Clock


class Notes:
    """Queries of the last forward and, on request, of the last W tokens of each row, in a ring.

    Parameters
    ----------
    site : Site
    history : int
        W; 0 for no ring.

    Attributes
    ----------
    at : list of int
        For each row, which token of the forward is the newest; -1 is the last.
    scaling : float
    hidden : (B, n, h) or None
        Hidden states after the layer that the state watches.
    """

    def __init__(self, site: Site, history: int):
        shape = site.shape
        self.length, self.batch = history, site.batch
        self.queries: list[Tensor | None] = [None] * shape.layers
        self.at = [-1] * site.batch
        self.scaling = 1.0
        self.hidden: Tensor | None = None
        self._places = torch.zeros(0, dtype=torch.int64, device=site.device)
        self.ring: Tensor | None = None
        if history:
            dimensions = (shape.layers, site.batch, history, shape.query_heads, shape.key_dim)
            self.ring = torch.zeros(dimensions, device=site.device)

    def admit(self, row: int, queries: Tensor | None, length: int) -> None:
        """Start a row with the last queries of its prompt of `length` tokens, (L, Hq, n, d)."""
        if self.ring is not None and queries is not None:
            self.ring = self.ring.to(queries.dtype)
            places = torch.arange(length - queries.shape[2], length, device=queries.device) % self.length
            self.ring[:, row] = 0.0
            self.ring[:, row, places] = queries.transpose(1, 2)

    def move(self, source: int, target: int) -> None:
        """Let the row at `source` continue at `target`."""
        if self.ring is not None:
            self.ring[:, target] = self.ring[:, source]

    def open(self, clocks: Sequence[Clock]) -> None:
        """Prepare a step of one token a row."""
        if self.ring is not None:
            places = [clock.position % self.length for clock in clocks]
            self._places = torch.tensor(places, device=self.ring.device)

    def take(self, layer: int, query: Tensor, scaling: float) -> None:
        """Note a layer's queries (B, Hq, n, d)."""
        self.queries[layer], self.scaling = query, scaling
        if self.ring is not None:
            self.ring[layer, torch.arange(query.shape[0], device=query.device), self._places] = query[:, :, 0]

    def newest(self, rows: list[int]) -> Tensor:
        """Queries of some rows' newest tokens in all layers, (L, R, Hq, d)."""
        at = [self.at[row] for row in rows]
        return torch.stack([query[rows, :, at] for query in self.queries if query is not None])

    def newest_hidden(self, rows: list[int]) -> Tensor:
        """Hidden states of some rows' newest tokens, (R, h)."""
        assert self.hidden is not None
        return self.hidden[rows, [self.at[row] for row in rows]]

    def last(self, rows: list[int], layers: slice, seen: list[int]) -> Tensor | None:
        """Queries of the last tokens of rows that have seen so many, the oldest first, (L, R, min(W, seen), Hq, d)."""
        if self.ring is None:
            return None
        number, device = min(self.length, *seen), self.ring.device
        ages = torch.arange(-number, 0, device=device)
        places = (torch.tensor(seen, device=device)[:, None] + ages) % self.length
        return self.ring[layers][:, torch.tensor(rows, device=device)[:, None], places]

    def tensors(self) -> list[Tensor]:
        """What is kept beyond a forward."""
        return [] if self.ring is None else [self.ring]
