"""Batches in the middle of a long trace, without a prefill: random KVs in a synthetic structure, for measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from zoomr.batch import Batch
from zoomr.control import RecallControl
from zoomr.policies import ZoomR
from zoomr.rows import ActiveMeter, Request, Row
from zoomr.stores import SlotStore, Store, StoreSize
from zoomr.stores.host import HostRow
from zoomr.summaries.segments import SegmentTracker

BEGIN, END, BOUNDARY, WORD = 1, 2, 3, 4


@dataclass(frozen=True)
class Structure:
    """A trace of equal parts.

    Parameters
    ----------
    prompt, paragraph, summary : int
        Tokens of each; a summary's delimiters included.
    gap : int
        Tokens from one boundary to the next.
    """

    prompt: int = 128
    paragraph: int = 250
    summary: int = 20
    gap: int = 35

    def token(self, position: int, row: int = 0) -> int:
        """The token at a position after the prompt; rows reach their boundaries at different steps."""
        place = (position - self.prompt) % (self.paragraph + self.summary)
        if place == self.paragraph:
            return BEGIN
        if place == self.paragraph + self.summary - 1:
            return END
        return BOUNDARY if (position + 4 * row) % self.gap == 0 else WORD


class Script:
    """Gives every row the tokens of the structure, whatever the logits say."""

    def __init__(self, structure: Structure, start: int):
        self.structure, self.start = structure, start

    def admit(self, row: int, request: Request) -> None:
        """See `Chooser.admit`."""

    def move(self, source: int, target: int) -> None:
        """See `Chooser.move`."""

    def __call__(self, logits: Tensor, rows: list[int], drawn: list[int]) -> list[int]:
        """See `Chooser.__call__`; waits for the logits, as choosing from them would."""
        logits.argmax(-1).tolist()
        return [self.structure.token(self.start + number, row) for row, number in zip(rows, drawn, strict=True)]


@torch.inference_mode()
def fill(batch: Batch, structure: Structure, seen: int, rows: int) -> None:
    """Make rows of a batch that have seen `seen` tokens, a multiple of the store's block.

    The rows of a two-tier store share the blocks of the host, so that long traces fit; each row's are counted as if
    they were its own.
    """
    store = batch.store
    shared = _random_host(store.size, seen) if isinstance(store, SlotStore) else None
    for index in range(rows):
        tracker = SegmentTracker(structure.prompt, BEGIN, END)
        for position in range(structure.prompt, seen):
            tracker.push(structure.token(position, index), position)
        request = Request(index, 0, index, [], limit=2**62, is_last_sample=True)
        meter = ActiveMeter([structure.prompt, seen - structure.prompt, 0.0, 0.0, 0.0])
        row = Row(request, tracker, meter, WORD, seen, seen, [])
        batch.rows.append(row)
        if isinstance(store, SlotStore) and shared is not None:
            store.hosts[index].blocks, store.hosts[index].length = list(shared.blocks), shared.length
            _choose(batch, store, structure, row, index)
        else:
            _admit_random(store, index, seen)


def _random_host(size: StoreSize, seen: int) -> HostRow:
    host, shape = HostRow(size), size.shape
    part = torch.randn(shape.layers, 2, shape.kv_heads, size.block, shape.head_dim, dtype=size.dtype)
    for _ in range(seen // size.block):
        host.append(part)
    return host


def _choose(batch: Batch, store: SlotStore, structure: Structure, row: Row, index: int) -> None:
    """Install a first active set: prompt, window, the newest paragraphs and all other summaries."""
    policy, control, shape = cast(ZoomR, batch.plan.policy), cast(RecallControl, batch.control), store.size.shape
    finished, edges = row.tracker.finished, row.tracker.edges
    active = torch.zeros(1, row.position, dtype=torch.bool)
    active[0, : structure.prompt] = True
    active[0, row.position - policy.window :] = True
    for number in range(finished):
        first = 2 * number + (number < finished - policy.c)
        active[0, edges[first] : edges[first + 1]] = True
        control.bank.add(index, number, torch.randn(shape.layers, shape.kv_heads, shape.head_dim))
    store.install([index], active)
    row.held = int(active.sum())
    row.meter.kinds = [structure.prompt, row.held - structure.prompt, 0.0, 0.0, 0.0]


def _admit_random(store: Store, index: int, seen: int) -> None:
    size = store.size
    shape = (size.shape.layers, 2, size.shape.kv_heads, seen, size.shape.head_dim)
    kv = torch.randn(shape, dtype=size.dtype, device=size.device)
    store.admit(index, list(kv[:, 0]), list(kv[:, 1]), None)
