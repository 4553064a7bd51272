"""Evictions: rows over their budget drop their lowest KVs, after the attention of the token that filled it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from zoomr.observers import Shift, StepObserver
from zoomr.policies.base import Evicting, SlotView, lowest_slots
from zoomr.rows import Row, derived_seed
from zoomr.stores import EvictStore

COUNT_EVERY = 32  # evictions between two counts of the prompt tokens that are left


class EvictionControl:
    """Runs an evicting policy over a batch.

    Parameters
    ----------
    policy : Evicting
    store : EvictStore
    observer : StepObserver
    device
    rotary : module or None
        The model's rotary embedding, for re-assigned positions.
    """

    def __init__(
        self, policy: Evicting, store: EvictStore, observer: StepObserver, device: torch.device, rotary: Any = None
    ):
        self.policy, self.store, self.observer, self.device, self.rotary = policy, store, observer, device, rotary
        self.budget = policy.tokens

    def admit(self, index: int, row: Row, queries: Tensor | None) -> None:
        """A row starts, with the last queries of its prompt; the prompt may be over the budget already."""
        if self.observer.history is not None and queries is not None:
            self.observer.history.admit(index, queries, row.prompt)
        excess = self._excess(row)
        if excess > 0:
            self._drop([index], [row], excess, [row.prompt - 1])

    def move(self, source: int, target: int) -> None:
        """A row changes its place."""
        if self.observer.history is not None:
            self.observer.history.move(source, target)

    def before(self, rows: list[Row]) -> None:
        """Tell the observer where queries go, and what positions are re-assigned."""
        if self.observer.history is not None:
            places = [row.position % self.observer.history.length for row in rows]
            self.observer.places = torch.tensor(places, device=self.device)
        if self.policy.reassigns:
            first = torch.tensor([self.policy.first(row.prompt) for row in rows], device=self.device)
            by = torch.tensor([row.position + 1 - row.held for row in rows], device=self.device)
            self.observer.shift = Shift(first, by, self.rotary)

    def after(self, rows: list[Row]) -> None:
        """Evict in the rows that are over the budget and due."""
        if self.budget is None:
            return
        alike: dict[tuple[int, int], list[int]] = {}
        for index, row in enumerate(rows):
            excess = self._excess(row)
            if excess > 0 and (row.position + 1) % self.policy.interval == 0:
                alike.setdefault((excess, row.held), []).append(index)
        for (excess, _), indices in alike.items():
            chosen = [rows[index] for index in indices]
            self._drop(indices, chosen, excess, [row.position for row in chosen])

    def _excess(self, row: Row) -> int:
        if self.budget is None:
            return 0
        return row.held - max(self.budget, self.policy.first(row.prompt) + self.policy.protected)

    def _drop(self, indices: list[int], rows: list[Row], number: int, last: list[int]) -> None:
        positions, present, ledger = self.store.slots(indices)
        history = self.observer.history
        view = SlotView(
            positions=positions,
            present=present,
            last=torch.tensor(last, device=self.device)[None, :, None, None],
            prompt=torch.tensor([row.prompt for row in rows], device=self.device)[None, :, None, None],
            held=rows[0].held,
            seeds=[derived_seed(row.request.seed, row.refreshes) for row in rows],
            ledger=ledger,
            history=None if history is None else history.of(indices, min(last) + 1),
            scaling=self.observer.scaling,
            keys=lambda: self.store.slot_keys(indices),
        )
        lowest = lowest_slots(self.policy, view, number)
        counted = [place for place, row in enumerate(rows) if row.refreshes % COUNT_EVERY == 0]
        if counted:
            left = prompt_left(view, lowest)
            for place in counted:
                rows[place].prompt_held = left[place]
        self.store.drop(indices, lowest)
        for row, newest in zip(rows, last, strict=True):
            row.held -= number
            row.refreshes += 1
            recent = min(self.policy.protected, newest + 1 - row.prompt)
            other = row.held - row.prompt_held - recent
            row.meter.reset([row.prompt_held, recent, 0.0, 0.0, other])


def prompt_left(view: SlotView, lowest: Tensor) -> list[float]:
    """Prompt tokens that each row still holds when `lowest` are dropped, the mean over its groups."""
    positions = view.positions.expand(view.present.shape)
    held = (view.present & (positions < view.prompt)).sum(-1)
    gone = (positions.gather(-1, lowest) < view.prompt).sum(-1)
    return (held - gone).double().mean(dim=(0, 2)).tolist()
