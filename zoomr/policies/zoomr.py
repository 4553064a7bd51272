"""ZoomR: the heads vote for summaries; the most voted are replaced by their paragraphs (paper, section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from zoomr.policies.base import Needs, RefreshView, Selection
from zoomr.policies.windowed import Windowed
from zoomr.selection import Votes, count_votes, top_segments


@dataclass(frozen=True, kw_only=True)
class ZoomR(Windowed):
    """Zoom into the c paragraphs the heads agree on, and keep the other voted summaries.

    Parameters
    ----------
    c : int
        Paragraphs to zoom into.
    k : int
        Votes of each head.
    vote_span : bool
        Sum the votes over the tokens since the last refresh, instead of the boundary token's alone.
    exclude_covered : bool
        No votes for segments that lie wholly inside the window.
    weighted : bool
        Weigh a vote by the softmax of its score.
    per_kv_head : bool
        One vote per KV head, by the largest score in its group.
    pre_rope : bool
        Mean keys of unrotated keys, rotated for the middle of the summary.
    with_delimiters : bool
        Mean keys over the summary and its delimiters.
    """

    c: int = 2
    k: int = 2
    vote_span: bool = False
    exclude_covered: bool = False
    weighted: bool = False
    per_kv_head: bool = False
    pre_rope: bool = False
    with_delimiters: bool = False

    needs: ClassVar[Needs] = Needs.QUERIES | Needs.SUMMARIES

    def vote(self, view: RefreshView) -> Votes:
        """See `Recalling.vote`."""
        assert view.queries is not None and view.means is not None
        candidates = view.candidates
        if self.exclude_covered:
            candidates = candidates & (view.starts <= view.last[:, None] - self.window)
        return count_votes(view.queries, view.means, candidates, self.k, view.scaling, self.weighted, self.per_kv_head)

    def refresh(self, view: RefreshView, votes: Votes | None) -> Selection:
        """See `Recalling.refresh`."""
        assert votes is not None
        voted = votes.counts > 0
        zoomed = self.consensus(view, votes)
        return self.select(view, zoomed, voted & ~zoomed)

    def consensus(self, view: RefreshView, votes: Votes) -> Tensor:
        """The segments to zoom into, (R, N) bool: those of most votes."""
        return top_segments(votes.counts, votes.mass, votes.counts > 0, self.c)
