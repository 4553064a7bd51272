"""Which KVs move when a row's active set changes: plain index arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Moves:
    """Moves that turn one set of slots into another of `size` slots without gaps.

    `holes` receive first the slots `movers`, then the KVs of the positions `arriving`, in this order.
    """

    size: int
    holes: np.ndarray
    movers: np.ndarray
    arriving: np.ndarray


def plan_moves(held: np.ndarray, active: np.ndarray) -> Moves:
    """Free the slots of leaving positions and fill the gaps, touching nothing that stays where it can.

    Parameters
    ----------
    held : (used,) int64
        Position of the token in each slot.
    active : (T,) bool
        Whether each position is to be held.

    Returns
    -------
    Moves
    """
    stays = active[held]
    resident = np.zeros_like(active)
    resident[held] = True
    arriving = np.flatnonzero(active & ~resident)
    gone = np.flatnonzero(~stays)
    size = len(held) - len(gone) + len(arriving)
    holes = np.concatenate([gone[gone < size], np.arange(len(held), size)])
    movers = size + np.flatnonzero(stays[size:])
    return Moves(size, holes, movers, arriving)


def runs(positions: np.ndarray) -> list[tuple[int, int]]:
    """Ascending positions as half-open ranges."""
    if len(positions) == 0:
        return []
    breaks = np.flatnonzero(np.diff(positions) != 1) + 1
    starts = positions[np.concatenate([[0], breaks])]
    stops = positions[np.concatenate([breaks - 1, [len(positions) - 1]])] + 1
    return list(zip(starts.tolist(), stops.tolist(), strict=True))
