"""SumR: the paper's ablation without zooming; only summaries remain of what left the window."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from zoomr.policies.summarized import Summarized
from zoomr.summaries.state import SummaryView
from zoomr.summaries.votes import Votes


@dataclass(frozen=True, kw_only=True)
class SumR(Summarized):
    """Prompt, window and all finished summaries."""

    def select(self, view: SummaryView, votes: Votes | None) -> tuple[Tensor, Tensor]:
        """See `Summarized.select`."""
        return torch.zeros_like(view.candidates), view.candidates
