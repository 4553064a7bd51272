"""The arithmetic of a refresh: mean summary keys, votes, consensus (paper, section 3.3, algorithm 1).

Letters used in shapes: L layers, R rows, Hq query heads, H KV heads, N summaries, T positions, d head dimension.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

ROUNDING = 1e-4  # votes that float32 may make of nothing, summed over the heads of a large model


@dataclass(frozen=True)
class Votes:
    """What the heads say about the N summaries of R rows.

    `counts` (R, N), float64, is the number of votes (or their summed weights); `mass` (R, N), float64, is the summed
    softmax of the scores, which decides between summaries of equal counts.
    """

    counts: Tensor
    mass: Tensor


def mean_key(keys: Tensor) -> Tensor:
    """Mean over the tokens of a summary, accumulated in fp32: (L, H, n, d) -> (L, H, d)."""
    return keys.float().mean(dim=-2)


def count_votes(
    queries: Tensor,
    means: Tensor,
    candidates: Tensor,
    k: int,
    scaling: float,
    weighted: bool = False,
    per_kv_head: bool = False,
    voters: Tensor | None = None,
) -> Votes:
    """Let every head of every layer vote for the k summaries with the largest q . mean key.

    Parameters
    ----------
    queries : (L, R, Hq, d)
        Queries of the boundary token, after the rotation.
    means : (L, R, H, N, d)
        Mean summary keys, one set per KV head; query head h reads KV head h // (Hq / H).
    candidates : (R, N) bool
        Summaries that may be voted for.
    k : int
        Votes per head.
    scaling : float
        The attention's own factor, used by the softmax alone.
    weighted : bool
        A vote counts as the softmax weight of its score instead of 1.
    per_kv_head : bool
        One vote per KV head, by the largest score in its group of query heads.
    voters : (L, Hq) bool or None
        Query heads that vote; None: all.

    Returns
    -------
    Votes
    """
    scores, allowed = _scores(queries, means, candidates, voters)
    if per_kv_head:
        scores, allowed = scores.amax(dim=3, keepdim=True), allowed.any(dim=3, keepdim=True)
    weights = _softmax(scores, scaling)
    chosen = scores.topk(min(k, scores.shape[-1]), dim=-1).indices
    ballots = torch.zeros_like(weights).scatter_(-1, chosen, 1.0) * allowed
    counts = ballots * weights if weighted else ballots
    return Votes(counts.sum(dim=(0, 2, 3)), weights.sum(dim=(0, 2, 3)))


def contrast_votes(
    queries: Tensor,
    habits: Tensor,
    means: Tensor,
    candidates: Tensor,
    scaling: float,
    per_kv_head: bool = False,
    voters: Tensor | None = None,
) -> Votes:
    """What the heads ask for beyond their habit: sum over heads of softmax(q . mean key) - softmax(q' . mean key).

    A head that asks the same at every boundary has no say.

    Parameters
    ----------
    queries, means, candidates, scaling, per_kv_head, voters
        See `count_votes`.
    habits : (L, R, Hq, d)
        q', the head's mean query at earlier boundaries, rotated for the present position; zero where there were none.

    Returns
    -------
    Votes
        Contrast as counts and as mass; those of a row sum to zero.
    """
    asked = []
    for one in (queries, habits):
        scores, _ = _scores(one, means, candidates, voters)
        asked.append(_softmax(scores.amax(dim=3, keepdim=True) if per_kv_head else scores, scaling))
    contrast = (asked[0] - asked[1]).sum(dim=(0, 2, 3))
    contrast = torch.where(contrast.abs() > ROUNDING, contrast, 0.0)
    return Votes(contrast, contrast)


def _scores(queries: Tensor, means: Tensor, candidates: Tensor, voters: Tensor | None) -> tuple[Tensor, Tensor]:
    """Scores (L, R, H, Hq / H, N), -inf where a head may not vote, and where it may."""
    layers, rows, query_heads, width = queries.shape
    kv_heads = means.shape[2]
    grouped = queries.float().reshape(layers, rows, kv_heads, query_heads // kv_heads, width)
    allowed = candidates[None, :, None, None, :]
    if voters is not None:
        allowed = allowed & voters.reshape(layers, 1, kv_heads, -1, 1)
    return (grouped @ means.float().transpose(-1, -2)).masked_fill(~allowed, float("-inf")), allowed


def _softmax(scores: Tensor, scaling: float) -> Tensor:
    # without candidates all scores are -inf
    return torch.nan_to_num(torch.softmax(scores.double() * scaling, dim=-1))


def top_segments(rank: Tensor, tie: Tensor, eligible: Tensor, c: int) -> Tensor:
    """The c eligible segments of largest rank; equal ranks by larger `tie`, then by the more recent segment.

    Parameters
    ----------
    rank, tie : (R, N)
    eligible : (R, N) bool
    c : int

    Returns
    -------
    (R, N) bool
        At most c true entries a row; fewer where fewer are eligible.
    """
    # stable sorts from the least to the most significant key, over the reversed index (recent first)
    order = torch.arange(rank.shape[1] - 1, -1, -1, device=rank.device).expand_as(rank)
    for key in (tie, rank, eligible.to(rank.dtype)):
        step = key.gather(1, order).sort(dim=1, descending=True, stable=True).indices
        order = order.gather(1, step)
    chosen = torch.zeros_like(eligible).scatter_(1, order[:, :c], True)
    return chosen & eligible
