"""ZoomR: the heads vote for summaries; the most voted are replaced by their paragraphs (paper, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
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
    voters : tuple of (layer, query head), or None
        The heads that vote; None: all (paper). Ours: few heads look anything up, and the others vote in blocks.
    """

    c: int = 2
    k: int = 2
    vote_span: bool = False
    exclude_covered: bool = False
    weighted: bool = False
    per_kv_head: bool = False
    pre_rope: bool = False
    with_delimiters: bool = False
    voters: tuple[tuple[int, int], ...] | None = None

    needs: ClassVar[Needs] = Needs.QUERIES | Needs.SUMMARIES

    def vote(self, view: RefreshView) -> Votes:
        """See `Recalling.vote`."""
        assert view.queries is not None and view.means is not None
        candidates = view.candidates
        if self.exclude_covered:
            candidates = candidates & (view.starts <= view.last[:, None] - self.window)
        layers, _, heads, _ = view.queries.shape
        voters = None if self.voters is None else among(self.voters, layers, heads).to(view.queries.device)
        return count_votes(
            view.queries, view.means, candidates, self.k, view.scaling, self.weighted, self.per_kv_head, voters
        )

    def refresh(self, view: RefreshView, votes: Votes | None) -> Selection:
        """See `Recalling.refresh`."""
        assert votes is not None
        voted = votes.counts > 0
        zoomed = self.consensus(view, votes)
        return self.select(view, zoomed, voted & ~zoomed)

    def consensus(self, view: RefreshView, votes: Votes) -> Tensor:
        """The segments to zoom into, (R, N) bool: those of most votes."""
        return top_segments(votes.counts, votes.mass, votes.counts > 0, self.c)


def among(voters: Sequence[Sequence[int]], layers: int, heads: int) -> Tensor:
    """The heads that vote, (L, Hq) bool.

    Raises
    ------
    ValueError
        If there are none, or the model lacks one.
    """
    chosen = torch.zeros(layers, heads, dtype=torch.bool)
    for layer, head in voters:
        if not (0 <= layer < layers and 0 <= head < heads):
            raise ValueError(f"voters: no head ({layer}, {head}) in {layers} layers of {heads} query heads.")
        chosen[layer, head] = True
    if not chosen.any():
        raise ValueError("voters: none.")
    return chosen
