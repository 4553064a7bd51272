"""What a forward of ours carries to the attention layers: it attends, and notes what the policy asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from zoomr.attention import attend_nearer, attend_one, attend_weighed
from zoomr.compat import sdpa_attention_forward
from zoomr.history import QueryHistory
from zoomr.rotary import rotate
from zoomr.stores.base import Store

QUERY_BLOCK = 128


class PromptObserver:
    """Attends over prompts exactly as transformers does, and sums the attention that each prompt token receives.

    Parameters
    ----------
    attention : bool
        Whether the sums are wanted.
    history : int
        How many last queries are wanted.
    padding : (U, T) bool or None
        True for real tokens.
    """

    def __init__(self, attention: bool, history: int, padding: Tensor | None):
        self.attention, self.history, self.padding = attention, history, padding
        self.received: list[Tensor] = []
        self.queries: list[Tensor] = []

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`."""
        if self.attention:
            self.received.append(received_attention(query, key, self.padding, scaling))
        if self.history:
            self.queries.append(query[:, :, -self.history :].clone())
        return sdpa_attention_forward(module, query, key, value, mask, scaling=scaling)[0]


def received_attention(query: Tensor, key: Tensor, padding: Tensor | None, scaling: float) -> Tensor:
    """Attention that each prompt token receives from all prompt queries, in blocks of queries, never a square matrix.

    Parameters
    ----------
    query : (U, Hq, T, d)
    key : (U, H, T, d)
    padding : (U, T) bool or None

    Returns
    -------
    (U, H, T), float32
        Summed over the queries and the query heads of each KV head.
    """
    prompts, heads, length, width = query.shape
    kv_heads = key.shape[1]
    received = torch.zeros(prompts, kv_heads, length, device=query.device)
    positions = torch.arange(length, device=query.device)
    for start in range(0, length, QUERY_BLOCK):
        block = query[:, :, start : start + QUERY_BLOCK]
        size = block.shape[2]
        grouped = block.reshape(prompts, kv_heads, heads // kv_heads * size, width)
        scores = (grouped @ key.transpose(-1, -2)).float().view(prompts, kv_heads, -1, size, length) * scaling
        hidden = positions[None] > positions[start : start + size, None]
        if padding is not None:
            hidden = hidden | ~padding[:, None, None, None, :]
        weights = torch.nan_to_num(torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1))
        if padding is not None:
            weights = weights * padding[:, None, None, start : start + size, None]
        received += weights.sum(dim=(2, 3))
    return received


@dataclass(frozen=True)
class Shift:
    """Positions re-assigned within the cache: for the first `first` (n,) slots, rows are `by` (n,) positions nearer."""

    first: Tensor
    by: Tensor
    rotary: Any


class StepObserver:
    """Attends over a store's slots, one query a row.

    Parameters
    ----------
    store : Store
    layers : int
    attention : bool
        Add every step's attention weights to the store's ledger.
    history : QueryHistory or None
        Where every step's queries are entered, at the rows' `places`.

    Attributes
    ----------
    capture : bool
        Keep the step's queries.
    shift : Shift or None
        For the step, of a policy that re-assigns positions.
    """

    def __init__(self, store: Store, layers: int, attention: bool, history: QueryHistory | None = None):
        self.store, self.attention, self.history = store, attention, history
        self.queries: list[Tensor | None] = [None] * layers
        self.scaling = 1.0
        self.capture = False
        self.places: Tensor | None = None
        self.shift: Shift | None = None

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`."""
        layer = int(module.layer_idx)  # type: ignore[arg-type]
        slots, self.scaling = self.store.mask(layer), scaling
        if self.capture:
            self.queries[layer] = query[:, :, 0]
        if self.history is not None and self.places is not None:
            self.history.write(layer, query[:, :, 0], self.places)
        if self.shift is not None:
            by_head = query[:, :, 0].transpose(0, 1)  # a position for each row, as for each token of a sequence
            nearer = rotate(by_head, -self.shift.by, self.shift.rotary).transpose(0, 1).to(query.dtype)
            return attend_nearer(query, nearer, self.shift.first, key, value, slots, scaling)
        if not self.attention:
            return attend_one(query, key, value, slots, scaling)
        output, weights = attend_weighed(query, key, value, slots, scaling)
        self.store.add_attention(layer, weights)
        return output

    def stacked_queries(self, rows: list[int]) -> Tensor:
        """Queries of some rows in all layers, (L, R, Hq, d)."""
        return torch.stack([query[rows] for query in self.queries if query is not None])
