"""Control: zoom into the paragraph that the step is known to need."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zoomr.policies.base import RefreshView
from zoomr.policies.zoomr import ZoomR
from zoomr.selection import Votes, top_segments


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

    def consensus(self, view: RefreshView, votes: Votes) -> Tensor:
        """See `ZoomR.consensus`."""
        needed = torch.zeros_like(view.candidates)
        for row, (prompt, number) in enumerate(zip(view.prompts, view.finished.tolist(), strict=True)):
            target = self.targets[prompt][number] if number < len(self.targets[prompt]) else None
            if target is not None and target < number:
                needed[row, target] = True
        rank = votes.counts.masked_fill(needed, torch.inf)
        return top_segments(rank, votes.mass, rank > 0, self.c)
