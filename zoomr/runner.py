"""A batch of rows that is decoded step by step; rows come and go."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from zoomr.attention import NAME
from zoomr.memory import Memory
from zoomr.notes import Notes
from zoomr.policies.base import Policy, Records, Site
from zoomr.prefill import Prefilled, Prefiller
from zoomr.results import Status, repeats
from zoomr.rotary import Rotary
from zoomr.rows import Request, Row
from zoomr.sampling import Chooser
from zoomr.trace import Trace

Mode = Literal["gather", "mask"]
TokenCallback = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Decoding:
    """What a batch needs to know, the same for all its rows."""

    policy: Policy
    boundaries: frozenset[int]
    stop_ids: frozenset[int]
    delimiters: tuple[int | None, int | None]
    mode: Mode = "gather"
    trace: Trace | None = None
    token_callback: TokenCallback | None = None


@contextmanager
def attending(model: Any) -> Iterator[None]:
    """Switch a model to attention "zoomr", and leave it as it was found."""
    before = model.config._attn_implementation
    model.set_attn_implementation(NAME)
    try:
        yield
    finally:
        model.set_attn_implementation(before)


class Runner:
    """Rows that are decoded together. It is what the model's layers call to attend.

    Rows are dense: when one ends and nothing takes its place, the last row moves there.

    Parameters
    ----------
    model : transformers causal language model
        Within `attending`.
    decoding : Decoding
    chooser : Chooser
        Gives the next tokens.
    size : int
        Most rows at a time.
    """

    def __init__(self, model: Any, decoding: Decoding, chooser: Chooser, size: int):
        self.model, self.decoding, self.chooser, self.size = model, decoding, chooser, size
        policy = decoding.policy
        history = policy.history if Records.HISTORY in policy.records else 0
        self.prefill = Prefiller(model, Records.ATTENTION in policy.records, history)
        self.rows: list[Row] = []
        self._memory: Memory | None = None

    @property
    def memory(self) -> Memory:
        """The KVs; they exist from the first prompt on, which shows their shape."""
        if self._memory is None:
            assert self.prefill.shape is not None
            site = Site(self.prefill.shape, self.size, self.model.device, Rotary.of(self.model))
            decoding = self.decoding
            self._memory = Memory(decoding.policy, site, self.model.dtype, decoding.mode, decoding.trace)
        return self._memory

    @property
    def free(self) -> int:
        """How many requests can be admitted."""
        return self.size - len(self.rows)

    @torch.inference_mode()
    def admit(self, requests: list[Request]) -> list[tuple[Row, Status]]:
        """Prefill requests and make them rows; returns those that ended with their first token."""
        prompts = self.prefill(requests)
        places = list(range(len(self.rows), len(self.rows) + len(requests)))
        for place, request, prompt in zip(places, requests, prompts, strict=True):
            self.start(place, request, prompt)
        tokens = self.chooser(torch.stack([prompt.logits for prompt in prompts]), places, [0] * len(places))
        return self._take(tokens, places)

    def start(self, place: int, request: Request, prompt: Prefilled) -> None:
        """Make a prefilled request the row at `place`."""
        row = Row.start(request, self.decoding.delimiters, [])
        self.rows.append(row)
        self.chooser.admit(place, request)
        self.memory.admit(place, row, prompt, self.prefill.scaling)

    @torch.inference_mode()
    def step(self) -> list[tuple[Row, Status]]:
        """Feed every row's newest token and choose the next; returns the rows that ended."""
        rows = self.rows
        for row in rows:
            row.feed(self.decoding.boundaries)
        self.memory.open(rows)
        with watching(self.model, self.memory.notes, self.memory.state.watches):
            logits = self.model(
                input_ids=torch.tensor([[row.token] for row in rows], device=self.model.device),
                position_ids=torch.tensor([[row.position] for row in rows], device=self.model.device),
                use_cache=False,
                zoomr=self,
            ).logits
        self.memory.close()
        places = list(range(len(rows)))
        return self._take(self.chooser(logits[:, -1], places, [len(row.tokens) for row in rows]), places)

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`."""
        return self.memory.attend(int(module.layer_idx), query, key, value, scaling)  # type: ignore[arg-type]

    def _take(self, tokens: list[int], places: list[int]) -> list[tuple[Row, Status]]:
        decoding = self.decoding
        ended: list[tuple[int, Status]] = []
        for place, token in zip(places, tokens, strict=True):
            row = self.rows[place]
            row.token = token
            row.tokens.append(token)
            if decoding.token_callback is not None:
                decoding.token_callback(row.request.prompt, row.request.sample, token)
            if token in decoding.stop_ids:
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
            self.memory.move(last, place)
            self.chooser.move(last, place)
            self.rows[place] = self.rows[last]
        self.rows.pop()


@contextmanager
def watching(model: Any, notes: Notes, layer: int | None) -> Iterator[None]:
    """Note the hidden states after a decoder layer, if one is watched."""
    if layer is None:
        yield
        return

    def note(module: torch.nn.Module, args: Any, output: Any) -> None:
        notes.hidden = output[0] if isinstance(output, tuple) else output

    handle = model.get_decoder().layers[layer].register_forward_hook(note)
    try:
        yield
    finally:
        handle.remove()


def serve(runner: Runner, requests: Iterable[Request]) -> Iterator[tuple[Row, Status]]:
    """Decode requests, yielding each when it ends; waiting ones take the places of those that ended."""
    waiting = deque(requests)
    while waiting or runner.rows:
        ended = runner.step() if runner.rows else []
        while waiting and runner.free:
            ended += runner.admit([waiting.popleft() for _ in range(min(runner.free, len(waiting)))])
        yield from ended
