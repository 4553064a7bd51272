"""Public bug reports as tests (ids of the list they come from): budgets and what is kept."""

import pytest

from tests.zoomr.decoding import decoding
from tests.zoomr.tiny import policies, prompt_of, story
from zoomr import H2O, SnapKV
from zoomr.errors import UserError
from zoomr.meter import resolve_budget

PROMPT, STORY = prompt_of(0, 9), story(2, paragraphs=4)
EVICTING = [name for name, policy in policies().items() if not policy.recalls and not name.startswith("full")]


@pytest.mark.parametrize("name", EVICTING)
def test_k06_the_budget_holds_after_every_call(model, name):
    policy = policies()[name]
    for length in (3, 40):
        prompt = prompt_of(3, length)
        batch, _ = decoding(model, policy, [prompt], [STORY])
        limit = max(policy.budget, policy.first(length) + policy.protected)
        while batch.rows:
            row = batch.rows[0]
            assert row.held <= limit + policy.interval - 1
            _, present, _ = batch.store.slots([0])
            assert (present.sum(-1) - int(batch.store.hole[0]) == row.held).all()
            batch.step()


@pytest.mark.parametrize("name", ["streaming_llm", "streaming_llm_prompt", "h2o_prompt", "random_attention_prompt"])
def test_k06_sinks_and_prompt_survive_and_positions_are_sound(model, name):
    """Sinks are the row's first real tokens (K20); kept positions are unique and in range, the newest among them."""
    policy = policies()[name]
    batch, _ = decoding(model, policy, [PROMPT, PROMPT[:4]], [STORY, STORY])
    while len(batch.rows) == 2:
        batch.step()
        if any(batch.store.hole):
            continue
        for index, row in enumerate(batch.rows):
            positions, present, _ = batch.store.slots([index])
            for group in positions.expand(present.shape).masked_fill(~present, -1).flatten(0, 2):
                held = [one for one in group.tolist() if one >= 0]
                assert len(set(held)) == len(held) and max(held) == row.position - 1
                assert set(range(policy.first(row.prompt))) <= set(held)


def test_k10_per_head_sets_need_no_mask_of_the_model(model):
    """Every layer and head of h2o holds its own positions, and no 2-D mask could say so."""
    batch, _ = decoding(model, H2O(budget=12), [PROMPT], [STORY])
    for _ in range(40):
        batch.step()
    positions, present, _ = batch.store.slots([0])
    held = [tuple(sorted(group.tolist())) for group in positions[:, 0].flatten(0, 1)]
    assert present.all() and len(set(held)) > 1


def test_k18_budgets_resolve_to_tokens():
    assert resolve_budget(100) == 100
    assert resolve_budget(0.25, seen_tokens=1000) == 250
    assert resolve_budget("1MiB", bytes_per_token=1024) == 1024
    assert resolve_budget("0.5MB", bytes_per_token=1000) == 500
    assert resolve_budget("match", matched=321.7) == 321
    for wrong in (0, -3, 1.5, "5 furlongs", True, 0.2, "match", "1MB"):
        with pytest.raises(UserError, match="policy.budget"):
            resolve_budget(wrong)


def test_k23_h2o_always_keeps_its_recent_share(model):
    policy = H2O(budget=20)
    batch, _ = decoding(model, policy, [PROMPT], [story(5, paragraphs=9)])
    evicted_ages = []
    while len(batch.rows[0].tokens) < 150 and batch.rows:
        before = {position for group in batch.store.positions[:, 0].flatten(0, 1).tolist() for position in group}
        batch.step()
        row = batch.rows[0]
        if batch.store.hole[0]:
            free = batch.store.positions[:, 0].gather(-1, batch.store.free[:, 0, :, None])
            evicted_ages += (row.position - 1 - free).flatten().tolist()
        assert before
    assert min(evicted_ages) >= policy.protected
    assert max(evicted_ages) > 3 * policy.protected


def test_snapkv_of_both_sources_can_be_said():
    assert SnapKV(budget=64, interval=128, history=8, group="max", pool="max", kernel=7).protected == 8
