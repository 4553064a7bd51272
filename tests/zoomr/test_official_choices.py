"""Policies that choose at each step what is attended to, against the official code of their authors."""

from types import SimpleNamespace

import pytest
import torch

from tests.zoomr.official import CASES, tensors, vectors
from zoomr.attention import attend
from zoomr.memory import chosen_slots
from zoomr.policies import Quest, Resident, Shape, Site

SITE = Site(Shape(1, 4, 2, 16, 16), 1, torch.device("cpu"))


def resident(case, held, **clock):
    """The first `held` tokens of a case, and the query of the last of them, (1, 4, 1, 16)."""
    q, k, v = (part[None, :, :held] for part in tensors(case))
    positions = torch.arange(held).expand(1, 1, -1)
    clock = SimpleNamespace(held=held, position=held - 1, **clock)
    return q[:, :, -1:], Resident([clock], positions, positions >= 0, k, v)


def attended(reading):
    """Positions that each query head attends to."""
    return [sorted(slot for slot in head if slot >= 0) for head in reading.slots[0].tolist()]


@pytest.mark.parametrize("case", CASES)
def test_quest(case):
    made = vectors("quest")["cases"][case]
    state = Quest(attended=32, page=8, full_layers=0, newest=False).start(SITE)
    for held in (60, 61, 97):  # a prompt, a step, and a longer prompt in its place
        state.admit(0, None) if held != 61 else None
        query, held_now = resident(case, held)
        reading = state.read(0, query, held_now)
    torch.testing.assert_close(state.bounds(0, query)[0], torch.tensor(made["upper_bound"]), atol=1e-5, rtol=0)
    assert attended(reading) == made["active"]
    keys, values, mask = chosen_slots(reading.slots, held_now.present, held_now.keys, held_now.values)
    output = attend(query, keys, values, mask, 0.25)[0, 0]
    torch.testing.assert_close(output, torch.tensor(made["output"]), atol=1e-5, rtol=0)


def test_quest_in_its_kernels_form_attends_to_the_newest_page():
    state = Quest(attended=32, page=8, full_layers=0).start(SITE)
    query, held_now = resident("random", 97)
    best = vectors("quest")["cases"]["random"]["upper_bound"]
    for head, found in enumerate(attended(state.read(0, query, held_now))):
        others = sorted(range(12), key=best[head].__getitem__)[-3:]
        assert {place // 8 for place in found} == {12, *others}
