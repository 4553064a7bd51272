"""What the eviction baselines share: a budget, and parts of a row that are never dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from zoomr.errors import UserError
from zoomr.policies.base import Needs, Scope, SlotView


@dataclass(frozen=True, kw_only=True)
class Budgeted:
    """A limit on the KVs of a row, prompt included, held after every `interval` tokens.

    Parameters
    ----------
    budget : int, float or str
        Tokens. A share of the full cache, bytes ("64MB") and "match" are resolved to tokens by
        `zoomr.meter.resolve_budget` before decoding.
    protect_prompt : bool
        Never drop a prompt token. A prompt larger than the budget is kept whole.
    """

    budget: int | float | str
    protect_prompt: bool = False

    recalls: ClassVar[bool] = False
    offloads: ClassVar[bool] = False
    needs: ClassVar[Needs] = Needs.NOTHING
    scope: ClassVar[Scope] = "shared"
    interval: ClassVar[int] = 1
    history: ClassVar[int] = 0

    @property
    def tokens(self) -> int:
        """The budget in tokens a row."""
        if isinstance(self.budget, bool) or not isinstance(self.budget, int) or self.budget < 1:
            raise UserError(f"policy.budget: the decoder needs a number of tokens, not {self.budget!r}")
        return self.budget

    @property
    def sinks(self) -> int:
        """First tokens of a row that are never dropped."""
        return 0

    @property
    def protected(self) -> int:
        """Last tokens of a row that are never dropped."""
        return 1

    @property
    def reassigns(self) -> bool:
        """See `Evicting.reassigns`."""
        return False

    def first(self, prompt: int) -> int:
        """See `Evicting.first`."""
        return max(self.sinks, prompt) if self.protect_prompt else self.sinks

    def spared(self, view: SlotView) -> Tensor:
        """See `Evicting.spared`."""
        first = view.prompt.clamp(min=self.sinks) if self.protect_prompt else self.sinks
        return (view.positions < first) | (view.positions > view.last - self.protected)
