"""The arithmetic of a refresh: mean summary keys, votes, consensus, index sets (paper, section 3.3, algorithm 1).

Letters used in shapes: L layers, R rows, Hq query heads, H KV heads, N summaries, T positions, d head dimension.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


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
    layers, rows, query_heads, width = queries.shape
    kv_heads, summaries = means.shape[2], means.shape[3]
    grouped = queries.float().reshape(layers, rows, kv_heads, query_heads // kv_heads, width)
    scores = grouped @ means.float().transpose(-1, -2)
    allowed = candidates[None, :, None, None, :]
    if voters is not None:
        allowed = allowed & voters.reshape(layers, 1, kv_heads, -1, 1)
    scores = scores.masked_fill(~allowed, float("-inf"))
    if per_kv_head:
        scores, allowed = scores.amax(dim=3, keepdim=True), allowed.any(dim=3, keepdim=True)
    weights = torch.nan_to_num(torch.softmax(scores.double() * scaling, dim=-1))  # without candidates all are -inf
    chosen = scores.topk(min(k, summaries), dim=-1).indices
    ballots = torch.zeros_like(weights).scatter_(-1, chosen, 1.0) * allowed
    counts = ballots * weights if weighted else ballots
    return Votes(counts.sum(dim=(0, 2, 3)), weights.sum(dim=(0, 2, 3)))


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


def label_positions(edges: Tensor, length: int) -> Tensor:
    """Segment label of each position: the number of edges at or before it (see `SegmentTracker`).

    Parameters
    ----------
    edges : (R, E) int64
        Ascending; rows of fewer edges are filled with a number beyond every position.
    length : int
        Number of positions, T.

    Returns
    -------
    (R, T) int64
    """
    positions = torch.arange(length, device=edges.device).expand(edges.shape[0], length)
    return torch.searchsorted(edges, positions.contiguous(), right=True)


def active_positions(
    labels: Tensor,
    last: Tensor,
    finished: Tensor,
    zoomed: Tensor,
    shown: Tensor,
    window: int,
    keep_open: bool = False,
) -> Tensor:
    """The index set I_f = I_p + I_w + R_i of the zoomed + S_i of the shown (paper, section 3.3).

    Parameters
    ----------
    labels : (R, T) int64
        Segment labels of the positions.
    last : (R,) int64
        Position of the newest token; later positions are never active.
    finished : (R,) int64
        Number of finished summaries; the segment of that index is the open one.
    zoomed, shown : (R, N) bool
        Segments present as paragraph, and as summary.
    window : int
        The last `window` tokens, `last` included.
    keep_open : bool
        Keep the whole of the unfinished paragraph (and summary).

    Returns
    -------
    (R, T) bool
    """
    rows, summaries = zoomed.shape
    present = torch.zeros(rows, 2 * summaries + 3, dtype=torch.bool, device=labels.device)
    present[:, 0] = True
    present[:, 1 : 2 * summaries + 1 : 2] = zoomed
    present[:, 2 : 2 * summaries + 2 : 2] = shown
    if keep_open:
        open_paragraph = 2 * finished[:, None] + 1
        present.scatter_(1, torch.cat([open_paragraph, open_paragraph + 1], dim=1), True)
    positions = torch.arange(labels.shape[1], device=labels.device)
    in_window = positions > last[:, None] - window
    return (present.gather(1, labels) | in_window) & (positions <= last[:, None])
