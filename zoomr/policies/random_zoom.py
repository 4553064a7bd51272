"""Control: summaries are voted for, but the paragraphs to zoom into are drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zoomr.policies.zoomr import ZoomR
from zoomr.summaries.state import SummaryView
from zoomr.summaries.votes import Votes, top_segments


@dataclass(frozen=True, kw_only=True)
class RandomZoom(ZoomR):
    """As `ZoomR`, with c random finished paragraphs; the draw depends on the row's seed and refresh alone."""

    def consensus(self, view: SummaryView, votes: Votes) -> Tensor:
        """See `ZoomR.consensus`."""
        rows, summaries = view.candidates.shape
        draws = torch.zeros(rows, summaries, dtype=torch.float64)
        for row, (seed, clock) in enumerate(zip(view.seeds, view.clocks, strict=True)):
            number = clock.tracker.finished
            # a row's draw must not depend on how many summaries its neighbours have
            draws[row, :number] = torch.rand(number, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        draws = draws.to(view.candidates.device)
        return top_segments(draws, draws, view.candidates, self.c)
