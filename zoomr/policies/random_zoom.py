"""Control: summaries are voted for, but the paragraphs to zoom into are drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zoomr.policies.base import RefreshView
from zoomr.policies.zoomr import ZoomR
from zoomr.selection import Votes, top_segments


@dataclass(frozen=True, kw_only=True)
class RandomZoom(ZoomR):
    """As `ZoomR`, with c random finished paragraphs; the draw depends on the row's seed and refresh alone."""

    def consensus(self, view: RefreshView, votes: Votes) -> Tensor:
        """See `ZoomR.consensus`."""
        rows, summaries = view.candidates.shape
        draws = torch.zeros(rows, summaries, dtype=torch.float64)
        for row, (seed, number) in enumerate(zip(view.seeds, view.finished.tolist(), strict=True)):
            # a row's draw must not depend on how many summaries its neighbours have
            draws[row, :number] = torch.rand(number, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        draws = draws.to(view.candidates.device)
        return top_segments(draws, draws, view.candidates, self.c)
