"""The full cache, on the device or on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from zoomr.policies.base import Keeps, Site, State
from zoomr.policies.checks import one_of


@dataclass(frozen=True, kw_only=True)
class Full(Keeps):
    """Drop nothing.

    Parameters
    ----------
    lower : "none" or "layerwise"
        All KVs on the device; or on the host, from which each layer's are fetched while the one before computes.
    """

    lower: Literal["none", "layerwise"] = "none"  # type: ignore[misc]

    def __post_init__(self) -> None:
        one_of(self, "lower", Literal["none", "layerwise"])

    def start(self, site: Site) -> State:
        """A state that never changes anything."""
        return State()
