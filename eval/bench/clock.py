"""The clock: contenders take turns, so that what else the machine does falls on all of them alike."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from eval.bench.contenders import Contender


@dataclass(frozen=True)
class Turn:
    """What one turn showed.

    Attributes
    ----------
    seconds : float
        Of a step, the changes that fell into the turn counted in.
    active : float
        Mean active tokens.
    transient : int or None
        Most bytes allocated at a time beyond what was there before; None where the device does not count.
    """

    seconds: float
    active: float
    transient: int | None


def take_turn(contender: Contender, steps: int, device: torch.device) -> Turn:
    """Time at least `steps` steps, in whole cycles of the contender; a step before them warms caches and buffers up."""
    cuda = device.type == "cuda"
    number = math.ceil(steps / contender.cycle) * contender.cycle
    with contender.attending():
        contender.step()
        if cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        active = []
        start = time.perf_counter()
        for _ in range(number):
            contender.step()
            active.append(contender.active())
        if cuda:
            torch.cuda.synchronize()
        seconds = (time.perf_counter() - start) / number
    return Turn(seconds, statistics.mean(active), torch.cuda.max_memory_allocated() - before if cuda else None)


def take_turns(
    contenders: Mapping[str, Contender], steps: int, rounds: int, device: torch.device
) -> dict[str, list[Turn]]:
    """Every contender's turn of each round; every other round goes backwards, so that a drift falls on all alike."""
    turns: dict[str, list[Turn]] = {name: [] for name in contenders}
    for number in range(rounds):
        for name in list(contenders)[:: -1 if number % 2 else 1]:
            turns[name].append(take_turn(contenders[name], steps, device))
    return turns
