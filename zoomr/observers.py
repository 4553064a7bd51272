"""What a forward of ours carries to the attention layers: it attends, and notes what the policy asked for."""

from __future__ import annotations

import torch
from torch import Tensor

from zoomr.attention import attend_one, attend_weighed
from zoomr.compat import sdpa_attention_forward
from zoomr.stores.base import Store

QUERY_BLOCK = 128


class PromptObserver:
    """Attends over prompts exactly as transformers does, and sums the attention that each prompt token receives.

    Parameters
    ----------
    attention : bool
        Whether the sums are wanted.
    padding : (U, T) bool or None
        True for real tokens.
    """

    def __init__(self, attention: bool, padding: Tensor | None):
        self.attention, self.padding = attention, padding
        self.received: list[Tensor] = []

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`."""
        if self.attention:
            self.received.append(received_attention(query, key, self.padding, scaling))
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


class StepObserver:
    """Attends over a store's slots, one query a row.

    Parameters
    ----------
    store : Store
    layers : int
    attention : bool
        Add every step's attention weights to the store's ledger.
    """

    def __init__(self, store: Store, layers: int, attention: bool):
        self.store, self.attention = store, attention
        self.queries: list[Tensor | None] = [None] * layers
        self.scaling = 1.0
        self.capture = False

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`."""
        layer = int(module.layer_idx)  # type: ignore[arg-type]
        slots = self.store.mask(layer)
        if self.capture:
            self.queries[layer], self.scaling = query[:, :, 0], scaling
        if not self.attention:
            return attend_one(query, key, value, slots, scaling)
        output, weights = attend_weighed(query, key, value, slots, scaling)
        self.store.add_attention(layer, weights)
        return output

    def stacked_queries(self, rows: list[int]) -> Tensor:
        """Queries of some rows in all layers, (L, R, Hq, d)."""
        return torch.stack([query[rows] for query in self.queries if query is not None])
