"""Policies that rank, against the official code of their authors (ids in vectors/README.md)."""

import pytest
import torch

from tests.zoomr.official import CASES, assert_kept, slot_view, tensors, vectors, worth_by_position
from zoomr.policies import RKV
from zoomr.policies.rkv import redundancy


def assert_scores(found, expected):
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), atol=1e-5, rtol=0)


@pytest.mark.parametrize("case", CASES)
def test_rkv(case):
    made, last_eight = vectors("rkv")["cases"][case], range(88, 96)
    official = made["lambda_0.1"]
    policy = RKV(budget=48)
    assert_scores(redundancy(tensors(case)[1][:, :96]).tolist(), made["similarity"]["last"])
    for head, worth in enumerate(worth_by_position(policy, slot_view(case, torch.arange(96), last_eight))):
        assert_scores([worth[place] for place in range(88)], official["final_score"][head])
        assert_kept(worth, official["kept"][head], last_eight, official["margin"][head])
    # sixteen tokens later, from a store in order of time
    second, last_eight = official["second_event_chronological_store"], range(104, 112)
    positions = torch.tensor([kept + list(range(96, 112)) for kept in official["kept"]])
    for head, worth in enumerate(worth_by_position(policy, slot_view(case, positions, last_eight))):
        assert_scores([worth[place] for place in positions[head, :-8].tolist()], second["final_score"][head])
        assert_kept(worth, second["kept_positions"][head], last_eight, second["margin"][head])
