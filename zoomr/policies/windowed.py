"""What the summary methods share: prompt and window stay, and the rest is chosen at semantic boundaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from zoomr.policies.base import RefreshView, RowClock, Scope, Selection
from zoomr.selection import active_positions


@dataclass(frozen=True, kw_only=True)
class Windowed:
    """Prompt, window and a choice of segments, refreshed at semantic boundaries.

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
    """

    window: int = 512
    force_after: int = 256
    keep_open: bool = False
    every: int | None = None

    recalls: ClassVar[bool] = True
    offloads: ClassVar[bool] = False
    history: ClassVar[int] = 0
    scope: ClassVar[Scope] = "shared"

    def due(self, row: RowClock) -> bool:
        """See `Recalling.due`."""
        on_time = row.boundary if self.every is None else row.since >= self.every
        return on_time or row.since >= self.force_after

    def select(self, view: RefreshView, zoomed: Tensor, shown: Tensor) -> Selection:
        """The selection of prompt, window, and the segments that are `zoomed` into or `shown` as summaries, (R, N)."""
        active = active_positions(
            view.labels, view.last, view.finished, zoomed, shown, self.window, keep_open=self.keep_open
        )
        return Selection(active, zoomed, shown)
