"""Control: evict at random, one draw a KV head (arXiv 2609.03430)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from zoomr.policies.base import Scope, SlotView
from zoomr.policies.budgeted import Budgeted
from zoomr.policies.checks import whole


@dataclass(frozen=True, kw_only=True)
class RandomAttention(Budgeted):
    """Every `interval` tokens, keep a random part of the budget and the last `recent` tokens.

    With `keep_prompt`, this is the null method that any selector should beat.

    Parameters
    ----------
    interval, recent : int
    """

    interval: int = 64  # type: ignore[misc]
    recent: int = 64

    scope: ClassVar[Scope] = "head"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self, 1, "interval", "recent")

    def keep_last(self, prompt: int) -> int:
        """The last `recent` tokens."""
        return self.recent

    def rank(self, view: SlotView) -> Tensor:
        """A number for each position, drawn from the row's seed: the same wherever the KV is stored."""
        layers, _, heads, _ = view.present.shape  # all layers at once, so that one generator serves a row
        draws = []
        for seed, last in zip(view.seeds, view.last.flatten().tolist(), strict=True):
            generator = torch.Generator().manual_seed(seed)
            draws.append(torch.rand(layers, heads, last + 1, generator=generator).to(view.present.device))
        width = max(draw.shape[-1] for draw in draws)
        drawn = torch.stack([torch.nn.functional.pad(draw, (0, width - draw.shape[-1])) for draw in draws], dim=1)
        return drawn.gather(-1, view.positions.expand(view.present.shape).clamp(max=width - 1))
