"""The one place that knows versions of transformers and shapes of its configurations."""

from __future__ import annotations

from typing import Any

import transformers
from packaging.version import Version
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from zoomr.errors import UserError
from zoomr.policies.base import Shape

__all__ = [
    "AttentionInterface",
    "AttentionMaskInterface",
    "check_attention",
    "sdpa_attention_forward",
    "sdpa_mask",
    "shape_of",
]

OLDEST, BEYOND = Version("5.20"), Version("5.25")
VERSION = Version(transformers.__version__)

if not OLDEST <= VERSION < BEYOND:
    raise ImportError(f"zoomr needs transformers >={OLDEST},<{BEYOND}; installed is {VERSION}")


def check_attention(config: Any, longest: int = 0) -> None:
    """Refuse a model whose keys cannot be kept as a policy wants it.

    Parameters
    ----------
    config : transformers configuration
    longest : int
        Tokens that a row may come to have.

    Raises
    ------
    UserError
        A sliding window, chunked or linear attention: such a layer keeps KVs by a rule of its own, which a policy
        cannot override. Rotations that change with the length (dynamic NTK, LongRoPE), where a row may come to the
        length at which they do: keys that were rotated before would be of no use, and a row would depend on others.
    """
    config = config.get_text_config(decoder=True)
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    kind = rope.get("rope_type", rope.get("type"))
    if kind in ("dynamic", "longrope"):
        limit = rope.get("original_max_position_embeddings") or config.max_position_embeddings
        if longest > limit:
            raise UserError(
                f"model: {config.model_type} rotates keys anew beyond {limit} tokens (rope_type={kind}), and a row may "
                f"come to {longest}; fewer new tokens, or another rope_type, are needed"
            )
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"]) - {"full_attention"}
    if kinds or getattr(config, "sliding_window", None) is not None:
        named = ", ".join(sorted(kinds)) or f"sliding_window={config.sliding_window}"
        raise UserError(
            f"model: {config.model_type} has layers that are not full attention ({named}); zoomr needs full"
        )


def shape_of(config: Any) -> Shape:
    """The shape of keys and values that a configuration declares; decoding goes by what the layers hand over."""
    check_attention(config)
    config = config.get_text_config(decoder=True)
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    return Shape(config.num_hidden_layers, heads, kv_heads, width, width)
