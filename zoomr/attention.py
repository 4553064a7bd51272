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


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float) -> Tensor:
    """Attention without repeating KV heads: a group of query heads is one KV head's query block.

    Parameters
    ----------
    query : (B, Hq, n, d)
    key, value : (B, H, S, d)
        H divides Hq.
    mask : bool (B, 1, n, S), (B, H, 1, S) for one query a row, (B, Hq, n, S), or None

    Returns
    -------
    (B, n, Hq, d)
    """
    batch, heads, number, width = query.shape
    kv_heads = key.shape[1]
    group = heads // kv_heads
    grouped = query.reshape(batch, kv_heads, group * number, width)
    if mask is not None and mask.shape[1] == heads != kv_heads:
        mask = mask.reshape(batch, kv_heads, group * number, -1)
    elif mask is not None and number > 1:
        mask = mask.repeat(1, 1, group, 1)
    output = torch.nn.functional.scaled_dot_product_attention(grouped, key, value, attn_mask=mask, scale=scaling)
    return output.reshape(batch, heads, number, -1).transpose(1, 2)


def attend_weighed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float,
    bias: Tensor | None = None,
    nearer: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """As `attend` of one query a row, and the attention each KV head's group gave to every slot.

    Parameters
    ----------
    bias : (B, H, 1, S) or None
        Added to the scaled scores.
    nearer : (Tensor, Tensor) or None
        Queries (B, Hq, d) that stand in at the first (B,) slots of each row.

    Returns
    -------
    output : (B, 1, Hq, d)
    weights : (B, H, S), summed over the group
    """
    batch, heads, _, width = query.shape
    kv_heads, slots = key.shape[1], key.shape[2]
    shape = (batch, kv_heads, heads // kv_heads, width)
    scores = query.reshape(shape) @ key.transpose(-1, -2)
    if nearer is not None:
        own = torch.arange(slots, device=query.device) < nearer[1][:, None, None, None]
        scores = torch.where(own, nearer[0].reshape(shape) @ key.transpose(-1, -2), scores)
    scores = scores.float() * scaling
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    output = weights.to(value.dtype) @ value
    return output.reshape(batch, 1, heads, -1), weights.sum(dim=2)


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, mask)
