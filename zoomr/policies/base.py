"""What a policy is: a frozen dataclass of hyper-parameters, what it must be shown, and the choice it makes.

There are two families. A recalling policy names absolute positions of the whole row, since what it dropped may come
back; its choice is shared by all layers and heads. An evicting policy ranks the KVs that are still there and drops the
lowest, for good; its choice may be shared, one a layer, or one a KV head.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from zoomr.selection import Votes
from zoomr.stores.base import Scope

FAR = torch.iinfo(torch.int64).max


class Needs(Flag):
    """What a policy must be shown."""

    NOTHING = 0
    QUERIES = auto()  # the newest token's queries
    SUMMARIES = auto()  # mean summary keys
    ATTENTION = auto()  # attention weights, summed over all queries since a KV entered
    HISTORY = auto()  # the queries of the last `history` tokens, and the keys of the slots


class RowClock(Protocol):
    """What decides whether a row is due: its newest token, and the tokens since its last refresh."""

    boundary: bool
    since: int


@dataclass(frozen=True)
class RefreshView:
    """What a recalling policy sees of the R rows that are due.

    Attributes
    ----------
    last, finished : (R,) int64
        Position of the newest token; number of finished summaries.
    starts : (R, N) int64
        First position of each finished segment's paragraph.
    labels : (R, T) int64
        Segment labels of the positions (see `SegmentTracker`).
    candidates : (R, N) bool
        The finished segments.
    queries : (L, R, Hq, d) or None
    means : (L, R, H, N, d) or None
    scaling : float
    seeds : list of int
        One a row and refresh.
    prompts : list of int
        Index of each row's prompt.
    keys : callable
        Gives the keys of all positions, (L, R, H, T, d).
    """

    last: Tensor
    finished: Tensor
    starts: Tensor
    labels: Tensor
    candidates: Tensor
    queries: Tensor | None
    means: Tensor | None
    scaling: float
    seeds: list[int]
    prompts: list[int]
    keys: Callable[[], Tensor]


@dataclass(frozen=True)
class Selection:
    """A recalling policy's choice: `active` (R, T) by position; `zoomed` and `shown` (R, N) say which segments."""

    active: Tensor
    zoomed: Tensor
    shown: Tensor


class Recalling(Protocol):
    """A policy whose dropped KVs may come back."""

    recalls: ClassVar[bool]
    offloads: ClassVar[bool]
    needs: ClassVar[Needs]
    scope: ClassVar[Scope]

    @property
    def history(self) -> int:
        """Last queries that it must be shown."""
        ...

    @property
    def window(self) -> int:
        """Tokens of the recent window."""
        ...

    @property
    def force_after(self) -> int:
        """Tokens without a boundary after which a refresh is forced."""
        ...

    @property
    def keep_open(self) -> bool:
        """Whether the unfinished paragraph is kept whole."""
        ...

    @property
    def pre_rope(self) -> bool:
        """Whether mean keys are taken before the rotation."""
        ...

    @property
    def with_delimiters(self) -> bool:
        """Whether the two delimiters count among the tokens of a mean key."""
        ...

    @property
    def vote_span(self) -> bool:
        """Whether votes are summed over the tokens since the last refresh."""
        ...

    def due(self, row: RowClock) -> bool:
        """Whether the row is refreshed after its newest token."""

    def vote(self, view: RefreshView) -> Votes | None:
        """The heads' votes, for a policy that asks them."""

    def refresh(self, view: RefreshView, votes: Votes | None) -> Selection:
        """Choose what is active from the next token on."""


@dataclass(frozen=True)
class SlotView:
    """What an evicting policy sees of R rows.

    Attributes
    ----------
    positions, present : (Lg or 1, R or 1, Hg or 1, S)
        Absolute position of each slot's token; whether the slot is in use.
    last, prompt : (1, R, 1, 1) int64
        Position of the newest token; number of prompt tokens.
    held : int
        Slots in use in each row and group.
    seeds : list of int
        One a row and eviction.
    ledger : (L, R, H, S) or None
        Attention each slot has received.
    history : (L, R, W, Hq, d) or None
        Queries of the last W tokens, in any order.
    scaling : float
        The attention's own factor.
    keys : callable
        Gives the keys in the slots, (L, R, H, S, d).
    """

    positions: Tensor
    present: Tensor
    last: Tensor
    prompt: Tensor
    held: int
    seeds: list[int]
    ledger: Tensor | None
    history: Tensor | None
    scaling: float
    keys: Callable[[], Tensor]


class Evicting(Protocol):
    """A policy that drops KVs for good, to stay within a budget (None: no limit)."""

    recalls: ClassVar[bool]
    offloads: ClassVar[bool]
    needs: ClassVar[Needs]
    scope: ClassVar[Scope]

    @property
    def interval(self) -> int:
        """Tokens between two evictions."""
        ...

    @property
    def history(self) -> int:
        """Last queries that it must be shown."""
        ...

    @property
    def reassigns(self) -> bool:
        """Whether positions are re-assigned within the cache, so that dropped tokens leave no distance."""

    @property
    def tokens(self) -> int | None:
        """The budget in tokens a row."""

    @property
    def protected(self) -> int:
        """Last tokens of a row that are never dropped."""

    def first(self, prompt: int) -> int:
        """First tokens of a row with this many prompt tokens that are never dropped."""

    def spared(self, view: SlotView) -> Tensor:
        """Slots that are not dropped now, bool, (Lg, R, Hg, S) or a shape that broadcasts to it."""

    def rank(self, view: SlotView) -> Tensor:
        """The slots' worth, float, (Lg, R, Hg, S) or a shape that broadcasts to it: the lowest are dropped first."""


def lowest_slots(policy: Evicting, view: SlotView, number: int) -> Tensor:
    """The `number` slots of lowest rank that each group may drop, (Lg, R, Hg, number) int64; of equals, the oldest."""
    free = view.present & ~policy.spared(view)
    worth = torch.where(free, policy.rank(view), torch.inf)
    positions = view.positions.expand(worth.shape)
    if number == 1:
        least = worth == worth.amin(dim=-1, keepdim=True)
        return torch.where(least, positions, FAR).argmin(dim=-1, keepdim=True)
    by_age = positions.argsort(dim=-1)
    by_worth = worth.gather(-1, by_age).sort(dim=-1, stable=True).indices
    return by_age.gather(-1, by_worth[..., :number])
