"""An extension of the paper, off by default: heads also learn to vote for where attention will look.

The paper's fine-tuning leaves votes as they come. Here, at each boundary, every head's scores over the finished
summaries are drawn towards the share of attention, over all layers and heads, that the tokens up to the next boundary
give to each segment outside the window: as DeepSeek-V3.2 trains its indexer (arXiv 2512.02556, section 2.1), with the
attention's own queries and keys in the indexer's place. It needs no labels but the trace itself.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase
from trl import SFTTrainer

from train.preflight import IGNORED
from zoomr.compat import sdpa_attention_forward
from zoomr.segments import SegmentTracker, boundary_table, delimiter_ids
from zoomr.selection import label_positions

QUERY_BLOCK = 256


@dataclass(frozen=True)
class Ballots:
    """The votes that one row is to hold: B boundaries with at least two finished summaries, N summaries, T tokens.

    Attributes
    ----------
    boundaries : (B,) int64
        Positions that vote.
    finished : (B, N) bool
        The summaries that each may vote for.
    averaging : (N, T) float32
        Takes keys to mean keys.
    segments : (T, N) float32
        One where a position lies in a segment: paragraph or summary.
    turns : (T,) int64
        The last voting boundary before each position, as an index into `boundaries`; -1 before the first.
    """

    boundaries: Tensor
    finished: Tensor
    averaging: Tensor
    segments: Tensor
    turns: Tensor

    @classmethod
    def of(cls, ids: list[int], prompt: int, delimiters: tuple[int, int], endings: Collection[int]) -> "Ballots":
        """Read a row of token ids, of which the first `prompt` are the prompt."""
        tracker = SegmentTracker(prompt, *delimiters)
        boundaries, finished = [], []
        for position in range(prompt, len(ids)):
            tracker.push(ids[position], position)
            if ids[position] in endings and tracker.finished > 1:
                boundaries.append(position)
                finished.append(tracker.finished)
        number, length = tracker.finished, len(ids)
        averaging = torch.zeros(number, length)
        for summary, (start, stop) in enumerate(tracker.inner):
            averaging[summary, start:stop] = 1 / (stop - start)
        labels = label_positions(torch.tensor([tracker.edges]), length)[0]
        segments = ((labels[:, None] - 1) // 2 == torch.arange(number)) & (labels > 0)[:, None]
        places = torch.tensor(boundaries, dtype=torch.int64)
        turns = torch.searchsorted(places, torch.arange(length)) - 1
        can_vote = torch.arange(number) < torch.tensor(finished, dtype=torch.int64)[:, None]
        return cls(places, can_vote, averaging, segments.float(), turns)

    def to(self, device: torch.device) -> "Ballots":
        """The same on a device."""
        return Ballots(**{name: tensor.to(device) for name, tensor in vars(self).items()})


class VoteLoss:
    """What a forward carries to the attention layers: it attends as ever, and notes scores and attention.

    Parameters
    ----------
    rows : list of Ballots
        One a row of the batch.
    window : int
        The last tokens, which need no vote.
    """

    def __init__(self, rows: list[Ballots], window: int):
        self.rows, self.window = rows, window
        self.log_scores: list[Any] = [0.0] * len(rows)  # (B, N), summed over layers and heads
        self.attention: list[Any] = [0.0] * len(rows)  # (B, N), likewise
        self.heads = 0

    def attend(
        self, module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> Tensor:
        """See `zoomr.attention.Observer.attend`."""
        self.heads += query.shape[1]
        for row, ballots in enumerate(self.rows):
            if len(ballots.boundaries):
                length = len(ballots.turns)
                queries, keys = query[row, :, :length].float(), key[row, :, :length].float()
                keys = keys.repeat_interleave(query.shape[1] // key.shape[1], dim=0)
                self.log_scores[row] += log_scores(queries, keys, ballots, scaling)
                self.attention[row] += looked_at(queries.detach(), keys.detach(), ballots, scaling, self.window)
        return sdpa_attention_forward(module, query, key, value, mask, scaling=scaling)[0]

    def value(self) -> Tensor:
        """Mean cross-entropy over boundaries, weighted by how much of the attention leaves the window, and heads."""
        loss, weight = torch.zeros(()), torch.zeros(())
        for scores, attention in zip(self.log_scores, self.attention, strict=True):
            if isinstance(attention, Tensor):
                loss = loss - (attention * scores).sum() / self.heads
                weight = weight + attention.sum()
        return loss / weight.clamp(min=torch.finfo(torch.float32).tiny)


def log_scores(queries: Tensor, keys: Tensor, ballots: Ballots, scaling: float) -> Tensor:
    """Log-softmax of the boundaries' scores over the summaries, summed over heads; 0 where there is no summary yet.

    Parameters
    ----------
    queries, keys : (Hq, T, d)
    ballots : Ballots
    scaling : float

    Returns
    -------
    (B, N)
    """
    scores = queries[:, ballots.boundaries] @ (ballots.averaging @ keys).transpose(-1, -2) * scaling
    logs = scores.masked_fill(~ballots.finished, float("-inf")).log_softmax(dim=-1)
    return logs.masked_fill(~ballots.finished, 0.0).sum(dim=0)


def looked_at(queries: Tensor, keys: Tensor, ballots: Ballots, scaling: float, window: int) -> Tensor:
    """Attention that the tokens after each boundary, up to the next, give to its finished segments outside the window.

    Parameters
    ----------
    queries, keys : (Hq, T, d)
    ballots : Ballots
    scaling : float
    window : int

    Returns
    -------
    (B, N)
        Summed over tokens and heads.
    """
    found = torch.zeros(ballots.finished.shape, device=queries.device)
    positions = torch.arange(queries.shape[1], device=queries.device)
    first = int(ballots.boundaries[0]) + 1
    for start in range(first, queries.shape[1], QUERY_BLOCK):
        block, seen = positions[start : start + QUERY_BLOCK], positions[: start + QUERY_BLOCK]
        turns = ballots.turns[block]
        scores = queries[:, block] @ keys[:, seen].transpose(-1, -2) * scaling
        weights = scores.masked_fill(seen > block[:, None], float("-inf")).softmax(dim=-1).sum(dim=0)
        outside = seen <= ballots.boundaries[turns][:, None] - window
        found.index_add_(0, turns, (weights * outside) @ ballots.segments[seen])
    return found * ballots.finished


class VoteTrainer(SFTTrainer):
    """TRL's trainer with the loss above added, `weight` times, to each training batch."""

    def __init__(self, *args: Any, weight: float, window: int, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.weight, self.window = weight, window
        tokenizer = self.processing_class
        assert isinstance(tokenizer, PreTrainedTokenizerBase)
        begin, end = delimiter_ids(tokenizer)
        assert begin is not None and end is not None
        self.delimiters, self.endings = (begin, end), boundary_table(tokenizer)
        model: Any = self.model
        model.set_attn_implementation("zoomr")

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Add the votes' loss while training; evaluation reports the plain one."""
        if not model.training:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        votes = VoteLoss(
            [self._ballots(*row) for row in zip(inputs["input_ids"], inputs["labels"], strict=True)], self.window
        )
        loss = super().compute_loss(model, inputs | {"zoomr": votes}, num_items_in_batch=num_items_in_batch)
        # the trainer sums the losses of one optimizer step when it counts the step's tokens
        share = self.weight / (self.current_gradient_accumulation_steps if num_items_in_batch is not None else 1)
        return loss + share * votes.value().to(loss.device)

    def _ballots(self, ids: Tensor, labels: Tensor) -> Ballots:
        supervised = (labels != IGNORED).nonzero()[:, 0]
        row = ids[: int(supervised[-1]) + 1].tolist()
        return Ballots.of(row, int(supervised[0]), self.delimiters, self.endings).to(ids.device)
