"""Moving rotated keys to other positions (rotary position embeddings, half-split layout)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def rotate(keys: Tensor, shift: Tensor, rotary: Any) -> Tensor:
    """Rotate keys by `shift` positions: a key rotated for p becomes the key rotated for p + shift.

    Parameters
    ----------
    keys : (..., T, d)
    shift : (T,) int64
        Negative shifts rotate backwards; -p removes the rotation of position p.
    rotary : module
        The model's rotary embedding; gives cos and sin of shape (1, T, d) for positions (1, T).

    Returns
    -------
    (..., T, d), float32
    """
    cos, sin = rotary(keys.float(), shift.abs()[None])
    # a scaled embedding (YaRN) multiplies cos and sin; the keys carry that factor already
    cos, sin = (cos[0] / rotary.attention_scaling).float(), (sin[0] / rotary.attention_scaling).float()
    sin = sin * shift.sign()[:, None]
    first, second = keys.float().chunk(2, dim=-1)
    return keys.float() * cos + torch.cat([-second, first], dim=-1) * sin


def unrotated_mean(keys: Tensor, positions: Tensor, rotary: Any) -> Tensor:
    """Mean of the keys before rotation, rotated again for the middle of their positions: (L, H, n, d) -> (L, H, d)."""
    bare = rotate(keys, -positions, rotary).mean(dim=-2, keepdim=True)
    middle = positions[positions.numel() // 2 : positions.numel() // 2 + 1]
    return rotate(bare, middle, rotary).squeeze(-2)
