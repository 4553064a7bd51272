"""Sets of positions as spans, each of a kind."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

KINDS = ("prompt", "window", "zoomed", "summary", "conclusion", "other")
PROMPT, WINDOW, ZOOMED, SUMMARY, CONCLUSION, OTHER = range(len(KINDS))

Span = tuple[int, int, int]  # first position, position after the last, kind


def label_spans(spans: Sequence[Span], length: int) -> Tensor:
    """Kind of each of the first `length` positions, (T,) int8; -1 for none, the first span's where several overlap."""
    labels = torch.full((length,), -1, dtype=torch.int8)
    for start, stop, kind in reversed(spans):
        labels[start:stop] = kind
    return labels


def count_kinds(spans: Sequence[Span], length: int) -> list[float]:
    """Positions of each kind among the first `length`."""
    return torch.bincount(label_spans(spans, length).long() + 1, minlength=len(KINDS) + 1)[1:].tolist()
