"""Teach the heads to vote for the paragraph they look at: our extension, off unless `sft.vote_loss` is set.

The paper's fine-tuning leaves to chance what a head's query says of the summaries. Here every head is also asked, at
each boundary, to give its vote to the summary of the paragraph outside the window on which attention falls most: the
model's own full attention is the teacher, so neither a label nor a second forward is needed. A boundary counts by the
square of that attention, since most look at nothing in particular. Selection and decoding are unchanged.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from train.preflight import IGNORED
from zoomr import ZoomR
from zoomr.compat import sdpa_attention_forward
from zoomr.rows import Request, Row
from zoomr.runs import UserError
from zoomr.segments import boundary_table, delimiter_ids
from zoomr.selection import label_positions, mean_key


class Sight:
    """Attends as ever, and keeps each layer's queries (B, Hq, T, d) and keys (B, H, T, d)."""

    def __init__(self) -> None:
        self.queries: list[Tensor] = []
        self.keys: list[Tensor] = []
        self.scaling = 1.0

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `Observer.attend`."""
        self.queries.append(query)
        self.keys.append(key)
        self.scaling = scaling
        return sdpa_attention_forward(module, query, key, value, mask, scaling=scaling)[0]


class VoteLoss:
    """Hooks that watch training forwards, and the loss of the votes in the latest.

    Parameters
    ----------
    weight : float
        Of the loss.
    policy : ZoomR
        Says where votes are asked for, and what lies in the window and needs none.
    tokenizer
        With the summaries' delimiters.
    """

    def __init__(self, weight: float, policy: ZoomR, tokenizer: Any):
        self.weight = weight
        self.policy = policy
        self.boundaries = boundary_table(tokenizer)
        self.delimiters = delimiter_ids(tokenizer)
        self.seen: tuple[Sight, Tensor, Tensor] | None = None

    def install(self, model: Any) -> None:
        """Hook onto a transformers causal language model.

        Raises
        ------
        UserError
            With gradient checkpointing, whose first forward keeps no gradient of queries and keys.
        """
        if model.is_gradient_checkpointing:
            raise UserError("sft.vote_loss needs sft.gradient_checkpointing=false.")
        model.set_attn_implementation("zoomr")
        model.register_forward_pre_hook(self.watch, with_kwargs=True)

    def watch(self, model: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
        """Look on at a training forward of `input_ids` and `labels` (B, T)."""
        if not model.training:
            return None
        sight = Sight()
        self.seen = sight, kwargs["input_ids"], kwargs["labels"]
        return args, kwargs | {"zoomr": sight}

    def weighed(self) -> Tensor:
        """The loss of the latest forward times its weight; what was seen is forgotten."""
        assert self.seen is not None
        seen, self.seen = self.seen, None
        return self.weight * self.loss(*seen)

    def loss(self, sight: Sight, input_ids: Tensor, labels: Tensor) -> Tensor:
        """Mean surprise of the heads' votes at the paragraphs looked at, weighed by the squared attention on them."""
        surprise = attention = sight.keys[0].new_zeros(())
        for index, (ids, known) in enumerate(zip(input_ids.tolist(), (labels != IGNORED).tolist(), strict=True)):
            prompt, end = known.index(True), len(known) - known[::-1].index(True)
            row, due = self._follow(ids[:end], prompt)
            if due:
                queries = torch.stack([layer[index] for layer in sight.queries])
                keys = torch.stack([layer[index, :, :end] for layer in sight.keys])
                own, fallen = self._row(queries, keys, sight.scaling, row, due)
                surprise, attention = surprise + own, attention + fallen
        return surprise / attention.clamp(min=torch.finfo(attention.dtype).tiny)

    def _follow(self, ids: list[int], prompt: int) -> tuple[Row, list[tuple[int, int]]]:
        """The row at its end, and position and finished summaries of each refresh that has something to vote for."""
        row = Row.start(Request(0, 0, 0, ids[:prompt], len(ids) - prompt, True), self.delimiters, ids[prompt:])
        due = []
        for row.position in range(prompt, len(ids)):
            row.token = ids[row.position]
            row.feed(self.boundaries)
            if self.policy.due(row):
                row.since = 0
                if row.tracker.finished:
                    due.append((row.position, row.tracker.finished))
        return row, due

    def _row(
        self, queries: Tensor, keys: Tensor, scaling: float, row: Row, due: list[tuple[int, int]]
    ) -> tuple[Tensor, Tensor]:
        """Summed weighed surprise and summed weights of a row, from its queries (L, Hq, T, d) and keys (L, H, T, d)."""
        last, finished = torch.tensor(due, device=keys.device).unbind(1)
        layers, kv_heads, length, width = keys.shape
        spans = [row.tracker.key_span(n, self.policy.with_delimiters) for n in range(due[-1][1])]
        means = torch.stack([mean_key(keys[:, :, start:stop]) for start, stop in spans], dim=2)
        asked = queries[:, :, last].float().reshape(layers, kv_heads, -1, len(due), width)
        scores = asked @ means[:, :, None].transpose(-1, -2) * scaling
        unwritten = torch.arange(len(spans), device=keys.device) >= finished[:, None]
        votes = scores.masked_fill(unwritten, float("-inf")).log_softmax(-1).mean((0, 1, 2))

        edges = torch.tensor([row.tracker.edges], device=keys.device)
        with torch.no_grad():
            future = torch.arange(length, device=keys.device) > last[:, None]
            looks = (asked @ keys[:, :, None].float().transpose(-1, -2) * scaling).masked_fill(future, float("-inf"))
            received = looks.softmax(-1).mean((0, 1, 2))
            bins = received.new_zeros(len(due), 2 * len(spans) + 3)
            labels = label_positions(edges, length).clamp(max=2 * len(spans) + 2)
            bins.scatter_add_(1, labels.expand(len(due), -1), received)
            near = edges[:, 1 : 2 * len(spans) + 1 : 2] > last[:, None] - self.policy.window
            most = bins[:, 1 : 2 * len(spans) + 1 : 2].masked_fill(unwritten | near, 0).max(-1)
            weights = most.values**2
        surprise = -votes.gather(1, most.indices[:, None])[:, 0]
        return (weights * surprise).sum(), weights.sum()
