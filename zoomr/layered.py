"""Teacher forcing layer by layer, for policies that choose anew with every token, but for each head by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from zoomr.memory import Memory
from zoomr.policies.base import Records, Site
from zoomr.prefill import Prefiller
from zoomr.results import Usage
from zoomr.rotary import Rotary
from zoomr.rows import Request, Row
from zoomr.runner import Decoding

Visit = Callable[[Tensor], None]
BLOCK = 256  # longest chunk


class Layered:
    """One row, each of whose layers follows the policy by itself.

    Parameters
    ----------
    model : transformers causal language model
        Within `attending`.
    decoding : Decoding
    request : Request
    continuation : list of int
    """

    def __init__(self, model: Any, decoding: Decoding, request: Request, continuation: list[int]):
        self.model, self.decoding, self.request, self.continuation = model, decoding, request, continuation
        self.tokens: list[int] = []

    def run(self, visit: Visit) -> Usage:
        """Go through the prompt and, block by block, through what is fed after it."""
        policy, device = self.decoding.policy, self.model.device
        history = policy.history if Records.HISTORY in policy.records else 0
        prefill = Prefiller(self.model, Records.ATTENTION in policy.records, history)
        prompt = prefill([self.request])[0]
        assert prefill.shape is not None
        visit(prompt.logits[None])
        site = Site(replace(prefill.shape, layers=1), 1, device, Rotary.of(self.model))
        self.rows, self.memories = [], []
        for layer in range(prefill.shape.layers):
            row = Row.start(self.request, self.decoding.delimiters, list(self.continuation))
            memory = Memory(policy, site, self.model.dtype, "gather")
            one = slice(layer, layer + 1)
            received = None if prompt.received is None else prompt.received[one]
            queries = None if prompt.queries is None else prompt.queries[one]
            own = replace(prompt, keys=prompt.keys[one], values=prompt.values[one], received=received, queries=queries)
            memory.admit(0, row, own, prefill.scaling)
            self.rows.append(row)
            self.memories.append(memory)
        fed = self.continuation[:-1]  # the last given token is predicted and never fed
        for start in range(0, len(fed), BLOCK):
            self.tokens = fed[start : start + BLOCK]
            first = self.rows[0].position + 1
            positions = torch.arange(first, first + len(self.tokens), device=device)[None]
            ids = torch.tensor([self.tokens], device=device)
            visit(self.model(input_ids=ids, position_ids=positions, use_cache=False, zoomr=self).logits[0])
        return self._usage()

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`: a layer takes a chunk's tokens one by one."""
        layer, outputs = int(module.layer_idx), []  # type: ignore[arg-type]
        row, memory = self.rows[layer], self.memories[layer]
        for place, row.token in enumerate(self.tokens):
            here = slice(place, place + 1)
            row.feed(self.decoding.boundaries)
            memory.open([row])
            outputs.append(memory.attend(0, query[:, :, here], key[:, :, here], value[:, :, here], scaling))
            memory.close()
        return torch.cat(outputs, dim=1)

    def _usage(self) -> Usage:
        usages = [row.usage() for row in self.rows]
        kinds = {
            kind: sum(one.active_by_kind[kind] for one in usages) / len(usages) for kind in usages[0].active_by_kind
        }
        return replace(usages[0], active_by_kind=kinds)
