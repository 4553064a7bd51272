"""Running prompts through the model, each once however many samples it gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from zoomr.compat import CACHE_KWARG, DynamicCache, layer_tensors
from zoomr.observers import PromptObserver
from zoomr.rows import Request


@dataclass(frozen=True)
class Prefilled:
    """A prompt after its forward.

    Attributes
    ----------
    keys, values : list of (H, T, d)
        One a layer.
    logits : (V,)
        Of the last token.
    received : (L, H, T) or None
        Attention that each token received.
    queries : (L, Hq, n, d) or None
        Of the last tokens.
    """

    keys: list[Tensor]
    values: list[Tensor]
    logits: Tensor
    received: Tensor | None
    queries: Tensor | None


class Prefiller:
    """Prefills the prompts of waiting requests.

    A prompt whose further samples still wait is kept until the last of them has been served; requests come
    prompt by prompt, so that this is at most one.

    Parameters
    ----------
    model : transformers causal language model
    attention : bool
        Also sum the attention that prompt tokens receive.
    history : int
        Also keep this many last queries.
    """

    def __init__(self, model: Any, attention: bool, history: int):
        self.model, self.attention, self.history = model, attention, history
        self.tokens = 0  # prompt tokens run through the model
        self._kept: tuple[int, Prefilled] | None = None

    def __call__(self, requests: list[Request]) -> list[Prefilled]:
        """The prefilled prompt of each request."""
        known = dict([self._kept] if self._kept else [])
        new = {request.prompt: request.token_ids for request in requests if request.prompt not in known}
        if new:
            known.update(zip(new, self._forward(list(new.values())), strict=True))
        last = requests[-1]
        self._kept = None if last.is_last_sample else (last.prompt, _owned(known[last.prompt]))
        return [known[request.prompt] for request in requests]

    def _forward(self, prompts: list[list[int]]) -> list[Prefilled]:
        device = self.model.device
        length = max(map(len, prompts))
        self.tokens += sum(map(len, prompts))
        pads = [length - len(prompt) for prompt in prompts]
        ids = torch.tensor([[0] * pad + prompt for pad, prompt in zip(pads, prompts, strict=True)], device=device)
        starts = torch.tensor(pads, device=device)[:, None]
        positions = torch.arange(length, device=device)[None] - starts
        padding = positions >= 0 if any(pads) else None
        observer = PromptObserver(self.attention, self.history, padding)
        cache = DynamicCache()
        output = self.model(
            input_ids=ids,
            attention_mask=None if padding is None else padding.long(),
            position_ids=positions.clamp(min=0),
            use_cache=True,
            logits_to_keep=1,
            zoomr=observer,
            **{CACHE_KWARG: cache},
        )
        layers = layer_tensors(cache)
        received = torch.stack(observer.received) if self.attention else None
        queries = torch.stack(observer.queries) if self.history else None
        return [
            Prefilled(
                [keys[row, :, pad:] for keys, _ in layers],
                [values[row, :, pad:] for _, values in layers],
                output.logits[row, -1],
                None if received is None else received[:, row, :, pad:],
                None if queries is None else queries[:, row, :, -min(self.history, length - pad) :],
            )
            for row, pad in enumerate(pads)
        ]


def _owned(prompt: Prefilled) -> Prefilled:
    """A copy that does not hold the whole batch it was made in."""
    return Prefilled(
        [keys.clone() for keys in prompt.keys],
        [values.clone() for values in prompt.values],
        prompt.logits.clone(),
        None if prompt.received is None else prompt.received.clone(),
        None if prompt.queries is None else prompt.queries.clone(),
    )
