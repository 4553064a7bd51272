"""Control: zoom into the paragraph that the step is known to need."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zoomr.policies.zoomr import ZoomR
from zoomr.summaries.state import SummaryView
from zoomr.summaries.votes import Votes, top_segments


@dataclass(frozen=True, kw_only=True)
class GivenZoom(ZoomR):
    """As `ZoomR`, with the needed paragraph always among the c, as someone who knows the solution would choose.

    Parameters
    ----------
    targets : tuple of tuple
        For every prompt, and for every paragraph of its reasoning, the paragraph that it needs, or None. Beyond the
        last, and for None, the votes decide alone.
    """

    targets: tuple[tuple[int | None, ...], ...]

    def consensus(self, view: SummaryView, votes: Votes) -> Tensor:
        """See `ZoomR.consensus`."""
        needed = torch.zeros_like(view.candidates)
        for row, clock in enumerate(view.clocks):
            known, number = self.targets[clock.number], clock.tracker.finished
            target = known[number] if number < len(known) else None
            if target is not None and target < number:
                needed[row, target] = True
        rank = votes.counts.masked_fill(needed, torch.inf)
        return top_segments(rank, votes.mass, rank > 0, self.c)
