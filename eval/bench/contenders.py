"""What takes turns: transformers' own cache, and zoomr's decoder with a policy."""

from __future__ import annotations

import inspect
import statistics
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import DynamicCache

from eval.bench.filler import fill
from eval.bench.trace import BEGIN, BOUNDARY, END, WORD, Given, TraceForm
from zoomr.compat import shape_of
from zoomr.policies import Budgeted, Policy, Summarized
from zoomr.runner import Decoding, Runner, attending


class Contender(Protocol):
    """One way to decode.

    Attributes
    ----------
    cycle : int
        Steps after which everything that does not happen at every step has happened once in every row.
    """

    cycle: int

    def attending(self) -> AbstractContextManager[None]:
        """The context in which the model attends as this contender needs it."""
        ...

    def step(self) -> None:
        """Make one token a row."""

    def active(self) -> float:
        """Tokens that a row's next query attends to, itself included; the mean over rows."""
        ...

    def tensors(self) -> dict[str, list[Tensor]]:
        """What is held beside the weights, by place: KVs on the device and the host, and a policy's own state."""
        ...


class PlainCache:
    """A transformers forward with a `DynamicCache` of `length` tokens in each of `batch` rows."""

    cycle = 1

    def __init__(self, model: Any, batch: int, length: int):
        self.model, self.length = model, length
        self.cache: Any = DynamicCache()
        known = inspect.signature(model.forward).parameters
        self.named = {"cache" if "cache" in known else "past_key_values": self.cache}  # transformers renamed it
        shape = shape_of(model.config)
        for layer in range(shape.layers):
            widths = (shape.key_dim, shape.value_dim)
            kv = [torch.randn(shape.kv_heads, length, d, dtype=model.dtype, device=model.device) for d in widths]
            keys, values = (part.expand(batch, *part.shape).contiguous() for part in kv)
            self.cache.update(keys, values, layer)
        self.ids = torch.full((batch, 1), WORD, device=model.device)

    def attending(self) -> AbstractContextManager[None]:
        """The model as it was loaded."""
        return nullcontext()

    @torch.inference_mode()
    def step(self) -> None:
        """See `Contender.step`."""
        positions = torch.full_like(self.ids, self.length)
        output = self.model(self.ids, position_ids=positions, use_cache=True, **self.named)
        output.logits[:, -1].argmax(-1).tolist()
        self.length += 1

    def active(self) -> float:
        """See `Contender.active`."""
        return self.length + 1

    def tensors(self) -> dict[str, list[Tensor]]:
        """See `Contender.tensors`."""
        held = [part for layer in self.cache.layers for part in (layer.keys, layer.values)]
        return {"device": held, "host": [], "state": []}


class Decoder:
    """zoomr's decoder with a policy, `batch` rows of which have seen `seen` tokens."""

    def __init__(self, model: Any, batch: int, seen: int, policy: Policy, form: TraceForm):
        self.model, self.cycle = model, cycle_of(policy, form)
        decoding = Decoding(policy, frozenset({BOUNDARY}), frozenset(), (BEGIN, END))
        self.runner = Runner(model, decoding, Given(form, seen + 1), batch)
        fill(self.runner, shape_of(model.config), form, seen)

    def attending(self) -> AbstractContextManager[None]:
        """Attention through the runner."""
        return attending(self.model)

    def step(self) -> None:
        """See `Contender.step`."""
        self.runner.step()

    def active(self) -> float:
        """See `Contender.active`."""
        return statistics.mean(row.held + 1 for row in self.runner.rows)

    def tensors(self) -> dict[str, list[Tensor]]:
        """See `Contender.tensors`."""
        return self.runner.memory.tensors()


def cycle_of(policy: Policy, form: TraceForm) -> int:
    """Steps from one change of a row to the next."""
    if isinstance(policy, Budgeted):
        return policy.interval
    if isinstance(policy, Summarized):
        return policy.every or form.gap
    return 1
