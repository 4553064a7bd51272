"""StreamingLLM: the first few tokens and a sliding window (Xiao et al., arXiv 2309.17453)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from zoomr.policies.base import SlotView
from zoomr.policies.budgeted import Budgeted


@dataclass(frozen=True, kw_only=True)
class StreamingLLM(Budgeted):
    """Attention sinks and the most recent tokens, `budget` in all, evicting after every token.

    Parameters
    ----------
    start : int
        Number of sinks: the first tokens of the row.
    positions : "absolute" or "reassigned"
        Keys keep the rotation of their absolute positions; or, as in the original code, positions count within the
        cache. The distances within the window are the same, so that only the sinks are seen from nearer.
    """

    start: int = 4
    positions: Literal["absolute", "reassigned"] = "absolute"

    @property
    def reassigns(self) -> bool:
        """See `Evicting.reassigns`."""
        return self.positions == "reassigned"

    @property
    def sinks(self) -> int:
        """See `Budgeted.sinks`."""
        return self.start

    def rank(self, view: SlotView) -> Tensor:
        """The oldest goes first."""
        return view.positions.float()
