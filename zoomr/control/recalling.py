"""Refreshes of recalling policies: mean keys when summaries close, votes and a new index set when a row is due."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from zoomr.bank import SummaryBank
from zoomr.compat import KVShape
from zoomr.observers import StepObserver
from zoomr.policies.base import Needs, Recalling, RefreshView
from zoomr.rotary import unrotated_mean
from zoomr.rows import Row, derived_seed
from zoomr.selection import label_positions, mean_key
from zoomr.stores import RecallStore
from zoomr.trace import Refresh, Trace

BEYOND = torch.iinfo(torch.int64).max


class RecallControl:
    """Runs a recalling policy over a batch.

    A boundary token attends to the old set; its queries vote when its forward is done, and the new set holds from the
    next token on (paper, algorithm 1).

    Parameters
    ----------
    policy : Recalling
    store
        Holds every KV of a row and can install any set of positions.
    observer : StepObserver
    shape : KVShape
    batch : int
    device
    rotary : module or None
        The model's rotary embedding, for mean keys before the rotation.
    trace : callable or None
    """

    def __init__(
        self,
        policy: Recalling,
        store: RecallStore,
        observer: StepObserver,
        shape: KVShape,
        batch: int,
        device: torch.device,
        rotary: Any = None,
        trace: Trace | None = None,
    ):
        self.policy, self.store, self.observer, self.rotary, self.trace = policy, store, observer, rotary, trace
        self.bank = SummaryBank(shape, batch, device)
        self.device = device
        self._due: list[int] = []
        self._voting: list[int] = []

    def admit(self, index: int, row: Row, queries: Tensor | None) -> None:
        """A row starts."""
        self.bank.clear([index])

    def move(self, source: int, target: int) -> None:
        """A row changes its place."""
        self.bank.move(source, target)

    def before(self, rows: list[Row]) -> None:
        """Find the rows that are due with the token about to be fed."""
        self._due = [index for index, row in enumerate(rows) if self.policy.due(row)]
        asked = Needs.QUERIES in self.policy.needs
        everyone = asked and self.policy.vote_span
        self._voting = list(range(len(rows))) if everyone else self._due if asked else []
        self.observer.capture = bool(self._voting)

    def after(self, rows: list[Row]) -> None:
        """Enter new mean keys, count votes, and refresh the due rows."""
        if Needs.SUMMARIES in self.policy.needs:
            for index, row in enumerate(rows):
                if row.closed:
                    self._enter_summary(index, row)
        voting = [index for index in self._voting if rows[index].tracker.finished]
        votes = None
        if voting:
            view = self._view(voting, rows, labelled=False)
            votes = self.policy.vote(view)
        if votes is not None:
            self.bank.cast(voting, votes)
        if self._due:
            self._refresh(rows)

    def _enter_summary(self, index: int, row: Row) -> None:
        start, stop = row.tracker.key_span(row.tracker.finished - 1, self.policy.with_delimiters)
        keys = self.store.keys_of(index, start, stop)
        if self.policy.pre_rope:
            mean = unrotated_mean(keys, torch.arange(start, stop, device=self.device), self.rotary)
        else:
            mean = mean_key(keys)
        self.bank.add(index, row.tracker.finished - 1, mean)

    def _view(self, indices: list[int], rows: list[Row], labelled: bool) -> RefreshView:
        chosen = [rows[index] for index in indices]
        summaries = max(row.tracker.finished for row in chosen)
        last = [row.position for row in chosen]
        width = max(len(row.tracker.edges) for row in chosen)
        filled = [row.tracker.edges + [BEYOND] * (width - len(row.tracker.edges)) for row in chosen]
        edges = torch.tensor(filled, device=self.device)
        finished = torch.tensor([row.tracker.finished for row in chosen], device=self.device)
        asked = bool(self._voting)
        return RefreshView(
            last=torch.tensor(last, device=self.device),
            finished=finished,
            starts=edges[:, : 2 * summaries : 2],
            labels=label_positions(edges, max(last) + 1) if labelled else edges[:, :0],
            candidates=torch.arange(summaries, device=self.device) < finished[:, None],
            queries=self.observer.stacked_queries(indices) if asked else None,
            means=self.bank.of(indices, summaries) if asked else None,
            scaling=self.observer.scaling,
            seeds=[derived_seed(row.request.seed, row.refreshes) for row in chosen],
            prompts=[row.request.prompt for row in chosen],
            keys=lambda: self.store.all_keys(indices, max(last) + 1),
        )

    def _refresh(self, rows: list[Row]) -> None:
        due = self._due
        view = self._view(due, rows, labelled=True)
        asked = Needs.QUERIES in self.policy.needs
        votes = self.bank.draw(due, view.candidates.shape[1]) if asked else None
        selection = self.policy.refresh(view, votes)
        moved = self.store.install(due, selection.active)
        zoomed, shown = selection.zoomed.tolist(), selection.shown.tolist()
        counts = votes.counts.tolist() if votes is not None and self.trace is not None else None
        for place, index in enumerate(due):
            row = rows[index]
            kinds = active_kinds(row, zoomed[place], shown[place], self.policy)
            forced = not row.boundary and row.since >= self.policy.force_after
            if self.trace is not None:
                tally = counts[place][: row.tracker.finished] if counts is not None else None
                self.trace(Refresh.of(row, zoomed[place], shown[place], tally, int(sum(kinds)), moved[place], forced))
            row.meter.reset(kinds)
            row.held = int(sum(kinds))
            row.refreshes += 1
            row.forced += forced
            row.moved_bytes += moved[place]
            row.since = 0


def active_kinds(row: Row, zoomed: list[bool], shown: list[bool], policy: Any) -> list[float]:
    """Active tokens of a row after a refresh, by kind (see `KINDS`); a token in the window counts there."""
    edges, length = row.tracker.edges, row.position + 1
    outside = max(row.prompt, length - policy.window)  # where the window begins

    def before_window(segment: int) -> int:
        stop = edges[segment + 1] if segment + 1 < len(edges) else length
        return max(0, min(stop, outside) - edges[segment])

    paragraphs = sum(before_window(2 * i) for i in range(row.tracker.finished) if zoomed[i])
    summaries = sum(before_window(2 * i + 1) for i in range(row.tracker.finished) if shown[i])
    first_open = 2 * row.tracker.finished
    unfinished = sum(before_window(segment) for segment in range(first_open, len(edges))) if policy.keep_open else 0
    return [row.prompt, length - outside, paragraphs, summaries, unfinished]
