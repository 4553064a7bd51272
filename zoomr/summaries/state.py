"""What the summary methods keep of a batch: keys of summaries, votes since a refresh, what heads ask by habit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from zoomr.policies.base import Change, Choice, Clock, Site, State, View, count_kinds, derived_seed
from zoomr.summaries.keys import SummaryKeys
from zoomr.summaries.votes import Votes, mean_key

if TYPE_CHECKING:
    from zoomr.policies.summarized import Summarized


@dataclass(frozen=True)
class SummaryView:
    """What a summary method sees of R rows that have at most N finished summaries.

    Attributes
    ----------
    clocks : sequence of Clock
    rows : list of int
    last : (R,) int64
        Position of the newest token.
    starts : (R, N) int64
        First position of each finished segment's paragraph.
    candidates : (R, N) bool
        The finished segments.
    queries : (L, R, Hq, d) or None
        Of the newest token, after the rotation; None where nobody is asked.
    means : (L, R, H, N, d) or None
        Mean summary keys.
    habits : (L, R, Hq, d) or None
        Each head's mean query at earlier refreshes, rotated for the newest position.
    asked : (R, h) or None
        Hidden states of the newest token, for a learned index.
    index : (R, N, r) or None
        The index's keys of the summaries.
    scaling : float
    seeds : list of int
        One a row and refresh.
    batch : View
    """

    clocks: Sequence[Clock]
    rows: list[int]
    last: Tensor
    starts: Tensor
    candidates: Tensor
    queries: Tensor | None
    means: Tensor | None
    habits: Tensor | None
    asked: Tensor | None
    index: Tensor | None
    scaling: float
    seeds: list[int]
    batch: View


class SummaryState(State):
    """Enters summaries when they close, lets the method vote and select when a row is due.

    A boundary token attends to the old choice; its queries vote when its forward is done, and the new choice holds from
    the next token on (paper, algorithm 1).

    Parameters
    ----------
    policy : Summarized
    site : Site
    """

    def __init__(self, policy: Summarized, site: Site):
        self.policy, self.site = policy, site
        shape, device = site.shape, site.device
        self.means = SummaryKeys((shape.layers, site.batch, shape.kv_heads), shape.key_dim, 1, device)
        self.index = policy.index
        self.watches = None if self.index is None else self.index.layer
        self.index_keys = SummaryKeys((site.batch,), 0 if self.index is None else self.index.rank, 0, device)
        self.entered = [0] * site.batch
        self.tallies: list[Votes | None] = [None] * site.batch
        self.habits: Tensor | None = None  # summed queries before the rotation, (L, B, Hq, d)
        self.asked = [0] * site.batch
        if policy.votes_by == "contrast":
            dimensions = (shape.layers, site.batch, shape.query_heads, shape.key_dim)
            self.habits = torch.zeros(dimensions, device=device)

    def admit(self, row: int, clock: Clock) -> None:
        """See `State.admit`."""
        self.entered[row], self.tallies[row], self.asked[row] = 0, None, 0
        if self.habits is not None:
            self.habits[:, row] = 0.0

    def move(self, source: int, target: int) -> None:
        """See `State.move`."""
        self.means.move(source, target)
        self.index_keys.move(source, target)
        self.entered[target], self.asked[target] = self.entered[source], self.asked[source]
        self.tallies[target] = self.tallies[source]
        if self.habits is not None:
            self.habits[:, target] = self.habits[:, source]

    def due(self, clock: Clock) -> bool:
        """At refreshes, at every token where all of a span vote, and where an index takes a summary's key."""
        if self.policy.refreshes(clock) or (self.index is not None and clock.closed):
            return True
        return self.policy.vote_span and clock.tracker.finished > 0

    def changes(self, clock: Clock) -> bool:
        """At refreshes alone."""
        return self.policy.refreshes(clock)

    def tensors(self) -> list[Tensor]:
        """See `State.tensors`."""
        return [self.means.keys, self.index_keys.keys, *([] if self.habits is None else [self.habits])]

    def decide(self, view: View) -> Iterator[Change]:
        """See `State.decide`."""
        refreshed = [place for place, clock in enumerate(view.clocks) if self.policy.refreshes(clock)]
        if self.policy.votes_by != "nobody":
            for row, clock in zip(view.rows, view.clocks, strict=True):
                self._enter(view, row, clock)
        if self.policy.vote_span:
            everyone = [place for place, clock in enumerate(view.clocks) if clock.tracker.finished]
            if everyone:
                self._tally(self._summaries(view, everyone))
        if refreshed:
            yield self._refresh(self._summaries(view, refreshed))

    def _enter(self, view: View, row: int, clock: Clock) -> None:
        """Enter the summaries that closed since the last time."""
        if self.index is not None:
            if clock.closed:
                self.index_keys.add(row, clock.tracker.finished - 1, self.index.keys(view.hidden([row]))[0])
            return
        for number in range(self.entered[row], clock.tracker.finished):
            start, stop = clock.tracker.key_span(number, self.policy.with_delimiters)
            keys = view.keys_of(row, start, stop)
            if self.policy.pre_rope:
                rotary = self.site.rotary
                assert rotary is not None
                positions = torch.arange(start, stop, device=keys.device)
                bare = rotary(keys, -positions).mean(dim=-2, keepdim=True)
                mean = rotary(bare, positions[len(positions) // 2, None]).squeeze(-2)
            else:
                mean = mean_key(keys)
            self.means.add(row, number, mean)
        self.entered[row] = clock.tracker.finished

    def _summaries(self, view: View, places: list[int]) -> SummaryView:
        clocks, rows = [view.clocks[place] for place in places], [view.rows[place] for place in places]
        device, asks = self.site.device, self.policy.votes_by in ("counts", "mass", "contrast")
        summaries = max(clock.tracker.finished for clock in clocks)
        finished = torch.tensor([clock.tracker.finished for clock in clocks], device=device)
        starts = [clock.tracker.edges[0 : 2 * summaries : 2] for clock in clocks]
        padded = [own[:summaries] + [0] * (summaries - len(own)) for own in starts]
        last = torch.tensor([clock.position for clock in clocks], device=device)
        return SummaryView(
            clocks=clocks,
            rows=rows,
            last=last,
            starts=torch.tensor(padded, device=device).reshape(len(rows), summaries),
            candidates=torch.arange(summaries, device=device) < finished[:, None],
            queries=view.queries(rows) if asks else None,
            means=self.means.of(rows, summaries) if asks and summaries else None,
            habits=self._habit(rows, last),
            asked=None if self.index is None else view.hidden(rows),
            index=None if self.index is None else self.index_keys.of(rows, summaries),
            scaling=view.scaling,
            seeds=[derived_seed(clock.seed, clock.refreshes) for clock in clocks],
            batch=view,
        )

    def _habit(self, rows: list[int], last: Tensor) -> Tensor | None:
        """What the heads asked at earlier refreshes, as if they asked it now."""
        if self.habits is None:
            return None
        rotary = self.site.rotary
        assert rotary is not None
        number = torch.tensor([max(1, self.asked[row]) for row in rows], device=last.device)
        mean = self.habits[:, rows] / number[:, None, None]
        return rotary(mean.transpose(1, 2), last).transpose(1, 2)

    def _remember(self, view: SummaryView) -> None:
        """Add the newest queries to the habits."""
        if self.habits is None:
            return
        rotary = self.site.rotary
        assert rotary is not None and view.queries is not None
        self.habits[:, view.rows] += rotary(view.queries.transpose(1, 2), -view.last).transpose(1, 2)
        for row in view.rows:
            self.asked[row] += 1

    def _tally(self, view: SummaryView) -> None:
        votes = self.policy.vote(view)
        assert votes is not None
        for place, row in enumerate(view.rows):
            counts, mass, before = votes.counts[place], votes.mass[place], self.tallies[row]
            if before is not None:
                known = len(before.counts)
                counts, mass = counts.clone(), mass.clone()
                counts[:known] += before.counts[: len(counts)]
                mass[:known] += before.mass[: len(mass)]
            self.tallies[row] = Votes(counts, mass)

    def _draw(self, view: SummaryView) -> Votes | None:
        """The votes that a refresh goes by."""
        if not view.candidates.shape[1]:
            return None
        if not self.policy.vote_span:
            return self.policy.vote(view)
        votes = Votes(*(torch.zeros(view.candidates.shape, dtype=torch.float64, device=view.last.device) for _ in "cm"))
        for place, row in enumerate(view.rows):
            tally = self.tallies[row]
            if tally is not None:
                width = min(len(tally.counts), votes.counts.shape[1])
                votes.counts[place, :width] = tally.counts[:width]
                votes.mass[place, :width] = tally.mass[:width]
            self.tallies[row] = None
        return votes

    def _refresh(self, view: SummaryView) -> Change:
        votes = self._draw(view)
        zoomed, shown = (chosen.tolist() for chosen in self.policy.select(view, votes))
        self._remember(view)
        asks = self.policy.votes_by != "nobody"
        counts = [[]] * len(view.rows) if votes is None else votes.counts.tolist()
        spans, kinds, choices = [], [], []
        for place, clock in enumerate(view.clocks):
            finished = clock.tracker.finished
            full = [i for i in range(finished) if zoomed[place][i]]
            short = [i for i in range(finished) if shown[place][i]]
            spans.append(self.policy.spans(clock, full, short))
            kinds.append(count_kinds(spans[-1], clock.position + 1))
            tally = counts[place][:finished] if asks else None
            choices.append(Choice(full, short, tally, forced=not self.policy.on_time(clock)))
        return Change(view.rows, kinds, spans=spans, choices=choices)
