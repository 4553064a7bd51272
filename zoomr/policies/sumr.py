"""SumR: the paper's ablation without zooming; only summaries remain of what left the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from zoomr.policies.base import Needs, RefreshView, Selection
from zoomr.policies.windowed import Windowed
from zoomr.selection import Votes


@dataclass(frozen=True, kw_only=True)
class SumR(Windowed):
    """Prompt, window and all finished summaries."""

    needs: ClassVar[Needs] = Needs.NOTHING
    vote_span: ClassVar[bool] = False
    pre_rope: ClassVar[bool] = False
    with_delimiters: ClassVar[bool] = False

    def vote(self, view: RefreshView) -> Votes | None:
        """Nobody is asked."""
        return None

    def refresh(self, view: RefreshView, votes: Votes | None) -> Selection:
        """See `Recalling.refresh`."""
        return self.select(view, torch.zeros_like(view.candidates), view.candidates)
