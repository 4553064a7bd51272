"""Fills caches as a long trace would have left them, without running the model over it: random keys and values."""

from __future__ import annotations

import torch
from torch import Tensor

from eval.bench.trace import BEGIN, END, WORD, TraceForm
from zoomr.memory import BatchView, Memory, decide
from zoomr.policies import Budgeted, Policy
from zoomr.policies.base import Shape
from zoomr.prefill import Prefilled
from zoomr.rows import Request, Row
from zoomr.runner import Runner
from zoomr.tiers import SlotTiers


def held_after(policy: Policy, seen: int) -> int:
    """KVs that a row has left after `seen` tokens, where none comes back."""
    return min(seen, policy.tokens) if isinstance(policy, Budgeted) else seen


@torch.inference_mode()
def fill(runner: Runner, shape: Shape, form: TraceForm, seen: int) -> None:
    """Fill a batch up with rows that have seen `seen` tokens, and let the policy decide once for all of them.

    Parameters
    ----------
    runner : Runner
        Without rows, within `attending`.
    shape : Shape
        Of the model's KVs.
    form : TraceForm
    seen : int
        At least the prompt's tokens.
    """
    runner.prefill.shape, runner.prefill.scaling = shape, shape.key_dim**-0.5
    memory = runner.memory
    tiers = memory.tiers
    assert isinstance(tiers, SlotTiers)
    rows = []
    for place in range(runner.size):
        request = Request(place, 0, place, [WORD] * form.prompt, limit=2**62, is_last_sample=True)
        row = Row.start(request, (BEGIN, END), [])
        form.track(row.tracker, seen, place)
        row.position, row.token = seen - 1, form.token(seen, place)
        row.boundary = True
        recalls = tiers.hosts is not None and memory.state.due(row)
        row.boundary = False
        row.held = 0 if recalls else held_after(runner.decoding.policy, seen)
        memory.admit(place, row, random_past(memory, shape, row.held), runner.prefill.scaling)
        if recalls:
            remember(tiers, place, seen)
        tiers.positions[:, place, :, : row.held] = torch.arange(seen - row.held, seen, device=tiers.device)
        row.boundary = recalls
        row.meter.reset([form.prompt, max(0, row.held - form.prompt), 0.0, 0.0, 0.0, 0.0])
        rows.append(row)
    runner.rows += rows
    for layer in range(shape.layers):
        memory.notes.queries[layer] = noise(memory, runner.size, shape.query_heads, 1, shape.key_dim)
    due = [place for place, row in enumerate(rows) if memory.state.due(row)]
    if due:
        view = BatchView(due, [rows[place] for place in due], tiers, memory.notes)
        decide(memory.state.decide, view, tiers.apply, None)


def random_past(memory: Memory, shape: Shape, number: int) -> Prefilled:
    """The last `number` tokens of a past, the same numbers in every layer."""
    history = min(memory.notes.length, number)
    keys, values = (noise(memory, shape.kv_heads, number, width) for width in (shape.key_dim, shape.value_dim))
    return Prefilled(
        [keys] * shape.layers,
        [values] * shape.layers,
        logits=torch.empty(0),
        received=noise(memory, shape.layers, shape.kv_heads, number).float().abs() if memory.weighs else None,
        queries=noise(memory, shape.layers, shape.query_heads, history, shape.key_dim) if history else None,
    )


def remember(tiers: SlotTiers, place: int, seen: int) -> None:
    """Let a row's host tier hold `seen` tokens: one random block over and over, so that long traces fit."""
    assert tiers.hosts is not None
    size, shape = tiers.size, tiers.size.shape
    if place == 0:
        block = [torch.randn(shape.layers, shape.kv_heads, size.block, d).to(size.dtype) for d in size.widths]
        tiers.hosts[0].append(block)
    host = tiers.hosts[place]
    host.blocks, host.length = tiers.hosts[0].blocks[:1] * -(-seen // size.block), seen


def noise(memory: Memory, *dimensions: int) -> Tensor:
    """Standard normal numbers in the model's type, on its device."""
    size = memory.tiers.size
    return torch.randn(dimensions, dtype=size.dtype, device=size.device)
