"""The state of one row of a batch, in plain Python."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from zoomr.policies.base import KINDS, PROMPT, WINDOW
from zoomr.results import Usage
from zoomr.summaries.segments import SegmentTracker


@dataclass(frozen=True)
class Request:
    """One sample to make, of at most `limit` tokens."""

    prompt: int
    sample: int
    seed: int
    token_ids: list[int]
    limit: int
    is_last_sample: bool


@dataclass(slots=True)
class ActiveMeter:
    """Active tokens of a row over its steps.

    Between two refreshes the active set grows by the new token alone, so that nothing has to be added up per step.
    """

    kinds: list[float]
    since: int = 0
    steps: int = 0
    peak: float = 0.0
    sums: list[float] = field(default_factory=lambda: [0.0] * len(KINDS))

    def reset(self, kinds: list[float]) -> None:
        """The active set is now made of these numbers of tokens, by kind."""
        self.settle()
        self.kinds = kinds

    def settle(self) -> None:
        """Bring the sums up to the present."""
        steps = self.since
        if steps == 0:
            return
        for kind, tokens in enumerate(self.kinds):
            self.sums[kind] += steps * tokens
        self.sums[WINDOW] += steps * (steps + 1) / 2
        self.kinds[WINDOW] += steps
        self.peak = max(self.peak, sum(self.kinds))
        self.steps += steps
        self.since = 0


@dataclass(slots=True)
class Row:
    """A request that is being decoded.

    Attributes
    ----------
    token : int
        The newest token.
    position : int
        Absolute position of the newest token that was fed, whatever the cache holds.
    held : int
        KVs on the device (a head's, where heads differ).
    since : int
        Tokens fed since the last change.
    boundary, closed : bool
        The token just fed is a semantic boundary; it closed a summary.
    """

    request: Request
    tracker: SegmentTracker
    meter: ActiveMeter
    token: int
    position: int
    held: int
    tokens: list[int]
    since: int = 0
    boundary: bool = False
    closed: bool = False
    refreshes: int = 0
    forced: int = 0
    moved_bytes: int = 0
    started: float = field(default_factory=time.perf_counter)

    @classmethod
    def start(cls, request: Request, delimiters: tuple[int | None, int | None], tokens: list[int]) -> Row:
        """A row whose prompt is in the cache and whose first token is still to come.

        Parameters
        ----------
        request : Request
        delimiters : (int or None, int or None)
            Ids of the summary delimiters.
        tokens : list of int
            What follows the prompt, where it is known before.
        """
        length = len(request.token_ids)
        kinds = [0.0] * len(KINDS)
        kinds[PROMPT] = length
        return cls(request, SegmentTracker(length, *delimiters), ActiveMeter(kinds), -1, length - 1, length, tokens)

    @property
    def number(self) -> int:
        """Index of the prompt."""
        return self.request.prompt

    @property
    def seed(self) -> int:
        """The sample's seed."""
        return self.request.seed

    @property
    def prompt(self) -> int:
        """Number of prompt tokens."""
        return self.tracker.prompt

    def feed(self, boundaries: frozenset[int]) -> None:
        """Take note that the newest token enters the cache with this step."""
        self.position += 1
        self.closed = self.tracker.push(self.token, self.position)
        self.boundary = self.token in boundaries
        self.since += 1
        self.held += 1
        self.meter.since += 1

    def changed(self, kinds: list[float], held: int | None, moved_bytes: int, forced: bool) -> None:
        """Take note of what is active from now on, by kind, and of the slots in use where they are fewer."""
        self.meter.reset(kinds)
        self.held = round(sum(kinds)) if held is None else held
        self.refreshes += 1
        self.forced += forced
        self.moved_bytes += moved_bytes
        self.since = 0

    def usage(self) -> Usage:
        """What the row used so far."""
        self.meter.settle()
        seen = self.prompt + len(self.tokens)
        unbalanced, longest = self.tracker.at_end(seen)
        # a row that ended with its first token has made no decoding step: its prompt was all it attended to
        steps = max(self.meter.steps, 1)
        sums = self.meter.sums if self.meter.steps else self.meter.kinds
        peak = round(self.meter.peak) or self.prompt
        return Usage(
            prompt_tokens=self.prompt,
            generated_tokens=len(self.tokens),
            seen_tokens=seen,
            active_tokens_mean=sum(sums) / steps,
            active_tokens_peak=peak,
            kv_saving=seen / peak,
            active_by_kind={kind: total / steps for kind, total in zip(KINDS, sums, strict=True)},
            refreshes=self.refreshes,
            forced_refreshes=self.forced,
            moved_bytes=self.moved_bytes,
            summaries=self.tracker.finished,
            balanced=self.tracker.finished > 0 and unbalanced == 0,
            unbalanced=unbalanced,
            longest_paragraph=longest,
            tokens_per_s=len(self.tokens) / max(time.perf_counter() - self.started, 1e-9),
        )
