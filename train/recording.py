"""What a learned index is fitted to: one row under full attention, seen at its boundaries and summary ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from train.preflight import IGNORED
from zoomr.summaries.index import decoder_layers
from zoomr.summaries.segments import SegmentTracker

QUERIES = 256  # whose attention is looked at together


@dataclass(frozen=True)
class Places:
    """Where the segments of a row are.

    Attributes
    ----------
    length, prompt : int
        Tokens of the row and of its prompt.
    boundaries : list of int
        Positions of boundary tokens before which at least two summaries were finished, and after which the row goes on.
    finished : list of int
        Finished summaries at each of them.
    stops : list of int
        Where the span of each ends: before the next boundary's, and after at most so many tokens.
    paragraphs : list of range
        Positions of each paragraph that has a finished summary.
    ends : list of int
        Position of the last token of each finished summary.
    """

    length: int
    prompt: int
    boundaries: list[int]
    finished: list[int]
    stops: list[int]
    paragraphs: list[range]
    ends: list[int]

    def candidates(self) -> Tensor:
        """Which summaries are finished at which boundary, (S, N) bool."""
        return torch.arange(len(self.ends)) < torch.tensor(self.finished)[:, None]

    def spans(self) -> Tensor:
        """Boundary whose span each position is in, (T,); S where it is in none."""
        spans = torch.full((self.length,), len(self.boundaries))
        for number, (boundary, stop) in enumerate(zip(self.boundaries, self.stops, strict=True)):
            spans[boundary + 1 : stop] = number
        return spans

    def members(self) -> Tensor:
        """Which paragraph each position is in, (T, N) float."""
        members = torch.zeros(self.length, len(self.paragraphs))
        for number, paragraph in enumerate(self.paragraphs):
            members[paragraph.start : paragraph.stop, number] = 1
        return members


@dataclass(frozen=True)
class Recording:
    """A row as an index sees it.

    Attributes
    ----------
    places : Places
    queries : Tensor
        Hidden states of the boundary tokens, one entry a layer, (L, S, h).
    keys : Tensor
        Those of the summaries' last tokens, (L, N, h).
    evidence : Tensor
        What the target is made of, (S, N).
    """

    places: Places
    queries: Tensor
    keys: Tensor
    evidence: Tensor


def places(
    row: dict[str, Any], boundary_tokens: frozenset[int], delimiters: tuple[int | None, int | None], span: int
) -> Places:
    """Find the segments of a built row (`input_ids`, `labels`); a span has at most `span` tokens."""
    ids, prompt = row["input_ids"], next(i for i, label in enumerate(row["labels"]) if label != IGNORED)
    tracker = SegmentTracker(prompt, *delimiters)
    found = []
    for position in range(prompt, len(ids) - 1):
        tracker.push(ids[position], position)
        if ids[position] in boundary_tokens and tracker.finished >= 2:
            found.append((position, tracker.finished))
    boundaries, finished = [position for position, _ in found], [count for _, count in found]
    following = [*boundaries[1:], len(ids) - 1]
    edges = tracker.edges
    return Places(
        length=len(ids),
        prompt=prompt,
        boundaries=boundaries,
        finished=finished,
        stops=[min(b + 1 + span, after + 1) for b, after in zip(boundaries, following, strict=True)],
        paragraphs=[range(edges[2 * n], edges[2 * n + 1]) for n in range(tracker.finished)],
        ends=[edges[2 * n + 2] - 1 for n in range(tracker.finished)],
    )


@dataclass
class Mass:
    """Watches how much attention each span gives to each paragraph.

    For every head that is the most that one token of the span gives, since a look-up takes a token or two; `total`,
    (S, N), sums over all heads of all layers.
    """

    places: Places
    device: torch.device
    total: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.total = torch.zeros(len(self.places.boundaries) + 1, len(self.places.ends), device=self.device)
        self.members = self.places.members().to(self.device)
        self.spans = self.places.spans().to(self.device)

    def attend(self, module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, scaling: float) -> Tensor:
        """Attend to all before, and note the mass; query (1, Hq, T, d), key and value (1, H, T, d)."""
        keys = key[0].repeat_interleave(query.shape[1] // key.shape[1], dim=0).transpose(1, 2)
        positions = torch.arange(key.shape[2], device=self.device)
        most = self.total.new_zeros(query.shape[1], *self.total.shape)
        for start in range(0, query.shape[2], QUERIES):
            block = slice(start, start + QUERIES)
            later = positions > positions[block, None]
            weights = ((query[0, :, block] @ keys) * scaling).masked_fill(later, float("-inf")).softmax(-1)
            given = weights.float() @ self.members
            most.scatter_reduce_(1, self.spans[block, None].expand_as(given), given, "amax")
        self.total += most.sum(0)
        return sdpa_attention_forward(module, query, key, value, mask, scaling=scaling)[0]


@dataclass
class Bias:
    """Adds to the attention that each span gives to each paragraph a bias of its own, zero and to be differentiated."""

    places: Places
    device: torch.device
    bias: Tensor = field(init=False)

    def __post_init__(self) -> None:
        inside = F.one_hot(self.places.spans(), len(self.places.boundaries) + 1)[:, :-1].float().to(self.device)
        self.bias = torch.zeros(
            len(self.places.boundaries), len(self.places.ends), device=self.device, requires_grad=True
        )
        future = torch.ones(self.places.length, self.places.length, dtype=torch.bool, device=self.device).triu(1)
        spread = inside @ self.bias @ self.places.members().to(self.device).T
        self.added = spread.masked_fill(future, float("-inf"))

    def attend(self, module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, scaling: float) -> Tensor:
        """Attend to all before with the bias added; query (1, Hq, T, d), key and value (1, H, T, d)."""
        added = self.added.to(query.dtype)[None, None]
        return sdpa_attention_forward(module, query, key, value, added, scaling=scaling, is_causal=False)[0]


def record(model: Any, row: dict[str, Any], where: Places, layers: list[int], gradient: bool = False) -> Recording:
    """Run a row through a model that `prepare` has readied.

    Parameters
    ----------
    model : PreTrainedModel
    row : dict
        With `input_ids`.
    where : Places
        Of this row.
    layers : list of int
        Decoder layers whose hidden states are kept.
    gradient : bool
        Evidence is by how much the loss of a span would fall with more attention to a paragraph; otherwise the
        attention itself.
    """
    ids = torch.tensor([row["input_ids"]], device=model.device)
    hidden: dict[int, Tensor] = {}

    def keep(layer: int) -> Any:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            hidden[layer] = (output[0] if isinstance(output, tuple) else output)[0].detach()

        return hook

    parts = decoder_layers(model)
    hooks = [parts[layer].register_forward_hook(keep(layer)) for layer in layers]
    if gradient:
        watch: Any = Bias(where, model.device)
        logits = model(ids, use_cache=False, watch=watch).logits[0, where.prompt : -1].float()
        loss = F.cross_entropy(logits, ids[0, where.prompt + 1 :], reduction="sum")
        evidence = -torch.autograd.grad(loss, watch.bias)[0]
    else:
        watch = Mass(where, model.device)
        with torch.no_grad():
            model(ids, use_cache=False, watch=watch, logits_to_keep=1)
        evidence = watch.total[:-1]
    for hook in hooks:
        hook.remove()
    queries = torch.stack([hidden[layer][where.boundaries] for layer in layers])
    keys = torch.stack([hidden[layer][where.ends] for layer in layers])
    return Recording(where, queries.cpu(), keys.cpu(), evidence.cpu())


def prepare(model: Any) -> None:
    """Freeze a model and let its attention be watched."""
    AttentionInterface.register("watched", _watched)
    AttentionMaskInterface.register("watched", sdpa_mask)
    model.set_attn_implementation("watched")
    model.eval().requires_grad_(False)


def _watched(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    watch: Mass | Bias,
    **_: Any,
) -> tuple[Tensor, None]:
    return watch.attend(module, query, key, value, attention_mask, scaling), None
