"""A learned index: low-rank scores between hidden states at a boundary and at the ends of summaries."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import layer_norm


@dataclass(frozen=True)
class LearnedIndex:
    """Scores s(b, i) = (Q ln(h_b)) . (K ln(h_i)) of hidden states after one decoder layer.

    Attributes
    ----------
    layer : int
        Number of the decoder layer, from 0.
    query, key : (r, h)
    """

    layer: int
    query: Tensor
    key: Tensor

    @property
    def rank(self) -> int:
        """Numbers kept for each summary."""
        return self.key.shape[0]

    def keys(self, hidden: Tensor) -> Tensor:
        """Keys of summaries (..., r), from the hidden states at their ends (..., h)."""
        return layer_norm(hidden.float(), hidden.shape[-1:]) @ self.key.T

    def scores(self, hidden: Tensor, keys: Tensor) -> Tensor:
        """Scores (R, N) of summaries with keys (R, N, r), for hidden states (R, h) at boundaries."""
        asked = layer_norm(hidden.float(), hidden.shape[-1:]) @ self.query.T
        return (keys @ asked[:, :, None])[..., 0]
