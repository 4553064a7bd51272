"""The full cache, on the device or offloaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from zoomr.policies.base import Needs, Scope, SlotView


@dataclass(frozen=True, kw_only=True)
class Full:
    """Drop nothing."""

    recalls: ClassVar[bool] = False
    offloads: ClassVar[bool] = False
    needs: ClassVar[Needs] = Needs.NOTHING
    scope: ClassVar[Scope] = "shared"
    interval: ClassVar[int] = 1
    history: ClassVar[int] = 0
    tokens: ClassVar[int | None] = None
    protected: ClassVar[int] = 0
    reassigns: ClassVar[bool] = False

    def first(self, prompt: int) -> int:
        """Nothing is reserved where nothing is dropped."""
        return 0

    def spared(self, view: SlotView) -> Tensor:
        """Everything."""
        return view.present

    def rank(self, view: SlotView) -> Tensor:
        """All the same."""
        return torch.zeros_like(view.positions, dtype=torch.float32)


@dataclass(frozen=True, kw_only=True)
class FullOffload(Full):
    """Drop nothing, and keep all KVs on the host: two layers at a time are on the device."""

    offloads: ClassVar[bool] = True
