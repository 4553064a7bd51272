"""Control: summaries are voted for, but the most recent paragraphs are zoomed into."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zoomr.policies.zoomr import ZoomR
from zoomr.summaries.state import SummaryView
from zoomr.summaries.votes import Votes, top_segments


@dataclass(frozen=True, kw_only=True)
class RecencyZoom(ZoomR):
    """As `ZoomR`, with the c most recent finished paragraphs that the window does not cover."""

    def consensus(self, view: SummaryView, votes: Votes) -> Tensor:
        """See `ZoomR.consensus`."""
        outside = view.candidates & (view.starts <= view.last[:, None] - self.window)
        age = torch.arange(outside.shape[1], dtype=torch.float64, device=outside.device).expand(outside.shape)
        return top_segments(age, age, outside, self.c)
