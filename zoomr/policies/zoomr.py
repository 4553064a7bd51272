"""ZoomR: the heads vote for summaries; the most voted are replaced by their paragraphs (paper, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from zoomr.errors import UserError
from zoomr.policies.base import Records, Site, State
from zoomr.policies.checks import flags, one_of, whole
from zoomr.policies.summarized import Summarized
from zoomr.summaries.index import LearnedIndex
from zoomr.summaries.state import SummaryView
from zoomr.summaries.votes import Votes, contrast_votes, count_votes, top_segments

VotesBy = Literal["counts", "mass", "contrast", "index"]


@dataclass(frozen=True, kw_only=True)
class ZoomR(Summarized):
    """Zoom into the c paragraphs the heads agree on, and keep the other voted summaries.

    Parameters
    ----------
    c : int
        Paragraphs to zoom into; 0: none.
    k : int
        Votes of each head, where votes are counted.
    votes_by : "counts", "mass", "contrast" or "index"
        A vote counts one (paper), or as the softmax of its score. Ours: every head says what it asks beyond its habit,
        its mean query at earlier refreshes; or a learned index of hidden states is asked instead of the heads.
        The summaries that stay are those with a vote, or with more than habit or chance would give them.
    index : LearnedIndex or None
        For votes by index; see `zoomr.load_index`.
    most_shown : int or None
        At most so many summaries are shown, those of most votes; None: all voted (paper).
    vote_span : bool
        Sum the votes over the tokens since the last refresh, instead of the boundary token's alone.
    exclude_covered : bool
        No votes for segments that lie wholly inside the window.
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
    votes_by: VotesBy = "counts"  # type: ignore[misc]
    index: LearnedIndex | None = None  # type: ignore[misc]
    most_shown: int | None = None
    vote_span: bool = False  # type: ignore[misc]
    exclude_covered: bool = False
    per_kv_head: bool = False
    pre_rope: bool = False  # type: ignore[misc]
    with_delimiters: bool = False  # type: ignore[misc]
    voters: tuple[tuple[int, int], ...] | None = None

    records: ClassVar[Records] = Records.QUERIES

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self, 0, "c")
        whole(self, 1, "k")
        flags(self, "vote_span", "exclude_covered", "per_kv_head", "pre_rope", "with_delimiters")
        one_of(self, "votes_by", VotesBy)
        if self.most_shown is not None:
            whole(self, 0, "most_shown")
        if (self.votes_by == "index") != (self.index is not None):
            raise UserError(f"votes_by={self.votes_by}: votes by index, and they alone, need an index.")
        if self.votes_by == "index" and self.vote_span:
            raise UserError("vote_span=True: an index is asked at refreshes alone.")

    def start(self, site: Site) -> State:
        """A state that knows the summaries; refuses what the model cannot do."""
        if self.voters is not None:
            among(self.voters, site.shape.layers, site.shape.query_heads)
        if site.rotary is None and (self.pre_rope or self.votes_by == "contrast"):
            setting = "pre_rope=True" if self.pre_rope else "votes_by=contrast"
            raise UserError(f"{setting}: it is not known how this model rotates its queries and keys.")
        return super().start(site)

    def vote(self, view: SummaryView) -> Votes:
        """The votes of the newest token."""
        candidates = view.candidates
        if self.exclude_covered:
            candidates = candidates & (view.starts <= view.last[:, None] - self.window)
        if self.index is not None:
            assert view.asked is not None and view.index is not None
            scores = self.index.scores(view.asked, view.index).masked_fill(~candidates, float("-inf"))
            above_chance = torch.nan_to_num(torch.softmax(scores.double(), dim=-1)) - 1 / candidates.sum(1, True)
            beyond = torch.where(candidates, above_chance, 0.0)
            return Votes(beyond, beyond)
        assert view.queries is not None and view.means is not None
        layers, _, heads, _ = view.queries.shape
        voters = None if self.voters is None else among(self.voters, layers, heads).to(view.queries.device)
        if self.votes_by == "contrast":
            assert view.habits is not None
            return contrast_votes(
                view.queries, view.habits, view.means, candidates, view.scaling, self.per_kv_head, voters
            )
        weighted = self.votes_by == "mass"
        return count_votes(
            view.queries, view.means, candidates, self.k, view.scaling, weighted, self.per_kv_head, voters
        )

    def select(self, view: SummaryView, votes: Votes | None) -> tuple[Tensor, Tensor]:
        """See `Summarized.select`."""
        if votes is None:
            return view.candidates, view.candidates
        zoomed = self.consensus(view, votes)
        shown = (votes.counts > 0) & ~zoomed
        if self.most_shown is not None:
            shown = top_segments(votes.counts, votes.mass, shown, self.most_shown)
        return zoomed, shown

    def consensus(self, view: SummaryView, votes: Votes) -> Tensor:
        """The segments to zoom into, (R, N) bool: those of most votes."""
        return top_segments(votes.counts, votes.mass, votes.counts > 0, self.c)


def among(voters: Sequence[Sequence[int]], layers: int, heads: int) -> Tensor:
    """The heads that vote, (L, Hq) bool.

    Raises
    ------
    UserError
        If there are none, or the model lacks one.
    """
    chosen = torch.zeros(layers, heads, dtype=torch.bool)
    for layer, head in voters:
        if not (0 <= layer < layers and 0 <= head < heads):
            raise UserError(f"voters={list(voters)}: the model has {layers} layers of {heads} query heads.")
        chosen[layer, head] = True
    if not chosen.any():
        raise UserError("voters=[]: at least one head must vote.")
    return chosen
