"""The record of each refresh: what was zoomed into, shown and absent, and with how many votes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    def of(
        cls,
        row: Row,
        zoomed: list[bool],
        shown: list[bool],
        votes: list[float] | None,
        active: int,
        moved_bytes: int,
        forced: bool,
    ) -> Refresh:
        """Make the record of a row's refresh."""
        chosen = [index for index, is_in in enumerate(zoomed) if is_in]
        total = sum(votes) if votes else 0.0
        return cls(
            prompt=row.request.prompt,
            sample=row.request.sample,
            position=row.position,
            number=row.refreshes,
            finished=row.tracker.finished,
            votes=votes,
            zoomed=chosen,
            shown=[index for index, is_in in enumerate(shown) if is_in],
            agreeability=sum(votes[index] for index in chosen) / total if votes and total else None,
            active=active,
            moved_bytes=moved_bytes,
            forced=forced,
            edges=list(row.tracker.edges),
        )

    def to_dict(self) -> dict[str, Any]:
        """As a plain dictionary."""
        return asdict(self)


Trace = Callable[[Refresh], None]


class TraceWriter:
    """Streams refreshes to a file, one JSON object a line.

    >>> with TraceWriter("trace.jsonl") as trace:
    ...     generate(model, tokenizer, prompts, policy=ZoomR(), max_new_tokens=512, trace=trace)
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)

    def __enter__(self) -> TraceWriter:
        self._file = self.path.open("w")
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def __call__(self, refresh: Refresh) -> None:
        """Write one refresh."""
        self._file.write(json.dumps(refresh.to_dict()) + "\n")
