"""A batch of rows that is decoded step by step; rows come and go."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, cast

import torch

from zoomr.cache import store_cache
from zoomr.compat import CACHE_KWARG, kv_shape
from zoomr.control import EvictionControl, RecallControl
from zoomr.history import QueryHistory
from zoomr.observers import StepObserver
from zoomr.plan import Plan, make_store
from zoomr.policies import Evicting, Needs, Recalling
from zoomr.prefill import Prefiller
from zoomr.results import Status, repeats
from zoomr.rows import Request, Row
from zoomr.sampling import Chooser
from zoomr.stores import EvictStore, RecallStore, StoreSize


class Batch:
    """Rows that are decoded together.

    Rows are dense: when one ends and nothing takes its place, the last row moves there.

    Parameters
    ----------
    model : transformers causal language model
        Switched to the attention implementation "zoomr", which without our keyword is transformers' SDPA.
    plan : Plan
    chooser : Chooser
        Gives the next tokens.
    size : int
        Most rows at a time.
    """

    def __init__(self, model: Any, plan: Plan, chooser: Chooser, size: int):
        self.model, self.plan, self.size = model, plan, size
        policy, shape, device = plan.policy, kv_shape(model.config), model.device
        attention = Needs.ATTENTION in policy.needs
        model.set_attn_implementation("zoomr")
        store = make_store(plan, StoreSize(shape, size, model.dtype, device))
        self.store = store
        history = QueryHistory(shape.layers, size, policy.history) if Needs.HISTORY in policy.needs else None
        self.observer = StepObserver(self.store, shape.layers, attention, history)
        self.cache = store_cache(self.store, shape.layers)
        self.prefill = Prefiller(model, attention, history.length if history else 0)
        self.chooser = chooser
        self.control: RecallControl | EvictionControl
        rotary = getattr(model.get_decoder(), "rotary_emb", None)
        if policy.recalls:
            recalling = cast(Recalling, policy)
            recall_store = cast(RecallStore, store)
            self.control = RecallControl(
                recalling, recall_store, self.observer, shape, size, device, rotary, plan.trace
            )
        else:
            self.control = EvictionControl(
                cast(Evicting, policy), cast(EvictStore, store), self.observer, device, rotary
            )
        self.rows: list[Row] = []

    @property
    def free(self) -> int:
        """How many requests can be admitted."""
        return self.size - len(self.rows)

    @torch.inference_mode()
    def admit(self, requests: list[Request]) -> list[tuple[Row, Status]]:
        """Prefill requests and make them rows; returns those that ended with their first token."""
        started = time.perf_counter()
        first, before = len(self.rows), self.prefill.tokens
        prompts = self.prefill(requests)
        places = list(range(first, first + len(requests)))
        for place, request, prompt in zip(places, requests, prompts, strict=True):
            row = Row.start(request, self.plan.delimiters, [])
            self.rows.append(row)
            self.store.admit(place, prompt.keys, prompt.values, prompt.received)
            self.chooser.admit(place, request)
            self.control.admit(place, row, prompt.queries)
        logits = torch.stack([prompt.logits for prompt in prompts])
        tokens = self.chooser(logits, places, [0] * len(places))
        if self.plan.meter is not None:
            self.plan.meter.prefill_tokens += self.prefill.tokens - before
            self.plan.meter.prefill_seconds += time.perf_counter() - started
            self.plan.meter.held(self.store.tensors())
        return self._take(tokens, places)

    @torch.inference_mode()
    def step(self) -> list[tuple[Row, Status]]:
        """Feed every row's newest token and choose the next; returns the rows that ended."""
        started = time.perf_counter()
        rows, device = self.rows, self.model.device
        positions = [row.position for row in rows]
        for row in rows:
            row.feed(self.plan.boundaries)
        self.control.before(rows)
        self.store.open(positions)
        output = self.model(
            input_ids=torch.tensor([[row.token] for row in rows], device=device),
            position_ids=torch.tensor([[position] for position in positions], device=device),
            use_cache=True,
            zoomr=self.observer,
            **{CACHE_KWARG: self.cache},
        )
        refreshing = time.perf_counter()
        self.control.after(rows)
        refreshed = time.perf_counter()
        for row in rows:
            row.position += 1
        places = list(range(len(rows)))
        tokens = self.chooser(output.logits[:, -1], places, [len(row.tokens) for row in rows])
        if self.plan.meter is not None:
            self.plan.meter.decode_tokens += len(rows)
            self.plan.meter.decode_seconds += time.perf_counter() - started
            self.plan.meter.refresh_seconds += refreshed - refreshing
            self.plan.meter.held(self.store.tensors())
        return self._take(tokens, places)

    def _take(self, tokens: list[int], places: list[int]) -> list[tuple[Row, Status]]:
        plan = self.plan
        ended: list[tuple[int, Status]] = []
        for place, token in zip(places, tokens, strict=True):
            row = self.rows[place]
            row.token = token
            row.tokens.append(token)
            if plan.token_callback is not None:
                plan.token_callback(row.request.prompt, row.request.sample, token)
            if token in plan.stop_ids:
                ended.append((place, "stop"))
            elif len(row.tokens) >= row.request.limit:
                ended.append((place, "repetition" if repeats(row.tokens) else "length"))
        finished = [(self.rows[place], status) for place, status in ended]
        for place, _ in reversed(ended):
            self._remove(place)
        return finished

    def _remove(self, place: int) -> None:
        last = len(self.rows) - 1
        if place != last:
            for part in (self.store, self.chooser, self.control):
                part.move(last, place)
            self.rows[place] = self.rows[last]
        self.rows.pop()


def serve(batch: Batch, requests: Iterable[Request]) -> Iterator[tuple[Row, Status]]:
    """Decode requests, yielding each when it ends; waiting ones take the places of those that ended."""
    waiting = deque(requests)
    while waiting or batch.rows:
        ended = batch.step() if batch.rows else []
        while waiting and batch.free:
            ended += batch.admit([waiting.popleft() for _ in range(min(batch.free, len(waiting)))])
        yield from ended
