"""Teacher forcing in chunks: tokens go through the model together for as long as it is known what they attend to.

A recalling policy's choice is fixed between two refreshes, and the token that is due comes last in its chunk, since it
still attends to the old choice. A policy that looks at positions alone says beforehand what every token will attend
to. Policies whose chunks end at the same tokens share their forwards, as rows of one batch. One that changes with every
token, but for each head by itself, goes layer by layer (`zoomr.layered`). The rest goes through the ordinary loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from zoomr.batch import Batch, serve
from zoomr.chunked_row import BLOCK, ChunkedRow
from zoomr.errors import UserError
from zoomr.forcing import Forcing
from zoomr.layered import LayeredRow, by_layer
from zoomr.loop import Prompt, token_ids
from zoomr.plan import Plan
from zoomr.policies import Needs, Policy
from zoomr.policies.base import Evicting
from zoomr.policies.windowed import Windowed
from zoomr.prefill import Prefiller
from zoomr.results import Usage
from zoomr.rows import Request
from zoomr.segments import boundary_table, delimiter_ids
from zoomr.trace import Trace

Visit = Callable[[Tensor], None]
ABREAST = 6  # rows of one batch at most: each holds a full cache


def forced_in_chunks(
    model: Any,
    tokenizer: Any,
    prompt: Prompt,
    continuation: list[int],
    *,
    policies: Sequence[Policy],
    visits: Sequence[Visit],
    traces: Sequence[Trace | None] | None = None,
    seed: int = 0,
    number: int = 0,
    boundaries: Iterable[int] | None = None,
) -> list[Usage]:
    """Feed given tokens through policies, as `teacher_forced` does, and show the logits of all positions.

    Parameters
    ----------
    model, tokenizer, prompt, boundaries
        See `generate`.
    continuation : list of int
        The given tokens, at least one.
    policies : sequence of Policy
    visits : sequence of callable
        One a policy. Takes the logits (n, V) of the next n given tokens, call by call in their order.
    traces : sequence of callable or None
        One a policy; see `generate`.
    seed : int
        For policies that draw.
    number : int
        Index of the prompt, for policies that know prompts by it.

    Returns
    -------
    list of Usage
        One a policy.
    """
    if not continuation:
        raise UserError("continuation: at least one token is needed")
    model.set_attn_implementation("zoomr")
    table = frozenset(boundary_table(tokenizer) if boundaries is None else boundaries)
    request = Request(number, 0, seed, token_ids(tokenizer, prompt), len(continuation), is_last_sample=True)
    traces = traces or [None] * len(policies)
    plans = [
        Plan(policy, table, frozenset(), delimiter_ids(tokenizer), trace=trace)
        for policy, trace in zip(policies, traces, strict=True)
    ]
    usages: dict[int, Usage] = {}
    alike: dict[Any, list[int]] = {}
    for place, (plan, visit) in enumerate(zip(plans, visits, strict=True)):
        if by_layer(plan.policy):
            usages[place] = LayeredRow(model, plan, request, continuation).run(visit, BLOCK)
        elif in_chunks(plan.policy):
            alike.setdefault(beat(plan.policy), []).append(place)
        else:
            usages[place] = _step_by_step(model, plan, request, continuation, visit)
    for places in alike.values():
        for first in range(0, len(places), ABREAST):
            chosen = places[first : first + ABREAST]
            rows = [ChunkedRow(model, plans[place], request, continuation) for place in chosen]
            found = _Abreast(model, rows).run([visits[place] for place in chosen])
            usages.update(zip(chosen, found, strict=True))
    return [usages[place] for place in range(len(plans))]


def in_chunks(policy: Policy) -> bool:
    """Whether it is known for many tokens together what they attend to under a policy."""
    if policy.recalls:
        return True
    evicting = cast(Evicting, policy)
    return evicting.needs == Needs.NOTHING and evicting.scope == "shared" and not evicting.reassigns


def beat(policy: Policy) -> Any:
    """What decides where a policy's chunks end: those that have it in common are refreshed at the same tokens."""
    if not policy.recalls:
        return BLOCK
    return (type(policy).due, policy.every, policy.force_after) if isinstance(policy, Windowed) else policy


class _Abreast:
    """Rows with the same tokens and the same chunks: one forward, in which each attends to what is its own."""

    def __init__(self, model: Any, rows: list[ChunkedRow]):
        self.model, self.rows = model, rows

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`."""
        parts = zip(self.rows, query.split(1), key.split(1), value.split(1), strict=True)
        return torch.cat([row.attend(module, q, k, v, scaling) for row, q, k, v in parts])

    @torch.inference_mode()
    def run(self, visits: Sequence[Visit]) -> list[Usage]:
        """Go through the prompt and the chunks."""
        prompt = Prefiller(self.model, attention=False, history=0)([self.rows[0].row.request])[0]
        for row, visit in zip(self.rows, visits, strict=True):
            row.admit(prompt)
            visit(prompt.logits[None])
        while tokens := self.rows[0].chunk():
            for row in self.rows:
                row.begin(tokens)
            for row, visit, logits in zip(self.rows, visits, self._forward(tokens), strict=True):
                visit(logits)
                row.end(tokens)
        return [row.row.usage() for row in self.rows]

    def _forward(self, tokens: list[int]) -> Tensor:
        """Logits (B, n, V) of the tokens after the given ones."""
        device, start = self.model.device, len(self.rows[0].row.request.token_ids) + self.rows[0].done
        shape = len(self.rows), len(tokens)
        ids = torch.tensor(tokens, device=device).expand(shape)
        positions = torch.arange(start, start + len(tokens), device=device).expand(shape)
        return self.model(input_ids=ids, position_ids=positions, use_cache=False, zoomr=self).logits


class _Visited(Forcing):
    """Forcing that shows each step's logits."""

    def __init__(self, request: Request, continuation: list[int], visit: Visit):
        super().__init__([continuation])
        self.visit = visit

    def admit(self, row: int, request: Request) -> None:
        """See `Chooser.admit`; there is but one continuation."""
        self._prompt_of[row] = 0

    def __call__(self, logits: Tensor, rows: list[int], drawn: list[int]) -> list[int]:
        """See `Chooser.__call__`."""
        self.visit(logits)
        return [self.targets[0][number] for number in drawn]


def _step_by_step(model: Any, plan: Plan, request: Request, continuation: list[int], visit: Visit) -> Usage:
    batch = Batch(model, plan, _Visited(request, continuation, visit), 1)
    ((row, _),) = serve(batch, [request])
    return row.usage()
