"""Teacher forcing layer by layer, for policies that choose anew with every token, but for each head by itself.

What such a policy keeps in a layer follows from that layer's own queries and keys. So a layer can take all tokens of a
chunk, one after the other, before the next layer starts, and the matrix products around the attention see the chunk at
once. The steps within a layer are those of the decoding loop, with a store and a control of one layer.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import Tensor

from zoomr.compat import KVShape, kv_shape
from zoomr.control import EvictionControl
from zoomr.history import QueryHistory
from zoomr.observers import StepObserver
from zoomr.plan import Plan
from zoomr.policies import Needs, Policy
from zoomr.policies.base import Evicting
from zoomr.prefill import Prefilled, Prefiller
from zoomr.results import Usage
from zoomr.rows import Request, Row
from zoomr.stores import SlotEvictStore, StoreSize, group_counts

ALONE = cast(torch.nn.Module, SimpleNamespace(layer_idx=0))  # the one layer of a store of one layer


def by_layer(policy: Policy) -> bool:
    """Whether a policy's choice in a layer follows from that layer alone."""
    return not policy.recalls and policy.scope == "head" and policy.needs != Needs.NOTHING


class _Layer:
    """A row's cache in one layer, and the control of its policy."""

    def __init__(self, policy: Evicting, row: Row, size: StoreSize):
        attention = Needs.ATTENTION in policy.needs
        history = QueryHistory(1, 1, policy.history) if Needs.HISTORY in policy.needs else None
        self.row = row
        self.store = SlotEvictStore(size, group_counts(policy.scope, size.shape), ledger=attention)
        self.observer = StepObserver(self.store, 1, attention, history)
        self.control = EvictionControl(policy, self.store, self.observer, size.device)

    def admit(self, prompt: Prefilled, layer: int) -> None:
        """Start with the prompt's KVs."""
        received = None if prompt.received is None else prompt.received[layer : layer + 1]
        queries = None if prompt.queries is None else prompt.queries[layer : layer + 1]
        self.store.admit(0, [prompt.keys[layer]], [prompt.values[layer]], received)
        self.control.admit(0, self.row, queries)

    def attend(self, tokens: list[int], query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
        """Take the tokens one by one; returns their attention outputs, (1, n, Hq, d)."""
        row, outputs = self.row, []
        for place, token in enumerate(tokens):
            row.token = token
            row.feed(frozenset())
            self.control.before([row])
            self.store.open([row.position])
            here = slice(place, place + 1)
            keys, values = self.store.write(0, key[:, :, here], value[:, :, here])
            outputs.append(self.observer.attend(ALONE, query[:, :, here], keys, values, None, scaling))
            self.control.after([row])
            row.position += 1
        return torch.cat(outputs, dim=1)


class LayeredRow:
    """One row, each of whose layers follows the policy by itself.

    Parameters
    ----------
    model : transformers causal language model
        With the attention implementation "zoomr".
    plan : Plan
    request : Request
    continuation : list of int
    """

    def __init__(self, model: Any, plan: Plan, request: Request, continuation: list[int]):
        self.model, self.continuation = model, continuation
        policy, shape = cast(Evicting, plan.policy), kv_shape(model.config)
        one = KVShape(1, shape.kv_heads, shape.head_dim)
        self.tokens: list[int] = []
        self.prefill = Prefiller(model, Needs.ATTENTION in policy.needs, policy.history)
        size = StoreSize(one, 1, model.dtype, model.device)
        self.layers = [
            _Layer(policy, Row.start(request, plan.delimiters, list(continuation)), size) for _ in range(shape.layers)
        ]

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`."""
        layer = self.layers[int(module.layer_idx)]  # type: ignore[arg-type]
        return layer.attend(self.tokens, query, key, value, scaling)

    @torch.inference_mode()
    def run(self, visit: Any, block: int) -> Usage:
        """Go through the prompt and, `block` tokens at a time, through what is fed after it."""
        row, device = self.layers[0].row, self.model.device
        prompt = self.prefill([row.request])[0]
        for number, layer in enumerate(self.layers):
            layer.admit(prompt, number)
        visit(prompt.logits[None])
        fed = self.continuation[:-1]  # the last given token is predicted and never fed
        for start in range(0, len(fed), block):
            self.tokens = fed[start : start + block]
            first = row.position
            positions = torch.arange(first, first + len(self.tokens), device=device)[None]
            ids = torch.tensor([self.tokens], device=device)
            visit(self.model(input_ids=ids, position_ids=positions, use_cache=False, zoomr=self).logits[0])
        return self._usage()

    def _usage(self) -> Usage:
        usages = [layer.row.usage() for layer in self.layers]
        kinds = {
            kind: sum(one.active_by_kind[kind] for one in usages) / len(usages) for kind in usages[0].active_by_kind
        }
        return replace(usages[0], active_by_kind=kinds)
