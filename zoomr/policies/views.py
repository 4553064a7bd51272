"""What a state is shown; see `zoomr.policies.base` for the letters in shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from zoomr.summaries.segments import SegmentTracker


class Clock(Protocol):
    """What a state may know of a row at any time.

    Attributes
    ----------
    number : int
        Index of the row's prompt.
    seed : int
    prompt, position, held : int
        Prompt tokens; absolute position of the newest token; KVs on the device, those of the newest token included.
    since : int
        Tokens fed since the last change.
    boundary, closed : bool
        The newest token is a semantic boundary; it closed a summary.
    refreshes : int
        Changes so far.
    tracker : SegmentTracker
    """

    position: int
    held: int
    since: int
    boundary: bool
    closed: bool
    refreshes: int
    tracker: SegmentTracker

    @property
    def number(self) -> int:
        """See the attributes."""
        ...

    @property
    def seed(self) -> int:
        """See the attributes."""
        ...

    @property
    def prompt(self) -> int:
        """See the attributes."""
        ...


@dataclass(frozen=True)
class Resident:
    """What one layer holds when a step's queries arrive, for a state that chooses what they attend to.

    Attributes
    ----------
    clocks : sequence of Clock
    positions, present : (B, Hg, S)
        Absolute position of each slot's token; whether the slot is in use.
    keys, values : (B, H, S, d)
    """

    clocks: Sequence[Clock]
    positions: Tensor
    present: Tensor
    keys: Tensor
    values: Tensor


@dataclass(frozen=True)
class SlotView:
    """Slots of R rows that hold equally many KVs, in all layers or one.

    Attributes
    ----------
    positions, present : (Lg or 1, R or 1, Hg or 1, S)
        Absolute position of each slot's token; whether the slot is in use.
    last, prompt : (1, R, 1, 1) int64
        Position of the newest token; number of prompt tokens.
    held : int
        Slots in use in each row and group.
    seeds : list of int
        One a row and change.
    received : (L, R, H, S) or None
        Attention each slot has received.
    history : (L, R, W, Hq, d) or None
        Queries of the last W tokens, the oldest first.
    scaling : float
        The attention's own factor.
    keys, values : callable
        Give the keys and values in the slots, (L, R, H, S, d).
    """

    positions: Tensor
    present: Tensor
    last: Tensor
    prompt: Tensor
    held: int
    seeds: list[int]
    received: Tensor | None
    history: Tensor | None
    scaling: float
    keys: Callable[[], Tensor]
    values: Callable[[], Tensor]


class View(Protocol):
    """What a state sees of the rows that are due; everything is made when it is asked for."""

    @property
    def rows(self) -> list[int]:
        """Their places in the batch."""
        ...

    @property
    def clocks(self) -> Sequence[Clock]:
        """One a row."""
        ...

    @property
    def scaling(self) -> float:
        """The attention's own factor."""
        ...

    def queries(self, rows: list[int]) -> Tensor:
        """Queries of the newest token, after the rotation, (L, R, Hq, d)."""
        ...

    def hidden(self, rows: list[int]) -> Tensor:
        """Hidden states of the newest token after the layer that the state watches, (R, h)."""
        ...

    def keys_of(self, row: int, start: int, stop: int) -> Tensor:
        """Keys of the positions from `start` to `stop`, wherever they are, (L, H, n, d)."""
        ...

    def slots(self, rows: list[int], layers: slice) -> SlotView:
        """The slots of rows that hold equally many KVs, in some layers."""
        ...
