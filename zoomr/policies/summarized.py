"""What the summary methods share: prompt and window stay, and segments are chosen at semantic boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from zoomr.policies.base import CONCLUSION, OTHER, PROMPT, SUMMARY, WINDOW, ZOOMED, Clock, Keeps, Site, Span, State
from zoomr.policies.checks import flags, one_of, whole
from zoomr.summaries.index import LearnedIndex
from zoomr.summaries.state import SummaryState, SummaryView
from zoomr.summaries.votes import Votes


@dataclass(frozen=True, kw_only=True)
class Summarized(Keeps):
    """Prompt, window and a choice of segments, made anew at semantic boundaries; everything else waits on the host.

    Parameters
    ----------
    window : int
        Tokens of the recent window at a refresh; tokens generated since then stay active too (paper: N_w = 512).
    force_after : int
        A refresh is forced when this many tokens came without a boundary.
    keep_open : bool
        Keep the whole unfinished paragraph.
    every : int or None
        Refresh after this many tokens instead of at boundaries; 1 is every token.
    tail : int
        Last tokens of a shown summary's paragraph that stay with it, where a paragraph says what it found (ours).
    lower : "host" or "layerwise"
        Active KVs are on the device; or on the host too, and fetched layer by layer (paper, section 3.4).
    """

    window: int = 512
    force_after: int = 256
    keep_open: bool = False
    every: int | None = None
    tail: int = 0
    lower: Literal["host", "layerwise"] = "host"  # type: ignore[misc]

    votes_by: ClassVar[str] = "nobody"
    index: ClassVar[LearnedIndex | None] = None
    vote_span: ClassVar[bool] = False
    pre_rope: ClassVar[bool] = False
    with_delimiters: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole(self, 1, "window", "force_after")
        whole(self, 0, "tail")
        flags(self, "keep_open")
        one_of(self, "lower", Literal["host", "layerwise"])
        if self.every is not None:
            whole(self, 1, "every")

    def start(self, site: Site) -> State:
        """A state that knows the summaries."""
        return SummaryState(self, site)

    def refreshes(self, clock: Clock) -> bool:
        """Whether the row's newest token ends with a new choice."""
        return self.on_time(clock) or clock.since >= max(self.force_after, self.every or 0)

    def on_time(self, clock: Clock) -> bool:
        """Whether the newest token is one at which the method chooses."""
        return clock.boundary if self.every is None else clock.since >= self.every

    def vote(self, view: SummaryView) -> Votes | None:
        """The votes for the finished summaries; None where nobody is asked."""
        return None

    def select(self, view: SummaryView, votes: Votes | None) -> tuple[Tensor, Tensor]:
        """Segments to zoom into, and to show as summaries, (R, N) bool each."""
        raise NotImplementedError

    def spans(self, clock: Clock, zoomed: Sequence[int], shown: Sequence[int]) -> list[Span]:
        """All that is active: I_p + I_w + R_i of the zoomed + S_i of the shown (paper, section 3.3)."""
        edges, length = clock.tracker.edges, clock.position + 1
        spans = [(0, clock.prompt, PROMPT), (max(0, length - self.window), length, WINDOW)]
        spans += [(edges[2 * i], edges[2 * i + 1], ZOOMED) for i in zoomed]
        spans += [(edges[2 * i + 1], edges[2 * i + 2], SUMMARY) for i in shown]
        if self.tail:
            spans += [(max(edges[2 * i], edges[2 * i + 1] - self.tail), edges[2 * i + 1], CONCLUSION) for i in shown]
        if self.keep_open:
            spans.append((edges[2 * clock.tracker.finished], length, OTHER))
        return spans
