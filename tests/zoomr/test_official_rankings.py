"""Policies that rank, against the official code of their authors (ids in vectors/README.md)."""

from types import SimpleNamespace

import pytest
import torch

from tests.zoomr.official import CASES, assert_kept, slot_view, tensors, vectors, worth_by_position
from zoomr.policies import CORM, RKV, RPC, Shape, Site, Zipage, zipage
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


@pytest.mark.parametrize("scope", ["layer", "head"])
@pytest.mark.parametrize("case", CASES)
def test_rpc(case, scope):
    made = vectors("rpc")["cases"][case][{"layer": "all", "head": "group"}[scope]]
    policy = RPC(period=32, ratio=4, recent=8, scope=scope)
    held, lengths, events = 16, [], 0
    for _ in range(96):
        held += 1
        room = policy.limit(SimpleNamespace(prompt=16, refreshes=events))
        if held > room:
            held, events = room + 1 - policy.interval, events + 1
        lengths.append(held)
    assert lengths == made["lengths"]
    left, newest = torch.zeros(2, 0, dtype=torch.int64), -1
    for event in made["events"]:
        arrived = torch.arange(newest + 1, event["at_token"] + 1)
        positions, newest = torch.cat([left, arrived.expand(2, -1)], dim=1), event["at_token"]
        asking = sorted(set(event["selector_positions"]))
        assert len(asking) == policy.history
        worth = worth_by_position(policy, slot_view(case, positions, asking, prompt=16))
        if scope == "layer":
            worth = [{place: (worth[0][place] + worth[1][place]) / 2 for place in worth[0]}]
        kept = event["kept_by_kv_head"]
        left = torch.tensor(kept).expand(2, -1)
        for head, own in enumerate(worth):
            spared = [place for place in own if place < 16 or place > newest - 8]
            candidates = sorted(set(own) - set(spared))
            assert_scores([own[place] for place in candidates], event["score"][head])
            assert_kept(own, kept[head], spared, event["gap"][head])


@pytest.mark.parametrize("case", CASES)
def test_corm(case):
    """No code is public: what the paper says, query by query."""
    q, k, _ = tensors(case)
    view = slot_view(case, torch.arange(96), range(76, 96))
    for head, worth in enumerate(worth_by_position(CORM(budget=64, history=20, recent=4), view)):
        for place in range(96):
            major = [
                asked - 75
                for asked in range(max(76, place), 96)
                for one in (2 * head, 2 * head + 1)
                if torch.softmax(k[head, : asked + 1] @ q[one, asked] / 4, 0)[place] >= 1 / (asked + 1)
            ]
            assert worth[place] == max(major, default=0)


@pytest.mark.parametrize("case", CASES)
def test_zipage(case):
    made, last_eight = vectors("zipage")["cases"][case], range(88, 96)
    policy = Zipage(budget=95, block=16, history=8, kernel=1)
    view = slot_view(case, torch.arange(96), last_eight)
    keys = tensors(case)[1][None, None, :, :96]
    order = torch.arange(96).expand(1, 1, 2, -1)
    assert_scores(policy.attention(view, order, keys)[0, 0].tolist(), made["attention"])
    repeats = zipage.redundancy(keys, 16)[0, 0]
    assert_scores(repeats.tolist(), made["redundancy_logits"])
    assert_scores(torch.softmax(repeats / (0.4 * 16), -1).tolist(), made["redundancy"])
    for head, worth in enumerate(worth_by_position(policy, view)):
        assert_kept(worth, made["own_score_kept80"][head], last_eight, made["margin"][head])


def test_zipage_remembers_attention_and_pools_once():
    site = Site(Shape(1, 4, 2, 16, 16), 2, torch.device("cpu"))
    policy = Zipage(budget=40, block=8, history=8, importance=1.0)
    state = policy.start(site)
    first = slot_view("random", torch.arange(40), range(32, 40))
    state._rank(None, [1], slice(0, 1), first)
    state.move(1, 0)
    second = slot_view("random", torch.arange(20, 60), range(52, 60))
    found = state._rank(None, [0], slice(0, 1), second)[0, 0]
    was, now = (
        policy.attention(view, None, tensors("random")[1][None, None, :, start : start + 40])[0, 0]
        for view, start in ((first, 0), (second, 20))
    )
    expected = torch.cat([torch.maximum(now[:, :20], 0.8 * was[:, 20:]), now[:, 20:]], dim=1)
    places = second.positions[0, 0]
    for head in range(2):
        for place, value in zip(places[head].tolist(), found[head].tolist(), strict=True):
            if place != 999:
                assert value == pytest.approx(expected[head, place - 20].item(), abs=1e-6)
