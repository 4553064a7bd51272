"""H2O: keep the KVs that have received most attention, and recent ones (Zhang et al., arXiv 2306.14048)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from zoomr.policies.base import Records, Scope, SlotView
from zoomr.policies.budgeted import Budgeted
from zoomr.policies.checks import share


@dataclass(frozen=True, kw_only=True)
class H2O(Budgeted):
    """Heavy hitters by accumulated attention, one choice a KV head, evicting after every token.

    A KV's score is the attention weight it has received from every query since it entered, prompt queries included,
    summed over the query heads of its KV head. The sum favours early tokens; the recent share is always kept.

    Parameters
    ----------
    recent_share : float
        Share of the budget, of what the prompt leaves of it where that is kept, for the most recent tokens; the rest
        is for heavy hitters.
    """

    recent_share: float = 0.5

    records: ClassVar[Records] = Records.ATTENTION
    scope: ClassVar[Scope] = "head"

    def __post_init__(self) -> None:
        super().__post_init__()
        share(self, "recent_share")

    def keep_last(self, prompt: int) -> int:
        """The recent share, the newest token at least."""
        return max(1, int((self.tokens - self.keep_first(prompt)) * self.recent_share))

    def rank(self, view: SlotView) -> Tensor:
        """Accumulated attention."""
        assert view.received is not None
        return view.received
