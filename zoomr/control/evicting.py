"""Evictions: rows over their budget drop their lowest KVs, after the attention of the token that filled it."""

from __future__ import annotations

import torch

from zoomr.policies.base import Evicting, SlotView, lowest_slots
from zoomr.rows import Row
from zoomr.stores import EvictStore


class EvictionControl:
    """Runs an evicting policy over a batch.

    Parameters
    ----------
    policy : Evicting
    store
        Keeps a subset of the slots it holds.
    device
    """

    def __init__(self, policy: Evicting, store: EvictStore, device: torch.device):
        self.policy, self.store, self.device = policy, store, device
        self.budget = policy.tokens

    def admit(self, index: int, row: Row) -> None:
        """A row starts: its prompt may be over the budget already."""
        excess = self._excess(row)
        if excess > 0:
            self._drop([index], [row], excess, last=row.position - 1)

    def move(self, source: int, target: int) -> None:
        """A row changes its place; nothing is kept here."""

    def before(self, rows: list[Row]) -> None:
        """Nothing to prepare."""

    def after(self, rows: list[Row]) -> None:
        """Evict in the rows that are over the budget and due."""
        if self.budget is None:
            return
        by_excess: dict[int, list[int]] = {}
        for index, row in enumerate(rows):
            excess = self._excess(row)
            if excess > 0 and (row.position + 1) % self.policy.interval == 0:
                by_excess.setdefault(excess, []).append(index)
        for excess, indices in by_excess.items():
            self._drop(indices, [rows[index] for index in indices], excess)

    def _excess(self, row: Row) -> int:
        if self.budget is None:
            return 0
        return min(row.held - self.budget, row.held - self.policy.reserved(row.prompt))

    def _drop(self, indices: list[int], rows: list[Row], number: int, last: int | None = None) -> None:
        positions, present, ledger = self.store.slots(indices)
        newest = [row.position if last is None else last for row in rows]
        view = SlotView(
            positions=positions,
            present=present,
            last=torch.tensor(newest, device=self.device)[None, :, None, None],
            prompt=torch.tensor([row.prompt for row in rows], device=self.device)[None, :, None, None],
            ledger=ledger,
        )
        self.store.drop(indices, lowest_slots(self.policy, view, number))
        for row in rows:
            row.held -= number
            row.refreshes += 1
            row.meter.reset(self._kinds(row))

    def _kinds(self, row: Row) -> list[float]:
        recent = min(row.held, row.position + 1 - row.prompt)
        return [0.0, recent, 0.0, 0.0, row.held - recent]
