"""Fit a learned index to targets, and count how often it finds them."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from zoomr.summaries.index import LearnedIndex


@dataclass(frozen=True)
class Example:
    """One row at one layer.

    Attributes
    ----------
    queries, keys : Tensor
        Hidden states of boundaries (S, h) and of summary ends (N, h).
    candidates : Tensor
        Summaries that are finished at a boundary, (S, N) bool.
    shares, weights : Tensor
        The target: a distribution over the summaries of each boundary (S, N), and how much the boundary counts (S,).
    """

    queries: Tensor
    keys: Tensor
    candidates: Tensor
    shares: Tensor
    weights: Tensor


def fit(examples: list[Example], layer: int, rank: int, epochs: int, rate: float, seed: int) -> LearnedIndex:
    """Fit the two projections by cross-entropy, weighted by boundary.

    Parameters
    ----------
    examples : list of Example
        Not empty.
    layer : int
        Where their hidden states are from.
    rank : int
        Of the score.
    epochs : int
        Times that every row is seen.
    rate : float
        Learning rate of Adam at its start; it falls to zero along a cosine.
    seed : int
        Of the projections' start and of the rows' order.
    """
    generator = torch.Generator().manual_seed(seed)
    width = examples[0].queries.shape[1]
    query, key = (torch.randn(rank, width, generator=generator) / (width * rank**0.5) ** 0.5 for _ in "qk")
    index = LearnedIndex(layer, query.requires_grad_(), key.requires_grad_())
    optimizer = torch.optim.AdamW([query, key], lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * -(-len(examples) // ROWS))
    for _ in range(epochs):
        order = torch.randperm(len(examples), generator=generator).tolist()
        for first in range(0, len(order), ROWS):
            batch = [examples[row] for row in order[first : first + ROWS]]
            loss = sum(_loss(index, example) for example in batch) / sum(example.weights.sum() for example in batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return LearnedIndex(layer, query.detach(), key.detach())


ROWS = 8  # of a step


def scores(index: LearnedIndex, example: Example) -> Tensor:
    """Scores of every boundary's finished summaries, (S, N); -inf for the others."""
    keys = index.keys(example.keys).expand(len(example.queries), -1, -1)
    return index.scores(example.queries, keys).masked_fill(~example.candidates, float("-inf"))


@torch.no_grad()
def hits(index: LearnedIndex, examples: Iterable[Example], places: tuple[int, ...] = (1, 2, 3)) -> list[float]:
    """Return the share of the target that lies among the first c, weighted by boundary, for each c of `places`."""
    found, whole = torch.zeros(len(places)), torch.tensor(0.0)
    for example in examples:
        best = scores(index, example).argsort(dim=1, descending=True, stable=True)
        ranked = example.shares.gather(1, best).cumsum(1)
        found += torch.stack([example.weights @ ranked[:, min(c, ranked.shape[1]) - 1] for c in places])
        whole += example.weights.sum()
    return (found / whole.clamp(min=1e-12)).tolist()


def _loss(index: LearnedIndex, example: Example) -> Tensor:
    chances = scores(index, example).log_softmax(1).masked_fill(~example.candidates, 0)
    return -(example.weights * (example.shares * chances).sum(1)).sum()
