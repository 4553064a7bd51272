"""The attention and mask functions that transformers calls under the name "zoomr": the only place that sees queries.

A forward of ours carries its state in the keyword `zoomr`, which travels through the model to every layer. Without
that keyword both functions are transformers' own SDPA path, so a model that was switched to "zoomr" works as before.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from zoomr.compat import AttentionInterface, AttentionMaskInterface, sdpa_attention_forward, sdpa_mask

NAME = "zoomr"


class Observer(Protocol):
    """What a forward of ours carries: it attends, and notes what the policy asked for."""

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """Attention output, (B, Q, Hq, d), for queries (B, Hq, Q, d) and keys and values (B, H, T, d)."""
        ...


def attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    zoomr: Observer | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention function in transformers' signature; see the module's text."""
    if zoomr is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout, scaling, **kwargs)
    factor = query.shape[-1] ** -0.5 if scaling is None else scaling
    return zoomr.attend(module, query, key, value, attention_mask, factor), None


def mask(*args: Any, **kwargs: Any) -> Tensor | None:
    """Mask function: none for a single query without padding, else transformers' SDPA mask."""
    if kwargs["q_length"] == 1 and kwargs["attention_mask"] is None:
        return None
    return sdpa_mask(*args, **kwargs)


def attend_one(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float) -> Tensor:
    """Attention of one query a row, without repeating KV heads: a group of query heads is one KV head's query block.

    Parameters
    ----------
    query : (B, Hq, 1, d)
    key, value : (B, H, S, d)
    mask : bool (B, 1 or H, 1, S) or None

    Returns
    -------
    (B, 1, Hq, d)
    """
    batch, heads, _, width = query.shape
    kv_heads = key.shape[1]
    grouped = query.reshape(batch, kv_heads, heads // kv_heads, width)
    output = torch.nn.functional.scaled_dot_product_attention(grouped, key, value, attn_mask=mask, scale=scaling)
    return output.reshape(batch, 1, heads, width)


def attend_many(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float) -> Tensor:
    """Attention of several queries a row, without repeating KV heads.

    Parameters
    ----------
    query : (B, Hq, n, d)
    key, value : (B, H, S, d)
    mask : bool (B, 1, n, S)

    Returns
    -------
    (B, n, Hq, d)
    """
    batch, heads, number, width = query.shape
    kv_heads = key.shape[1]
    group = heads // kv_heads
    grouped = query.reshape(batch, kv_heads, group * number, width)
    allowed = mask.repeat(1, 1, group, 1)
    output = torch.nn.functional.scaled_dot_product_attention(grouped, key, value, attn_mask=allowed, scale=scaling)
    return output.reshape(batch, heads, number, width).transpose(1, 2)


def attend_weighed(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
) -> tuple[Tensor, Tensor]:
    """As `attend_one`, and the attention each KV head's group gave to every slot, summed over the group: (B, H, S)."""
    batch, heads, _, width = query.shape
    kv_heads = key.shape[1]
    grouped = query.reshape(batch, kv_heads, heads // kv_heads, width)
    scores = (grouped @ key.transpose(-1, -2)).float() * scaling
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    output = weights.to(value.dtype) @ value
    return output.reshape(batch, 1, heads, width), weights.sum(dim=2)


def attend_nearer(
    query: Tensor, nearer: Tensor, first: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
) -> Tensor:
    """As `attend_one`, with another query for the first slots: that of a position nearer to them.

    Parameters
    ----------
    nearer : (B, Hq, d)
    first : (B,) int64
        Number of slots, from the start, that `nearer` attends to.
    """
    batch, heads, _, width = query.shape
    kv_heads, slots = key.shape[1], key.shape[2]
    shape = (batch, kv_heads, heads // kv_heads, width)
    scores = query.reshape(shape) @ key.transpose(-1, -2)
    own = torch.arange(slots, device=query.device) < first[:, None, None, None]
    scores = torch.where(own, nearer.reshape(shape) @ key.transpose(-1, -2), scores).float() * scaling
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    output = torch.softmax(scores, dim=-1).to(value.dtype) @ value
    return output.reshape(batch, 1, heads, width)


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, mask)
