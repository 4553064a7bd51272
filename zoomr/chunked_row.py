"""One row that is fed given tokens in chunks: its full cache, and the control of its policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from zoomr.attention import attend_many
from zoomr.compat import KVShape, kv_shape
from zoomr.control import EvictionControl, RecallControl
from zoomr.observers import StepObserver
from zoomr.plan import Plan
from zoomr.policies.base import Evicting, Recalling
from zoomr.prefill import Prefilled
from zoomr.rows import Request, Row
from zoomr.stores import MaskStore, StoreSize
from zoomr.stores.chunk import ChunkStore

BLOCK = 256  # longest chunk
WITHOUT_KVS = KVShape(layers=1, kv_heads=1, head_dim=0)


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


class ChunkedRow:
    """One row, its full cache, and the control of its policy, which is replayed token by token beside the forwards.

    Parameters
    ----------
    model : transformers causal language model
    plan : Plan
    request : Request
    continuation : list of int
    """

    def __init__(self, model: Any, plan: Plan, request: Request, continuation: list[int]):
        self.plan, self.device = plan, model.device
        self.fed = continuation[:-1]  # the last given token is predicted and never fed
        self.done = 0
        shape = kv_shape(model.config)
        self.row = Row.start(request, plan.delimiters, list(continuation))
        self.store = ChunkStore(StoreSize(shape, 1, model.dtype, self.device))
        self.observer = _ChunkObserver(self.store, shape.layers, attention=False)
        self.seen: MaskStore = self.store  # knows what is attended to
        self.mask: Tensor | None = None
        self.control: RecallControl | EvictionControl
        rotary = getattr(model.get_decoder(), "rotary_emb", None)
        if plan.policy.recalls:
            policy = cast(Recalling, plan.policy)
            self.control = RecallControl(policy, self.store, self.observer, shape, 1, self.device, rotary, plan.trace)
        else:
            self.seen = MaskStore(StoreSize(WITHOUT_KVS, 1, model.dtype, self.device))
            self.control = EvictionControl(cast(Evicting, plan.policy), self.seen, self.observer, self.device)

    def admit(self, prompt: Prefilled) -> None:
        """Start with the prompt's KVs."""
        self.store.admit(0, prompt.keys, prompt.values)
        if self.seen is not self.store:
            nothing = [torch.empty(1, self.row.prompt, 0, device=self.device)]
            self.seen.admit(0, nothing, nothing)
        self.control.admit(0, self.row, None)

    def chunk(self) -> list[int]:
        """The next tokens that may go through the model together; none when all are done."""
        if not self.plan.policy.recalls:
            return self.fed[self.done : self.done + BLOCK]
        clock, policy = _Clock(self.row.since), cast(Recalling, self.plan.policy)
        tokens: list[int] = []
        for token in self.fed[self.done : self.done + BLOCK]:
            tokens.append(token)
            clock.since += 1
            clock.boundary = token in self.plan.boundaries
            if policy.due(clock):
                break
        return tokens

    def begin(self, tokens: list[int]) -> None:
        """Prepare a forward of the next tokens."""
        visible = self._visible_now(len(tokens)) if self.plan.policy.recalls else self._replay(tokens)
        self.mask = self.store.open_chunk(visible.shape[1] - len(tokens), visible)[None, None]

    def attend(self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
        """Attention output of one layer, (1, n, Hq, d), for the chunk's queries, keys and values."""
        keys, values = self.store.write(int(module.layer_idx), key, value)  # type: ignore[arg-type]
        return self.observer.attend(module, query, keys, values, self.mask, scaling)

    def end(self, tokens: list[int]) -> None:
        """Take notice that the forward is done."""
        if self.plan.policy.recalls:
            self._replay(tokens)
        self.done += len(tokens)

    def _visible_now(self, number: int) -> Tensor:
        """What the next tokens attend to as long as nothing is refreshed: what is active now, and one another."""
        start = self.row.position
        active = self.store.valid[0, 0, 0, :start].expand(number, start)
        return torch.cat([active, torch.ones(number, number, dtype=torch.bool, device=self.device).tril()], dim=1)

    def _replay(self, tokens: list[int]) -> Tensor:
        """Let the control follow the tokens one by one; returns what each of them attends to, (n, T)."""
        row, first = self.row, self.row.position
        visible = torch.zeros(len(tokens), first + len(tokens), dtype=torch.bool, device=self.device)
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
