"""What a batch needs to know, and the store that follows from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from zoomr.errors import UserError
from zoomr.meter import RunMeter
from zoomr.policies import Needs, Policy
from zoomr.stores import LayerwiseStore, MaskStore, SlotEvictStore, SlotStore, Store, StoreSize, group_counts
from zoomr.trace import Trace

Mode = Literal["gather", "mask"]
Residency = Literal["active", "layerwise"]
TokenCallback = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Plan:
    """What a batch needs to know, the same for all its rows."""

    policy: Policy
    boundaries: frozenset[int]
    stop_ids: frozenset[int]
    delimiters: tuple[int | None, int | None]
    mode: Mode = "gather"
    residency: Residency = "active"
    trace: Trace | None = None
    meter: RunMeter | None = None
    token_callback: TokenCallback | None = None


def make_store(plan: Plan, size: StoreSize) -> Store:
    """The store for a plan's mode, residency and policy.

    Raises
    ------
    UserError
        An unknown mode or residency, or a residency that the policy does not have.
    """
    policy = plan.policy
    groups = group_counts(policy.scope, size.shape)
    ledger = Needs.ATTENTION in policy.needs
    if plan.mode not in get_args(Mode) or plan.residency not in get_args(Residency):
        raise UserError(
            f"mode must be gather or mask and residency active or layerwise, not {plan.mode}, {plan.residency}"
        )
    layerwise = policy.offloads or plan.residency == "layerwise"
    if layerwise and not (policy.recalls or policy.offloads):
        raise UserError(f"residency: {type(policy).__name__} keeps its KVs on the device; use residency=active")
    if plan.mode == "mask":
        return MaskStore(size, groups, ledger)
    if layerwise:
        return LayerwiseStore(size)
    return SlotStore(size) if policy.recalls else SlotEvictStore(size, groups, ledger)
