"""Quest: attend to the pages whose keys could answer the query best (Tang et al., arXiv 2406.10774)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from zoomr.policies.base import Keeps, Reading, Site, State
from zoomr.policies.checks import flags, whole
from zoomr.policies.views import Clock, Resident
from zoomr.tiers.base import resized

FEWEST = 3  # pages, as in the authors' code


@dataclass(frozen=True, kw_only=True)
class Quest(Keeps):
    """Each query head attends, at each step, to the pages of highest bounds on their scores; nothing is dropped.

    The newest page is always among them, as in the authors' kernels; their evaluation code ranks it like the others.

    Parameters
    ----------
    attended : int
        Tokens that a query head attends to: whole pages, three at least.
    page : int
        Tokens a page.
    full_layers : int
        First layers that attend to everything.
    newest : bool
        The newest page is always attended to.
    """

    attended: int = 1024
    page: int = 16
    full_layers: int = 2
    newest: bool = True

    chooses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(self, 1, "attended", "page")
        whole(self, 0, "full_layers")
        flags(self, "newest")

    @property
    def pages(self) -> int:
        """Pages that are attended to."""
        return max(FEWEST, self.attended // self.page)

    def start(self, site: Site) -> State:
        """A state that keeps the bounds of all pages."""
        return Pages(self, site)


class Pages(State):
    """Least and largest value of each key channel in each page, (L, B, H, pages, d) each; a slot is a position."""

    def __init__(self, policy: Quest, site: Site):
        self.policy, shape = policy, site.shape
        self.known = [[0] * site.batch for _ in range(shape.layers)]  # pages whose bounds are there
        dimensions = (shape.layers, site.batch, shape.kv_heads, 0, shape.key_dim)
        self.least, self.most = (torch.zeros(dimensions, device=site.device) for _ in range(2))

    def admit(self, row: int, clock: Clock) -> None:
        """See `State.admit`."""
        for known in self.known:
            known[row] = 0

    def move(self, source: int, target: int) -> None:
        """See `State.move`."""
        for bounds in (self.least, self.most):
            bounds[:, target] = bounds[:, source]
        for known in self.known:
            known[target] = known[source]

    def tensors(self) -> list[Tensor]:
        """The bounds."""
        return [self.least, self.most]

    def read(self, layer: int, query: Tensor, resident: Resident) -> Reading:
        """See `State.read`."""
        policy, size = self.policy, self.policy.page
        if layer < policy.full_layers:
            return Reading()
        self._update(layer, resident.clocks, resident.keys)
        held = torch.tensor([clock.held for clock in resident.clocks], device=query.device)[:, None, None]
        bounds = self.bounds(layer, query)[..., : -(-resident.keys.shape[2] // size)]
        page = torch.arange(bounds.shape[-1], device=query.device)
        bounds = bounds.masked_fill(page * size >= held, float("-inf"))
        if policy.newest:
            bounds = bounds.masked_fill(page == (held - 1) // size, float("inf"))
        chosen = bounds.topk(min(policy.pages, len(page)), dim=-1).indices
        slots = (chosen[..., None] * size + torch.arange(size, device=query.device)).flatten(2)
        return Reading(slots=torch.where(slots < held, slots, -1))

    def bounds(self, layer: int, query: Tensor) -> Tensor:
        """The largest score that a key within each page's bounds could have, (B, Hq, pages), unscaled."""
        rows = query.shape[0]
        least, most = (held[layer, :rows] for held in (self.least, self.most))
        grouped = query[:, :, 0].unflatten(1, (least.shape[1], -1))
        found = grouped.clamp(min=0) @ most.transpose(-1, -2) + grouped.clamp(max=0) @ least.transpose(-1, -2)
        return found.flatten(1, 2)

    def _update(self, layer: int, clocks: Sequence[Clock], keys: Tensor) -> None:
        """Take note of the newest keys, and of whole prompts that are new."""
        size, known = self.policy.page, self.known[layer]
        needed = -(-keys.shape[2] // size)
        if needed > self.least.shape[3] or self.least.dtype != keys.dtype:
            capacity = max(needed, self.least.shape[3] * 5 // 4)
            self.least, self.most = (resized(one, capacity).to(keys.dtype) for one in (self.least, self.most))
        for row, clock in enumerate(clocks):
            newest = (clock.held - 1) // size
            if newest > known[row]:
                whole_pages = keys[row, :, : newest * size].unflatten(1, (newest, size))
                self.least[layer, row, :, :newest] = whole_pages.amin(dim=2)
                self.most[layer, row, :, :newest] = whole_pages.amax(dim=2)
            known[row] = newest + 1
        rows = torch.arange(len(clocks), device=keys.device)
        held = torch.tensor([clock.held for clock in clocks], device=keys.device)
        newest_page = (held - 1) // size
        # beyond the newest key it stands for itself
        slots = (newest_page[:, None] * size + torch.arange(size, device=keys.device)).minimum(held[:, None] - 1)
        page = keys.gather(2, slots[:, None, :, None].expand(-1, keys.shape[1], -1, keys.shape[3]))
        self.least[layer, rows, :, newest_page] = page.amin(dim=2)
        self.most[layer, rows, :, newest_page] = page.amax(dim=2)
