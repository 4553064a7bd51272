"""Running prompts through the model, each once however many samples it gets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from zoomr.compat import sdpa_attention_forward
from zoomr.errors import UserError
from zoomr.policies.base import Shape
from zoomr.rows import Request

QUERY_BLOCK = 128


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


class PromptObserver:
    """Attends over prompts exactly as transformers does, and keeps what the layers hand over.

    Parameters
    ----------
    attention : bool
        Whether the attention that each prompt token receives is wanted.
    history : int
        How many last queries are wanted.
    padding : (U, T) bool or None
        True for real tokens.
    """

    def __init__(self, attention: bool, history: int, padding: Tensor | None):
        self.attention, self.history, self.padding = attention, history, padding
        self.kv: dict[int, tuple[Tensor, Tensor]] = {}
        self.received: list[Tensor] = []
        self.queries: list[Tensor] = []
        self.query_heads = 0
        self.scaling = 1.0

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`."""
        self.kv[int(module.layer_idx)] = key, value  # type: ignore[arg-type]
        self.query_heads, self.scaling = query.shape[1], scaling
        if self.attention:
            self.received.append(received_attention(query, key, self.padding, scaling))
        if self.history:
            self.queries.append(query[:, :, -self.history :].clone())
        return sdpa_attention_forward(module, query, key, value, mask, scaling=scaling)[0]

    def shape(self, model: Any) -> Shape:
        """The shape of what the layers handed over.

        Raises
        ------
        UserError
            When not every layer did, or one of another shape: such a model keeps something that a policy cannot see.
        """
        config = model.config.get_text_config(decoder=True)
        seen = {(key.shape[1], key.shape[3], value.shape[1], value.shape[3]) for key, value in self.kv.values()}
        if sorted(self.kv) != list(range(config.num_hidden_layers)) or len(seen) != 1:
            raise UserError(
                f"model: {config.model_type} does not show keys and values of one shape in every layer; zoomr needs "
                "attention layers through transformers' attention interface"
            )
        ((heads, key_dim, value_heads, value_dim),) = seen
        if heads != value_heads or self.query_heads % heads:
            raise UserError(f"model: {config.model_type} has {heads} key heads and {value_heads} value heads")
        return Shape(len(self.kv), self.query_heads, heads, key_dim, value_dim)


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

    Attributes
    ----------
    shape : Shape or None
        What the layers were seen to hand over.
    scaling : float
    """

    def __init__(self, model: Any, attention: bool, history: int):
        self.model, self.attention, self.history = model, attention, history
        self.shape: Shape | None = None
        self.scaling = 1.0
        self._kept: tuple[int, Prefilled] | None = None

    def __call__(self, requests: list[Request]) -> list[Prefilled]:
        """The prefilled prompt of each request."""
        known = dict([self._kept] if self._kept else [])
        new = {request.prompt: request.token_ids for request in requests if request.prompt not in known}
        if new:
            known.update(zip(new, self._forward(list(new.values())), strict=True))
        last = requests[-1]
        self._kept = None if last.is_last_sample else (last.prompt, owned(known[last.prompt]))
        return [known[request.prompt] for request in requests]

    def _forward(self, prompts: list[list[int]]) -> list[Prefilled]:
        device = self.model.device
        length = max(map(len, prompts))
        pads = [length - len(prompt) for prompt in prompts]
        ids = torch.tensor([[0] * pad + prompt for pad, prompt in zip(pads, prompts, strict=True)], device=device)
        starts = torch.tensor(pads, device=device)[:, None]
        positions = torch.arange(length, device=device)[None] - starts
        padding = positions >= 0 if any(pads) else None
        observer = PromptObserver(self.attention, self.history, padding)
        output = self.model(
            input_ids=ids,
            attention_mask=None if padding is None else padding.long(),
            position_ids=positions.clamp(min=0),
            use_cache=False,
            logits_to_keep=1,
            zoomr=observer,
        )
        self.shape, self.scaling = observer.shape(self.model), observer.scaling
        layers = [observer.kv[layer] for layer in sorted(observer.kv)]
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


def received_attention(query: Tensor, key: Tensor, padding: Tensor | None, scaling: float) -> Tensor:
    """Attention that each prompt token receives from all prompt queries, in blocks of queries, never a square matrix.

    Parameters
    ----------
    query : (U, Hq, T, d)
    key : (U, H, T, d)
    padding : (U, T) bool or None

    Returns
    -------
    (U, H, T), float32
        Summed over the queries and the query heads of each KV head.
    """
    prompts, heads, length, width = query.shape
    kv_heads = key.shape[1]
    received = torch.zeros(prompts, kv_heads, length, device=query.device)
    positions = torch.arange(length, device=query.device)
    for start in range(0, length, QUERY_BLOCK):
        block = query[:, :, start : start + QUERY_BLOCK]
        size = block.shape[2]
        grouped = block.reshape(prompts, kv_heads, heads // kv_heads * size, width)
        scores = (grouped @ key.transpose(-1, -2)).float().view(prompts, kv_heads, -1, size, length) * scaling
        hidden = positions[None] > positions[start : start + size, None]
        if padding is not None:
            hidden = hidden | ~padding[:, None, None, None, :]
        weights = torch.nan_to_num(torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1))
        if padding is not None:
            weights = weights * padding[:, None, None, start : start + size, None]
        received += weights.sum(dim=(2, 3))
    return received


def owned(prompt: Prefilled) -> Prefilled:
    """A copy that does not hold the whole batch it was made in."""
    return replace(
        prompt,
        keys=[keys.clone() for keys in prompt.keys],
        values=[values.clone() for values in prompt.values],
        logits=prompt.logits.clone(),
        received=None if prompt.received is None else prompt.received.clone(),
        queries=None if prompt.queries is None else prompt.queries.clone(),
    )
