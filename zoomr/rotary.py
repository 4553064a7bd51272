"""Moving rotated queries and keys to other positions (rotary position embeddings)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Rotary:
    """A model's rotation, by its own functions.

    Attributes
    ----------
    embedding : module
        Gives cos and sin for positions.
    apply : callable
        The model's function that turns queries and keys by cos and sin.
    """

    embedding: Any
    apply: Callable[..., tuple[Tensor, Tensor]]

    @classmethod
    def of(cls, model: Any) -> Rotary | None:
        """The rotation of a model; None where its layers do not all turn the whole of a head in the same way."""
        decoder = model.get_decoder()
        embedding = getattr(decoder, "rotary_emb", None)
        layers = getattr(decoder, "layers", None)
        if embedding is None or not layers or not hasattr(layers[0], "self_attn"):
            return None
        turns = [getattr(layer.self_attn, "use_rope", True) for layer in layers]
        apply = getattr(sys.modules[type(layers[0].self_attn).__module__], "apply_rotary_pos_emb", None)
        if apply is None or not all(turns) or not hasattr(embedding, "attention_scaling"):
            return None
        return cls(embedding, apply)

    def __call__(self, x: Tensor, shift: Tensor) -> Tensor:
        """Turn by `shift` positions: what was rotated for p becomes what is rotated for p + shift.

        Parameters
        ----------
        x : (..., T, d)
        shift : (T,) int64
            Negative shifts turn backwards; -p removes the rotation of position p.

        Returns
        -------
        (..., T, d), float32
        """
        flat = x.float().reshape(1, -1, *x.shape[-2:])
        cos, sin = self.embedding(flat, shift.abs()[None])
        # a scaled embedding (YaRN) multiplies cos and sin; the keys carry that factor already
        cos, sin = (part.float() / self.embedding.attention_scaling for part in (cos, sin))
        sin = sin * shift.sign()[None, :, None]
        turned, _ = self.apply(flat, flat[:, :1], cos, sin)
        return turned.reshape(x.shape)
