"""Control: zoom into the paragraphs that full attention would look at."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zoomr.policies.base import RefreshView
from zoomr.policies.zoomr import ZoomR
from zoomr.selection import Votes, top_segments


@dataclass(frozen=True, kw_only=True)
class OracleZoom(ZoomR):
    """As `ZoomR`, with the c finished paragraphs of largest attention mass.

    The mass is the boundary token's attention over the whole row, nothing dropped, summed over the paragraph's tokens,
    all heads and all layers. It needs every key at each refresh: an upper bound to compare with, not a method to use.
    """

    def consensus(self, view: RefreshView, votes: Votes) -> Tensor:
        """See `ZoomR.consensus`."""
        mass = attention_mass(view)
        return top_segments(mass, mass, view.candidates, self.c)


def attention_mass(view: RefreshView) -> Tensor:
    """Attention of the newest token that falls on each finished paragraph, (R, N) float64."""
    assert view.queries is not None
    rows, summaries = view.candidates.shape
    keys = view.keys()
    layers, _, kv_heads, length, width = keys.shape
    total = torch.zeros(rows, length, dtype=torch.float64, device=keys.device)
    future = (torch.arange(length, device=keys.device) > view.last[:, None])[:, None, None]
    for layer in range(layers):
        grouped = view.queries[layer].float().reshape(rows, kv_heads, -1, width)
        scores = (grouped @ keys[layer].float().transpose(-1, -2)) * view.scaling
        total += torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1).sum(dim=(1, 2)).double()
    # one bin a label; paragraph i has label 2i + 1
    bins = torch.zeros(rows, 2 * summaries + 3, dtype=torch.float64, device=keys.device)
    bins.scatter_add_(1, view.labels[:, :length], total)
    return bins[:, 1 : 2 * summaries + 1 : 2]
