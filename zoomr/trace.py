"""The record of each refresh: what was zoomed into, shown and absent, and with how many votes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zoomr.policies.base import Choice
    from zoomr.rows import Row


@dataclass(frozen=True)
class Refresh:
    """One refresh of one row.

    Attributes
    ----------
    prompt, sample : int
    position : int
        Absolute position of the token after which the new set holds.
    number : int
        Refreshes of this row before this one.
    finished : int
        Finished summaries, N_t.
    votes : list of float or None
        Votes of each finished summary.
    zoomed, shown : list of int
        Segments present as paragraph, and as summary.
    agreeability : float or None
        Share of the votes that fell on the zoomed segments (paper, section 4); None without votes.
    active : int
        Active tokens after the refresh.
    moved_bytes : int
    forced : bool
    edges : list of int
        Where segments change: prompt end, then begin and end of each summary.
    """

    prompt: int
    sample: int
    position: int
    number: int
    finished: int
    votes: list[float] | None
    zoomed: list[int]
    shown: list[int]
    agreeability: float | None
    active: int
    moved_bytes: int
    forced: bool
    edges: list[int]

    @classmethod
    def of(cls, row: Row, choice: Choice, active: int, moved_bytes: int) -> Refresh:
        """Make the record of a row's refresh."""
        votes = choice.votes
        positive = [max(0.0, vote) for vote in votes or []]  # a contrast of votes sums to zero
        total = sum(positive)
        return cls(
            prompt=row.request.prompt,
            sample=row.request.sample,
            position=row.position,
            number=row.refreshes,
            finished=row.tracker.finished,
            votes=votes,
            zoomed=choice.zoomed,
            shown=choice.shown,
            agreeability=sum(positive[index] for index in choice.zoomed) / total if total else None,
            active=active,
            moved_bytes=moved_bytes,
            forced=choice.forced,
            edges=list(row.tracker.edges),
        )

    def to_dict(self) -> dict[str, Any]:
        """As a plain dictionary."""
        return asdict(self)


Trace = Callable[[Refresh], None]
