"""What a policy is: a frozen dataclass of hyper-parameters that starts a state, and the state decides.

The decoding loop knows no method. It asks a row's state whether it is `due` after a token, shows it a `View`, and
carries out the `Change` it returns: slots leave the device (for good, or for a lower tier), or positions that had left
come back. A state that chooses anew at each step and head answers `read` before each layer's attention.

Letters used in shapes: L layers, B rows of the batch, R rows that decide, Hq query heads, H KV heads, S slots, d head
dimension; (Lg, Hg) is the number of choices over layers and KV heads: (1, 1) for one that all share, (L, H) for one a
KV head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Flag, auto
from typing import ClassVar, Literal, Protocol

import torch
from torch import Tensor

from zoomr.policies.spans import Span
from zoomr.policies.views import Clock, Resident, View

Scope = Literal["shared", "layer", "head"]
# The one tier below the device's slots: the host, from which KVs come back; the host with two layers at a time on the
# device; or low precision on the device, still attended to.
Lower = Literal["none", "host", "layerwise", "int8", "int4", "int2"]


class Records(Flag):
    """What a decision looks at beside positions, and the attention therefore must note down."""

    NOTHING = 0
    KEYS = auto()  # the keys or values themselves
    QUERIES = auto()  # the newest token's queries
    HISTORY = auto()  # the queries of the last `history` tokens
    ATTENTION = auto()  # attention weights, summed over all queries since a KV entered


@dataclass(frozen=True)
class Shape:
    """Shape of one token's keys and values: layers, query heads and KV heads, dimensions of a key and of a value."""

    layers: int
    query_heads: int
    kv_heads: int
    key_dim: int
    value_dim: int

    def bytes_per_token(self, element_size: int) -> int:
        """Bytes of the keys and values of one token in all layers."""
        return self.layers * self.kv_heads * (self.key_dim + self.value_dim) * element_size


def group_counts(scope: Scope, shape: Shape) -> tuple[int, int]:
    """Number of choices over layers and over KV heads, (Lg, Hg)."""
    return {"shared": (1, 1), "layer": (shape.layers, 1), "head": (shape.layers, shape.kv_heads)}[scope]


@dataclass(frozen=True)
class Site:
    """Where a policy is put to work: on `batch` rows of a model of this shape.

    `rotary` moves queries or keys (..., T, d) by (T,) positions; None where the model's rotation is not known.
    """

    shape: Shape
    batch: int
    device: torch.device
    rotary: Callable[[Tensor, Tensor], Tensor] | None = None


@dataclass(frozen=True)
class Choice:
    """What a refresh chose, for the trace: segments in full and as summaries, votes of each finished summary."""

    zoomed: list[int]
    shown: list[int]
    votes: list[float] | None
    forced: bool


@dataclass(frozen=True)
class Change:
    """What becomes of the KVs of some rows, from the next token on: slots leave, or a set of spans is installed.

    Attributes
    ----------
    rows : list of int
        Rows that hold equally many KVs, where slots leave.
    kinds : list of list of float
        Active tokens of each row after the change, by kind (see `KINDS`).
    leave : (Lg, R, Hg, n) int64 or None
        Slots that leave, for good or to the lower tier.
    spans : list of list of Span, or None
        All that is active in each row, by position; what is on the device and not among it leaves, what is not there
        enters.
    held : int or None
        Slots in use afterwards, where that is not the number of active tokens.
    choices : list of Choice, or None
    """

    rows: list[int]
    kinds: list[list[float]]
    leave: Tensor | None = None
    to: Literal["gone", "lower"] = "gone"
    spans: list[list[Span]] | None = None
    held: int | None = None
    choices: list[Choice] | None = None


@dataclass(frozen=True)
class Reading:
    """How a step's queries attend to what a layer holds.

    Attributes
    ----------
    slots : (B, G, n) int64 or None
        Slots that are attended to, each named once, for each of G = 1, H or Hq heads; -1, and one that is not present,
        is none. None: all that are present.
    bias : (B, 1 or H, 1, S) or None
        Added to the scaled scores; with `slots`, to theirs: (B, G, 1, n).
    nearer : (Tensor, Tensor) or None
        Queries (B, Hq, d) that stand in for the step's own at the first (B,) slots of each row.
    """

    slots: Tensor | None = None
    bias: Tensor | None = None
    nearer: tuple[Tensor, Tensor] | None = None


class State:
    """Everything mutable that only its method knows, for a batch. As it stands it drops nothing.

    Attributes
    ----------
    watches : int or None
        Decoder layer whose output hidden states the view is to have.
    """

    watches: int | None = None

    def admit(self, row: int, clock: Clock) -> None:
        """A row starts, with its prompt's KVs."""

    def move(self, source: int, target: int) -> None:
        """The row at `source` continues at `target`."""

    def due(self, clock: Clock) -> bool:
        """Whether the row is to be shown to `decide` after its newest token (or after its prompt)."""
        return False

    def changes(self, clock: Clock) -> bool:
        """Whether `decide` may change anything after the row's newest token, or only looks."""
        return self.due(clock)

    def read(self, layer: int, query: Tensor, resident: Resident) -> Reading:
        """What the step's queries (B, Hq, 1, d) attend to in a layer, the step's own KVs included."""
        return Reading()

    def decide(self, view: View) -> Iterable[Change]:
        """What becomes of the KVs of the rows that are due."""
        return ()

    def tensors(self) -> list[Tensor]:
        """What the state itself holds on the device."""
        return []


class Policy(Protocol):
    """A method: hyper-parameters, checked when made."""

    @property
    def records(self) -> Records:
        """What its decisions look at."""
        ...

    @property
    def scope(self) -> Scope:
        """For whom a choice is made."""
        ...

    @property
    def chooses(self) -> bool:
        """Whether its state chooses at each step what is attended to: `State.read` is asked."""
        ...

    @property
    def history(self) -> int:
        """How many last queries are to be kept, where it looks at them."""
        ...

    @property
    def lower(self) -> Lower:
        """The tier below the device's slots."""
        ...

    def start(self, site: Site) -> State:
        """A state for a batch."""
        ...

    def check(self, prompt: int) -> None:
        """Refuse a prompt of this many tokens, with a `UserError`, where the settings cannot hold for it."""


@dataclass(frozen=True)
class Keeps:
    """What most policies have in common: one choice for all heads, nothing recorded, dropped KVs are gone."""

    records: ClassVar[Records] = Records.NOTHING
    scope: ClassVar[Scope] = "shared"
    lower: ClassVar[Lower] = "none"
    chooses: ClassVar[bool] = False
    history: ClassVar[int] = 0

    def check(self, prompt: int) -> None:
        """Every prompt will do."""


def derived_seed(seed: int, number: int) -> int:
    """A seed of its own for the `number`-th of what a seed stands for, in the range that torch takes."""
    return (seed * 1_000_003 + number) % 2**63
