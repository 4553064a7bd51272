"""Teacher forcing in chunks: tokens go through the model together for as long as it is known what they attend to.

A shared choice is fixed between two changes, and the token after which something may change comes last in its chunk.
A policy that looks at positions alone says beforehand what every token will attend to. Both go abreast, a row each, in
shared forwards. One that chooses anew with every token, but for each head by itself, goes layer by layer: what it keeps
in a layer follows from that layer's own queries and keys, so that a layer takes all tokens of a chunk one after the
other before the next layer starts. The rest goes through the ordinary loop.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from zoomr.attention import attend
from zoomr.compat import check_attention
from zoomr.forcing import Forcing
from zoomr.layered import BLOCK, Layered, Visit
from zoomr.memory import BatchView, decide
from zoomr.notes import Notes
from zoomr.policies.base import Policy, Records, Site
from zoomr.prefill import Prefiller
from zoomr.prompts import Prompt, token_ids
from zoomr.results import Usage
from zoomr.rotary import Rotary
from zoomr.rows import Request, Row
from zoomr.runner import Decoding, Runner, attending, serve, watching
from zoomr.summaries.segments import boundary_table, delimiter_ids
from zoomr.tiers import MaskTiers, Size
from zoomr.trace import Trace

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
    table = frozenset(boundary_table(tokenizer) if boundaries is None else boundaries)
    request = Request(number, 0, seed, token_ids(tokenizer, prompt), len(continuation), is_last_sample=True)
    check_attention(model.config, len(request.token_ids) + request.limit)
    traces = traces or [None] * len(policies)
    decodings = [
        Decoding(policy, table, frozenset(), delimiter_ids(tokenizer), trace=trace)
        for policy, trace in zip(policies, traces, strict=True)
    ]
    usages: dict[int, Usage] = {}
    together = []
    with attending(model), torch.inference_mode():
        for place, (decoding, visit) in enumerate(zip(decodings, visits, strict=True)):
            decoding.policy.check(len(request.token_ids))
            if by_layer(decoding.policy):
                usages[place] = Layered(model, decoding, request, continuation).run(visit)
            elif in_chunks(decoding.policy):
                together.append(place)
            else:
                usages[place] = _step_by_step(model, decoding, request, continuation, visit)
        for first in range(0, len(together), ABREAST):
            chosen = together[first : first + ABREAST]
            rows = Abreast(model, [decodings[place] for place in chosen], request, continuation)
            usages.update(zip(chosen, rows.run([visits[place] for place in chosen]), strict=True))
    return [usages[place] for place in range(len(decodings))]


def in_chunks(policy: Policy) -> bool:
    """Whether it is known for many tokens together what they attend to under a policy."""
    looks = Records.ATTENTION | Records.HISTORY | Records.KEYS
    shared = policy.scope == "shared" and policy.lower in ("none", "host", "layerwise")
    return shared and not policy.records & looks and not policy.chooses


def by_layer(policy: Policy) -> bool:
    """Whether a policy's choice in a layer follows from that layer alone."""
    return policy.scope == "head" and policy.records != Records.NOTHING and not policy.chooses


class Abreast:
    """Rows of the same tokens, one a policy: one forward, in which each attends to what is its own.

    Parameters
    ----------
    model : transformers causal language model
        Within `attending`.
    decodings : list of Decoding
    request : Request
    continuation : list of int
    """

    def __init__(self, model: Any, decodings: list[Decoding], request: Request, continuation: list[int]):
        self.model, self.decodings, self.request = model, decodings, request
        self.fed = continuation[:-1]  # the last given token is predicted and never fed
        self.rows = [Row.start(request, one.delimiters, list(continuation)) for one in decodings]
        self.first = 0  # position of the chunk's first token
        self.visible: list[Tensor] = []
        self.columns: list[Tensor] = []

    def run(self, visits: Sequence[Visit]) -> list[Usage]:
        """Go through the prompt and the chunks."""
        prefill = Prefiller(self.model, attention=False, history=0)
        prompt = prefill([self.request])[0]
        assert prefill.shape is not None
        number = len(self.rows)
        site = Site(prefill.shape, number, self.model.device, Rotary.of(self.model))
        self.tiers = MaskTiers(Size(prefill.shape, number, self.model.dtype, site.device))
        self.notes = Notes(site, history=0)
        self.notes.scaling = prefill.scaling
        self.states = [one.policy.start(site) for one in self.decodings]
        for place, (row, state, visit) in enumerate(zip(self.rows, self.states, visits, strict=True)):
            self.tiers.admit(place, prompt.keys, prompt.values)
            state.admit(place, row)
            visit(prompt.logits[None])
            if state.due(row):
                self._decide(place, row)
        done = 0
        while done < len(self.fed):
            tokens, shown = self._chunk(self.fed[done : done + BLOCK])
            for visit, logits in zip(visits, self._forward(tokens), strict=True):
                visit(logits)
            for at, place, clock in shown:
                self.notes.at[place] = at
                self._decide(place, clock)
            done += len(tokens)
        return [row.usage() for row in self.rows]

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`: a chunk's queries, keys and values of all rows."""
        layer, stop = int(module.layer_idx), self.first + query.shape[2]  # type: ignore[arg-type]
        self.notes.take(layer, query, scaling)
        held = [buffer[layer] for buffer in self.tiers.kv]
        for buffer, new in zip(held, (key, value), strict=True):
            buffer[:, :, self.first : stop] = new
        outputs = []
        for place, (visible, columns) in enumerate(zip(self.visible, self.columns, strict=True)):
            keys, values = (buffer[place : place + 1].index_select(2, columns) for buffer in held)
            outputs.append(attend(query[place : place + 1], keys, values, visible[None, None], scaling))
        return torch.cat(outputs)

    def _chunk(self, tokens: list[int]) -> tuple[list[int], list[tuple[int, int, Row]]]:
        """The next tokens that may go together, and which rows are to be shown to their states, at which of them."""
        self.first = self.rows[0].position + 1
        shown: list[tuple[int, int, Row]] = []
        seen: list[list[Tensor]] = [[] for _ in self.rows]
        taken: list[int] = []
        for at, token in enumerate(tokens):
            taken.append(token)
            for row, decoding in zip(self.rows, self.decodings, strict=True):
                row.token = token
                row.feed(decoding.boundaries)
            self.tiers.open([row.position for row in self.rows])
            ends = False
            for place, (row, state) in enumerate(zip(self.rows, self.states, strict=True)):
                seen[place].append(self.tiers.valid[0, place, 0, : row.position + 1].clone())
                if not state.due(row):
                    continue
                if self.decodings[place].policy.records == Records.NOTHING:
                    self._decide(place, row)
                elif state.changes(row):
                    shown.append((at, place, row))
                    ends = True
                else:
                    shown.append((at, place, replace(row, tracker=copy.deepcopy(row.tracker))))
            if ends:
                break
        length = self.first + len(taken)
        masks = [torch.stack([_padded(line, length) for line in own]) for own in seen]
        self.columns = [mask.any(0).nonzero()[:, 0] for mask in masks]
        self.visible = [mask[:, columns] for mask, columns in zip(masks, self.columns, strict=True)]
        return taken, shown

    def _forward(self, tokens: list[int]) -> Tensor:
        """Logits (P, n, V) of the tokens after the given ones."""
        device, shape = self.model.device, (len(self.rows), len(tokens))
        positions = torch.arange(self.first, self.first + len(tokens), device=device).expand(shape)
        ids = torch.tensor(tokens, device=device).expand(shape)
        watched = {state.watches for state in self.states if state.watches is not None}
        with watching(self.model, self.notes, watched.pop() if watched else None):
            return self.model(input_ids=ids, position_ids=positions, use_cache=False, zoomr=self).logits

    def _decide(self, place: int, clock: Row) -> None:
        view = BatchView([place], [clock], self.tiers, self.notes)
        decide(self.states[place].decide, view, self.tiers.apply, self.decodings[place].trace)


class _Visited(Forcing):
    """Forcing that shows each step's logits."""

    def __init__(self, continuation: list[int], visit: Visit):
        super().__init__([continuation])
        self.visit = visit

    def admit(self, row: int, request: Request) -> None:
        """See `Chooser.admit`; there is but one continuation."""
        self._prompt_of[row] = 0

    def __call__(self, logits: Tensor, rows: list[int], drawn: list[int]) -> list[int]:
        """See `Chooser.__call__`."""
        self.visit(logits)
        return [self.targets[0][number] for number in drawn]


def _step_by_step(model: Any, decoding: Decoding, request: Request, continuation: list[int], visit: Visit) -> Usage:
    runner = Runner(model, decoding, _Visited(continuation, visit), 1)
    ((row, _),) = serve(runner, [request])
    return row.usage()


def _padded(line: Tensor, length: int) -> Tensor:
    return torch.nn.functional.pad(line, (0, length - len(line)))
