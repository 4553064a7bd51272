"""A policy at work on the KVs of a batch: tokens enter, layers attend, and what is decided is carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from zoomr.attention import attend, attend_weighed
from zoomr.notes import Notes
from zoomr.policies.base import Change, Policy, Records, Site, derived_seed
from zoomr.policies.views import Resident, SlotView, View
from zoomr.prefill import Prefilled
from zoomr.rows import Row
from zoomr.tiers import Size, Tiers, make_tiers
from zoomr.trace import Refresh, Trace


@dataclass(frozen=True)
class BatchView:
    """See `View`: of rows of a batch, over its tiers and notes."""

    rows: list[int]
    clocks: Sequence[Row]
    tiers: Tiers
    notes: Notes

    @property
    def scaling(self) -> float:
        """The attention's own factor."""
        return self.notes.scaling

    def queries(self, rows: list[int]) -> Tensor:
        """See `View.queries`."""
        return self.notes.newest(rows)

    def hidden(self, rows: list[int]) -> Tensor:
        """See `View.hidden`."""
        return self.notes.newest_hidden(rows)

    def keys_of(self, row: int, start: int, stop: int) -> Tensor:
        """See `View.keys_of`."""
        return self.tiers.keys_of(row, start, stop)

    def slots(self, rows: list[int], layers: slice) -> SlotView:
        """See `View.slots`."""
        clocks = [clock for row, clock in zip(self.rows, self.clocks, strict=True) if row in rows]
        positions, present, received = self.tiers.slots(rows, layers)

        def by_row(numbers: list[int]) -> Tensor:
            return torch.tensor(numbers, device=positions.device)[None, :, None, None]

        return SlotView(
            positions=positions,
            present=present,
            last=by_row([clock.position for clock in clocks]),
            prompt=by_row([clock.prompt for clock in clocks]),
            held=clocks[0].held,
            seeds=[derived_seed(clock.seed, clock.refreshes) for clock in clocks],
            received=received,
            history=self.notes.last(rows, layers, [clock.position + 1 for clock in clocks]),
            scaling=self.scaling,
            keys=lambda: self.tiers.slot_kv(rows, layers, 0),
            values=lambda: self.tiers.slot_kv(rows, layers, 1),
        )


class Memory:
    """The KVs of a batch under a policy.

    Parameters
    ----------
    policy : Policy
    site : Site
    dtype : torch.dtype
        Of keys and values.
    mode : "gather" or "mask"
    trace : callable or None
        Called with every refresh that chose segments.
    """

    def __init__(self, policy: Policy, site: Site, dtype: torch.dtype, mode: str, trace: Trace | None = None):
        self.policy, self.trace = policy, trace
        self.state = policy.start(site)
        self.tiers = make_tiers(policy, Size(site.shape, site.batch, dtype, site.device), mode)
        self.notes = Notes(site, policy.history if Records.HISTORY in policy.records else 0)
        self.weighs = Records.ATTENTION in policy.records
        self._clocks: Sequence[Row] = ()

    def admit(self, row: int, clock: Row, prompt: Prefilled, scaling: float) -> None:
        """A row starts with its prompt, which may be over the budget already."""
        self.tiers.admit(row, prompt.keys, prompt.values, prompt.received)
        self.notes.admit(row, prompt.queries, clock.prompt)
        self.notes.scaling = scaling
        self.state.admit(row, clock)
        self._decide([row], [clock])

    def move(self, source: int, target: int) -> None:
        """The row at `source` continues at `target`."""
        for part in (self.tiers, self.notes, self.state):
            part.move(source, target)

    def open(self, clocks: Sequence[Row]) -> None:
        """The rows' newest tokens are about to go through the model."""
        self._clocks = clocks
        self.tiers.open([clock.position for clock in clocks])
        self.notes.open(clocks)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
        """Attention output of a layer, (B, 1, Hq, d), for one token a row."""
        self.notes.take(layer, query, scaling)
        self.tiers.append(layer, key, value)
        keys, values, mask = self.tiers.read(layer)
        bias = nearer = None
        if self.policy.chooses:
            positions, present = self.tiers.places(layer)
            reading = self.state.read(layer, query, Resident(self._clocks, positions, present, keys, values))
            bias, nearer = reading.bias, reading.nearer
            if reading.slots is not None:
                keys, values, mask = chosen_slots(reading.slots, present, keys, values)
        if not self.weighs and bias is None and nearer is None:
            return attend(query, keys, values, mask, scaling)
        output, weights = attend_weighed(query, keys, values, mask, scaling, bias, nearer)
        self.tiers.receive(layer, weights)
        return output

    def close(self) -> None:
        """The tokens went through the model: decide where rows are due."""
        self._decide(list(range(len(self._clocks))), self._clocks)

    def tensors(self) -> dict[str, list[Tensor]]:
        """The tensors that are held, by place: KVs on the device and the host, and on the device what is decided by."""
        tiers = self.tiers.tensors()
        return tiers | {"state": [*tiers["state"], *self.notes.tensors(), *self.state.tensors()]}

    def _decide(self, rows: list[int], clocks: Sequence[Row]) -> None:
        due = [(row, clock) for row, clock in zip(rows, clocks, strict=True) if self.state.due(clock)]
        if due:
            view = BatchView([row for row, _ in due], [clock for _, clock in due], self.tiers, self.notes)
            decide(self.state.decide, view, self.tiers.apply, self.trace)


def decide(
    decision: Callable[[View], Iterable[Change]],
    view: BatchView,
    apply: Callable[[Change, list[int]], list[int]],
    trace: Trace | None,
) -> None:
    """Let a state decide, carry its changes out, and keep the rows' account of it."""
    clock_of = dict(zip(view.rows, view.clocks, strict=True))
    for change in decision(view):
        clocks = [clock_of[row] for row in change.rows]
        moved = apply(change, [clock.position + 1 for clock in clocks])
        for place, clock in enumerate(clocks):
            choice = None if change.choices is None else change.choices[place]
            kinds = change.kinds[place]
            if choice is not None and trace is not None:
                trace(Refresh.of(clock, choice, int(sum(kinds)), moved[place]))
            clock.changed(kinds, change.held, moved[place], choice is not None and choice.forced)


def chosen_slots(slots: Tensor, present: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Keys and values (B, G, n, d) of slots (B, G, n), -1 for none, and which are in use, bool (B, G, 1, n)."""
    heads, named = slots.shape[1], slots >= 0
    slots = slots.clamp(min=0)

    def of_heads(held: Tensor) -> Tensor:
        return held.repeat_interleave(heads // held.shape[1], dim=1) if held.shape[1] < heads else held

    index = slots[..., None]
    found = [of_heads(part).gather(2, index.expand(-1, -1, -1, part.shape[-1])) for part in (keys, values)]
    return found[0], found[1], (of_heads(present).gather(2, slots) & named)[:, :, None]
