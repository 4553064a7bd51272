"""Teacher forcing in chunks: tokens go through the model together for as long as it is known what they attend to.

A recalling policy's choice is fixed between two refreshes, and the token that is due comes last in its chunk, since it
still attends to the old choice. A policy that looks at positions alone says beforehand what every token will attend
to. One that changes with every token, but for each head by itself, goes layer by layer (`zoomr.layered`). The rest
goes through the ordinary loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from zoomr.attention import attend_many
from zoomr.batch import Batch, serve
from zoomr.compat import CACHE_KWARG, KVShape, kv_shape
from zoomr.control import EvictionControl, RecallControl
from zoomr.forcing import Forcing
from zoomr.layered import LayeredRow, by_layer
from zoomr.loop import Prompt, token_ids
from zoomr.observers import StepObserver
from zoomr.plan import Plan
from zoomr.policies import Needs, Policy
from zoomr.policies.base import Evicting, Recalling
from zoomr.prefill import Prefiller
from zoomr.results import Usage
from zoomr.rows import Request, Row
from zoomr.runs import UserError
from zoomr.segments import boundary_table, delimiter_ids
from zoomr.stores import MaskStore, StoreSize
from zoomr.stores.chunk import ChunkStore, chunk_cache
from zoomr.trace import Trace

Visit = Callable[[Tensor], None]
BLOCK = 256  # longest chunk
WITHOUT_KVS = KVShape(layers=1, kv_heads=1, head_dim=0)


def forced_in_chunks(
    model: Any,
    tokenizer: Any,
    prompt: Prompt,
    continuation: list[int],
    *,
    policy: Policy,
    visit: Visit,
    seed: int = 0,
    number: int = 0,
    boundaries: Iterable[int] | None = None,
    trace: Trace | None = None,
) -> Usage:
    """Feed given tokens through a policy, as `teacher_forced` does, and show the logits of all positions.

    Parameters
    ----------
    model, tokenizer, prompt, policy, boundaries, trace
        See `generate`.
    continuation : list of int
        The given tokens, at least one.
    visit : callable
        Takes the logits (n, V) of the next n given tokens, call by call in their order.
    seed : int
        For policies that draw.
    number : int
        Index of the prompt, for policies that know prompts by it.

    Returns
    -------
    Usage
    """
    if not continuation:
        raise UserError("continuation: at least one token is needed")
    model.set_attn_implementation("zoomr")
    table = frozenset(boundary_table(tokenizer) if boundaries is None else boundaries)
    plan = Plan(policy, table, frozenset(), delimiter_ids(tokenizer), trace=trace)
    request = Request(number, 0, seed, token_ids(tokenizer, prompt), len(continuation), is_last_sample=True)
    if by_layer(policy):
        return LayeredRow(model, plan, request, continuation).run(visit, BLOCK)
    if not in_chunks(policy):
        return _step_by_step(model, plan, request, continuation, visit)
    return _ChunkedRow(model, plan, request, continuation).run(visit)


def in_chunks(policy: Policy) -> bool:
    """Whether it is known for many tokens together what they attend to under a policy."""
    if policy.recalls:
        return True
    evicting = cast(Evicting, policy)
    return evicting.needs == Needs.NOTHING and evicting.scope == "shared" and not evicting.reassigns


@dataclass
class _Clock:
    """See `RowClock`."""

    since: int
    boundary: bool = False


class _ChunkObserver(StepObserver):
    """Attends with all queries of a chunk, and shows the control those of its token `at`."""

    at = 0

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`."""
        assert mask is not None
        self.scaling = scaling
        self.queries[int(module.layer_idx)] = query  # type: ignore[arg-type]
        return attend_many(query, key, value, mask, scaling)

    def stacked_queries(self, rows: list[int]) -> Tensor:
        """Queries of the token `at` in all layers, (L, 1, Hq, d)."""
        return torch.stack([query[:, :, self.at] for query in self.queries if query is not None])


class _ChunkedRow:
    """One row, its full cache, and the control of its policy, which is replayed token by token beside the forwards."""

    def __init__(self, model: Any, plan: Plan, request: Request, continuation: list[int]):
        self.model, self.plan = model, plan
        self.fed = continuation[:-1]  # the last given token is predicted and never fed
        shape, device = kv_shape(model.config), model.device
        self.row = Row.start(request, plan.delimiters, list(continuation))
        self.store = ChunkStore(StoreSize(shape, 1, model.dtype, device))
        self.observer = _ChunkObserver(self.store, shape.layers, attention=False)
        self.cache = chunk_cache(self.store, shape.layers)
        self.seen: MaskStore = self.store  # knows what is attended to
        self.control: RecallControl | EvictionControl
        rotary = getattr(model.get_decoder(), "rotary_emb", None)
        if plan.policy.recalls:
            policy = cast(Recalling, plan.policy)
            self.control = RecallControl(policy, self.store, self.observer, shape, 1, device, rotary, plan.trace)
        else:
            self.seen = MaskStore(StoreSize(WITHOUT_KVS, 1, model.dtype, device))
            self.control = EvictionControl(cast(Evicting, plan.policy), self.seen, self.observer, device)

    @torch.inference_mode()
    def run(self, visit: Visit) -> Usage:
        """Go through the prompt and the chunks."""
        prompt = Prefiller(self.model, attention=False, history=0)([self.row.request])[0]
        self.store.admit(0, prompt.keys, prompt.values)
        if self.seen is not self.store:
            nothing = [torch.empty(1, self.row.prompt, 0, device=self.model.device)]
            self.seen.admit(0, nothing, nothing)
        self.control.admit(0, self.row, None)
        visit(prompt.logits[None])
        done = 0
        while done < len(self.fed):
            if self.plan.policy.recalls:
                tokens = self._until_due(done)
                visible = self._visible_now(len(tokens))
                visit(self._forward(tokens, visible))
                self._replay(tokens)
            else:
                tokens = self.fed[done : done + BLOCK]
                visible = self._replay(tokens)
                visit(self._forward(tokens, visible))
            done += len(tokens)
        return self.row.usage()

    def _until_due(self, start: int) -> list[int]:
        """The tokens from `start` up to the next that is due, it included."""
        clock, policy = _Clock(self.row.since), cast(Recalling, self.plan.policy)
        tokens: list[int] = []
        for token in self.fed[start : start + BLOCK]:
            tokens.append(token)
            clock.since += 1
            clock.boundary = token in self.plan.boundaries
            if policy.due(clock):
                break
        return tokens

    def _visible_now(self, number: int) -> Tensor:
        """What the next tokens attend to as long as nothing is refreshed: what is active now, and one another."""
        start, device = self.row.position, self.model.device
        active = self.store.valid[0, 0, 0, :start].expand(number, start)
        return torch.cat([active, torch.ones(number, number, dtype=torch.bool, device=device).tril()], dim=1)

    def _replay(self, tokens: list[int]) -> Tensor:
        """Let the control follow the tokens one by one; returns what each of them attends to, (n, T)."""
        row, first = self.row, self.row.position
        visible = torch.zeros(len(tokens), first + len(tokens), dtype=torch.bool, device=self.model.device)
        for place, token in enumerate(tokens):
            row.token = token
            row.feed(self.plan.boundaries)
            self.observer.at = place
            self.control.before([row])
            self.seen.open([row.position])
            visible[place, : row.position + 1] = self.seen.valid[0, 0, 0, : row.position + 1]
            self.control.after([row])
            row.position += 1
        return visible

    def _forward(self, tokens: list[int], visible: Tensor) -> Tensor:
        """Logits (n, V) of the tokens after the given ones."""
        device, start = self.model.device, visible.shape[1] - len(tokens)
        mask = self.store.open_chunk(start, visible)
        output = self.model(
            input_ids=torch.tensor([tokens], device=device),
            attention_mask=mask[None, None],
            position_ids=torch.arange(start, start + len(tokens), device=device)[None],
            use_cache=True,
            zoomr=self.observer,
            **{CACHE_KWARG: self.cache},
        )
        return output.logits[0]


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
