"""StreamingLLM: the first few tokens and a sliding window (Xiao et al., arXiv 2309.17453)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from zoomr.errors import UserError
from zoomr.policies.base import Reading, Resident, Site, SlotView, State
from zoomr.policies.budgeted import Budgeted, Eviction
from zoomr.policies.checks import one_of, whole

Positions = Literal["absolute", "reassigned"]


@dataclass(frozen=True, kw_only=True)
class StreamingLLM(Budgeted):
    """Attention sinks and the most recent tokens, `budget` in all, evicting after every token.

    Parameters
    ----------
    sinks : int
        Number of attention sinks: the first tokens of the row.
    positions : "absolute" or "reassigned"
        Keys keep the rotation of their absolute positions; or, as in the original code, positions count within the
        cache. The distances within the window are the same, so that only the sinks are seen from nearer.
    """

    sinks: int = 4  # type: ignore[misc]
    positions: Positions = "absolute"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self, 0, "sinks")
        one_of(self, "positions", Positions)

    @property
    def chooses(self) -> bool:  # type: ignore[override]
        """Where positions are re-assigned, the sinks are attended to by other queries."""
        return self.positions == "reassigned"

    def rank(self, view: SlotView) -> Tensor:
        """The oldest goes first."""
        return view.positions.float()

    def start(self, site: Site) -> State:
        """A state that also moves queries, where positions are re-assigned."""
        return Nearer(self, site) if self.chooses else super().start(site)


class Nearer(Eviction):
    """Lets queries see the sinks from as far as they are within the cache."""

    def __init__(self, policy: StreamingLLM, site: Site):
        super().__init__(policy, site)
        if site.rotary is None:
            raise UserError("positions=reassigned: it is not known how this model rotates its keys.")
        self.rotary = site.rotary

    def read(self, layer: int, query: Tensor, resident: Resident) -> Reading:
        """The step's queries, and for the sinks those of a position nearer to them."""
        first = [self.policy.keep_first(clock.prompt) for clock in resident.clocks]
        nearer_by = [clock.position + 1 - clock.held for clock in resident.clocks]
        shift = -torch.tensor(nearer_by, device=query.device)
        # rows stand where the tokens of a sequence would: each has a shift of its own
        moved = self.rotary(query[:, :, 0].transpose(0, 1), shift).transpose(0, 1)
        return Reading(nearer=(moved.to(query.dtype), torch.tensor(first, device=query.device)))
