"""What methods share that keep a budget: a rank of the KVs, of which the lowest leave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from zoomr.errors import UserError
from zoomr.policies.base import Change, Keeps, Records, Site, State
from zoomr.policies.checks import flags
from zoomr.policies.spans import OTHER, PROMPT, WINDOW
from zoomr.policies.views import Clock, SlotView, View

FAR = torch.iinfo(torch.int64).max


@dataclass(frozen=True, kw_only=True)
class Budgeted(Keeps):
    """A limit on the KVs of a row, prompt included; when it is passed, room is made for `interval` tokens.

    The newest token attends before anything leaves, so that a step sees at most `budget` KVs and its own.

    Parameters
    ----------
    budget : int, float or str
        Tokens. A share of the full cache, bytes ("64MB") and "match" are resolved to tokens by
        `zoomr.budgets.resolve_budget` before decoding.
    keep_prompt : bool
        Never drop a prompt token.
    """

    budget: int | float | str
    keep_prompt: bool = False

    sinks: ClassVar[int] = 0  # first tokens of a row that are never dropped
    interval: ClassVar[int] = 1
    to: ClassVar[Literal["gone", "lower"]] = "gone"

    def __post_init__(self) -> None:
        flags(self, "keep_prompt")
        if isinstance(self.budget, int) and (isinstance(self.budget, bool) or self.budget < 1):
            raise UserError(f"budget={self.budget}: at least one token is needed.")

    @property
    def tokens(self) -> int:
        """The budget in tokens a row."""
        if not isinstance(self.budget, int):
            raise UserError(f"budget={self.budget}: the decoder needs a number of tokens.")
        return self.budget

    def limit(self, clock: Clock) -> int:
        """KVs that a row may hold now."""
        return self.tokens

    def keep_first(self, prompt: int) -> int:
        """First tokens that are never dropped of a row with this many prompt tokens."""
        return max(self.sinks, prompt) if self.keep_prompt else self.sinks

    def keep_last(self, prompt: int) -> int:
        """Last tokens that are never dropped of a row with this many prompt tokens."""
        return 1

    def check(self, prompt: int) -> None:
        """Refuse what the budget cannot hold: the parts that are never dropped and room for `interval` tokens.

        Raises
        ------
        UserError
        """
        first, last = self.keep_first(prompt), self.keep_last(prompt)
        needed = first + last + self.interval - 1
        if self.tokens < needed:
            kept = f"the prompt's {prompt} tokens" if self.keep_prompt else f"{first} first tokens"
            room = f", {last} last ones and room for {self.interval}" if self.interval > 1 else f" and {last} last ones"
            raise UserError(f"budget={self.tokens}: too small to keep {kept}{room}: {needed} or more are needed.")

    def rank(self, view: SlotView) -> Tensor:
        """The slots' worth, float, (L, R, H, S) or a shape that broadcasts to it: the lowest leave first."""
        raise NotImplementedError

    def start(self, site: Site) -> State:
        """A state that counts what is held."""
        return Eviction(self, site)


class Eviction(State):
    """Lets the lowest KVs leave when a row is over its budget.

    Policies that look at queries are shown one layer at a time, so that no scores of all layers exist at once.

    Parameters
    ----------
    policy : Budgeted
    site : Site
    """

    def __init__(self, policy: Budgeted, site: Site):
        self.policy, self.layers = policy, site.shape.layers
        self.prompt_held = [0.0] * site.batch
        self.lowered = [0] * site.batch  # tokens in the lower tier
        self.block = 1 if policy.records & (Records.HISTORY | Records.KEYS) else self.layers

    def admit(self, row: int, clock: Clock) -> None:
        """See `State.admit`."""
        self.prompt_held[row], self.lowered[row] = clock.prompt, 0

    def move(self, source: int, target: int) -> None:
        """See `State.move`."""
        self.prompt_held[target], self.lowered[target] = self.prompt_held[source], self.lowered[source]

    def due(self, clock: Clock) -> bool:
        """Whether the budget is passed."""
        return clock.held > self.policy.limit(clock)

    def decide(self, view: View) -> Iterator[Change]:
        """One change for all rows that hold and drop equally many."""
        alike: dict[tuple[int, int], list[tuple[int, Clock]]] = {}
        for row, clock in zip(view.rows, view.clocks, strict=True):
            number = clock.held - (self.policy.limit(clock) - self.policy.interval + 1)
            alike.setdefault((clock.held, number), []).append((row, clock))
        for (_, number), chosen in alike.items():
            yield self._drop(view, [row for row, _ in chosen], [clock for _, clock in chosen], number)

    def _drop(self, view: View, rows: list[int], clocks: list[Clock], number: int) -> Change:
        lowest, gone = [], []
        for layers in self._blocks():
            slots = view.slots(rows, layers)
            last = torch.tensor([self.policy.keep_last(clock.prompt) for clock in clocks])
            first = torch.tensor([self.policy.keep_first(clock.prompt) for clock in clocks])
            device = slots.last.device
            spared = slots.positions < first.to(device)[None, :, None, None]
            spared = spared | (slots.positions > slots.last - last.to(device)[None, :, None, None])
            chosen = lowest_slots(self._rank(view, rows, layers, slots), slots, spared, number)
            positions = slots.positions.expand(chosen.shape[:3] + slots.positions.shape[-1:])
            lowest.append(chosen)
            gone.append((positions.gather(-1, chosen) < slots.prompt).sum(-1).double().mean(2))
        dropped = torch.cat(gone).mean(0).tolist()
        kinds = []
        for row, clock, share in zip(rows, clocks, dropped, strict=True):
            if self.policy.to == "lower":
                self.lowered[row] += number
            else:
                self.prompt_held[row] -= share
            active = clock.held - number + self.lowered[row]
            recent = min(self.policy.keep_last(clock.prompt), clock.position + 1 - clock.prompt)
            kinds.append([0.0] * (OTHER + 1))
            kinds[-1][PROMPT], kinds[-1][WINDOW] = self.prompt_held[row], recent
            kinds[-1][OTHER] = active - self.prompt_held[row] - recent
        return Change(rows, kinds, leave=torch.cat(lowest), to=self.policy.to, held=clocks[0].held - number)

    def _blocks(self) -> list[slice]:
        if self.policy.scope == "shared":
            return [slice(0, self.layers)]
        return [slice(first, first + self.block) for first in range(0, self.layers, self.block)]

    def _rank(self, view: View, rows: list[int], layers: slice, slots: SlotView) -> Tensor:
        if self.policy.scope == "head" or self.block == self.layers:
            return self.policy.rank(slots)
        if self.policy.scope == "layer":
            return self.policy.rank(slots).mean(dim=2, keepdim=True)
        ranks = [self.policy.rank(view.slots(rows, slice(one, one + 1))) for one in range(self.layers)]
        return torch.stack([rank.mean(dim=2, keepdim=True) for rank in ranks]).sum(0)


def lowest_slots(rank: Tensor, view: SlotView, spared: Tensor, number: int) -> Tensor:
    """The `number` slots of lowest rank that each group may drop, (Lg, R, Hg, number) int64; of equals, the oldest."""
    worth = torch.where(view.present & ~spared, rank, torch.inf)
    positions = view.positions.expand(worth.shape)
    if number == 1:
        least = worth == worth.amin(dim=-1, keepdim=True)
        return torch.where(least, positions, FAR).argmin(dim=-1, keepdim=True)
    by_age = positions.argsort(dim=-1)
    by_worth = worth.gather(-1, by_age).sort(dim=-1, stable=True).indices
    return by_age.gather(-1, by_worth[..., :number])
