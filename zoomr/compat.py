"""The one place that knows versions of transformers and shapes of its configurations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import transformers
from packaging.version import Version
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache
from transformers.cache_utils import Cache, CacheLayerMixin
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from zoomr.errors import UserError

__all__ = [
    "AttentionInterface",
    "AttentionMaskInterface",
    "CACHE_KWARG",
    "Cache",
    "CacheLayerMixin",
    "DynamicCache",
    "KVShape",
    "kv_shape",
    "layer_tensors",
    "sdpa_attention_forward",
    "sdpa_mask",
]

OLDEST, BEYOND = Version("5.20"), Version("5.25")
VERSION = Version(transformers.__version__)

if not OLDEST <= VERSION < BEYOND:
    raise ImportError(f"zoomr needs transformers >={OLDEST},<{BEYOND}; installed is {VERSION}")

# the name under which a model's forward takes its KV cache changed in 5.24
CACHE_KWARG = "cache" if Version("5.24") <= VERSION else "past_key_values"


@dataclass(frozen=True)
class KVShape:
    """Shape of one token's keys (and values): layers, KV heads, head dimension."""

    layers: int
    kv_heads: int
    head_dim: int

    def bytes_per_token(self, element_size: int) -> int:
        """Bytes of the keys and values of one token."""
        return 2 * self.layers * self.kv_heads * self.head_dim * element_size


def kv_shape(config: Any) -> KVShape:
    """Read the KV shape of a model's configuration.

    Raises
    ------
    UserError
        When a layer is not plain full attention (a sliding window, chunked or linear attention): such a layer keeps
        KVs by a rule of its own, which a policy cannot override.
    """
    config = config.get_text_config(decoder=True)
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"]) - {"full_attention"}
    if kinds or getattr(config, "sliding_window", None) is not None:
        named = ", ".join(sorted(kinds)) or f"sliding_window={config.sliding_window}"
        raise UserError(
            f"model: {config.model_type} has layers that are not full attention ({named}); zoomr needs full"
        )
    heads = config.num_attention_heads
    return KVShape(
        layers=config.num_hidden_layers,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
    )


def layer_tensors(cache: Cache) -> list[tuple[Tensor, Tensor]]:
    """Keys and values of each layer of a dynamic cache, (B, H, T, d) each."""
    return [(layer.keys, layer.values) for layer in cache.layers]  # type: ignore[union-attr, misc]
