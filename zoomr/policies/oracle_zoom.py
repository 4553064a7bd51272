"""Control: zoom into the paragraphs that full attention would look at."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zoomr.policies.zoomr import ZoomR
from zoomr.summaries.state import SummaryView
from zoomr.summaries.votes import Votes, top_segments


@dataclass(frozen=True, kw_only=True)
class OracleZoom(ZoomR):
    """As `ZoomR`, with the c finished paragraphs of largest attention mass.

    The mass is the boundary token's attention over the whole row, nothing dropped, summed over the paragraph's tokens,
    all heads and all layers. It needs every key at each refresh: an upper bound to compare with, not a method to use.
    """

    def consensus(self, view: SummaryView, votes: Votes) -> Tensor:
        """See `ZoomR.consensus`."""
        mass = attention_mass(view)
        return top_segments(mass, mass, view.candidates, self.c)


def attention_mass(view: SummaryView) -> Tensor:
    """Attention of the newest token that falls on each finished paragraph, (R, N) float64."""
    assert view.queries is not None
    mass = torch.zeros(view.candidates.shape, dtype=torch.float64, device=view.queries.device)
    for place, (row, clock) in enumerate(zip(view.rows, view.clocks, strict=True)):
        keys = view.batch.keys_of(row, 0, clock.position + 1)
        received = torch.zeros(keys.shape[2], dtype=torch.float64, device=keys.device)
        for layer, own in enumerate(keys):
            grouped = view.queries[layer, place].float().reshape(own.shape[0], -1, own.shape[2])
            scores = grouped @ own.float().transpose(-1, -2) * view.scaling
            received += torch.softmax(scores, dim=-1).sum(dim=(0, 1)).double()
        for number in range(clock.tracker.finished):
            start, stop = clock.tracker.edges[2 * number : 2 * number + 2]
            mass[place, number] = received[start:stop].sum()
    return mass
