"""Public bug reports as tests (ids of the list they come from): budgets and what is kept."""

import re
from dataclasses import replace

import pytest

from tests.zoomr.decoding import decoding
from tests.zoomr.tiny import policies, prompt_of, story
from zoomr import H2O, SnapKV, generate
from zoomr.budgets import resolve_budget
from zoomr.errors import UserError

PROMPT, STORY = prompt_of(0, 9), story(2, paragraphs=4)
EVICTING = [name for name, policy in policies().items() if getattr(policy, "budget", None) is not None]


@pytest.mark.parametrize("name", EVICTING)
def test_k06_the_budget_holds_after_every_call(model, name):
    policy = policies()[name]
    for length in (1, 3, 10) if policy.keep_prompt else (1, 3, 10, 16, 17, 40):
        prompt = prompt_of(3, length)
        batch, _ = decoding(model, policy, [prompt], [STORY])
        while batch.rows:
            row = batch.rows[0]
            assert row.held <= policy.budget
            _, present, _ = batch.memory.tiers.slots([0], slice(None))
            assert (present.sum(-1) == row.held).all()
            batch.step()
        assert row.usage().active_tokens_peak <= policy.budget + 1
        assert min(row.usage().active_by_kind.values()) >= 0


@pytest.mark.parametrize("name", [name for name in EVICTING if name != "h2o"])  # h2o can do with any
def test_a_budget_that_cannot_hold_is_refused_at_the_start(model, tokenizer, name):
    """The prompt where it is kept, else what the method never drops; the sentence says what would do."""
    small = replace(policies()[name], budget=3)
    with pytest.raises(UserError, match=r"budget=3: too small to keep .* or more are needed") as refusal:
        generate(model, tokenizer, [PROMPT], policy=small, max_new_tokens=9)
    needed = int(re.search(r"(\d+) or more", str(refusal.value))[1])
    for budget, held in ((needed - 1, False), (needed, True)):
        settings = {"policy": replace(small, budget=budget), "max_new_tokens": 30, "stop_ids": []}
        if held:
            [found] = generate(model, tokenizer, [PROMPT], **settings)
            assert found.stats.active_tokens_peak <= needed + 1
        else:
            with pytest.raises(UserError, match="too small"):
                generate(model, tokenizer, [PROMPT], **settings)


@pytest.mark.parametrize("name", ["streaming_llm", "streaming_llm_prompt", "h2o_prompt", "random_attention_prompt"])
def test_k06_sinks_and_prompt_survive_and_positions_are_sound(model, name):
    """Sinks are the row's first real tokens (K20); kept positions are unique and in range, the newest among them."""
    policy = policies()[name]
    batch, _ = decoding(model, policy, [PROMPT, PROMPT[:4]], [STORY, STORY])
    while len(batch.rows) == 2:
        batch.step()
        for index, row in enumerate(batch.rows):
            positions, present, _ = batch.memory.tiers.slots([index], slice(None))
            for group in positions.expand(present.shape).masked_fill(~present, -1).flatten(0, 2):
                held = [one for one in group.tolist() if one >= 0]
                assert len(set(held)) == len(held) and max(held) == row.position
                assert set(range(policy.keep_first(row.prompt))) <= set(held)


def test_k10_per_head_sets_need_no_mask_of_the_model(model):
    """Every layer and head of h2o holds its own positions, and no 2-D mask could say so."""
    batch, _ = decoding(model, H2O(budget=12), [PROMPT], [STORY])
    for _ in range(40):
        batch.step()
    positions, present, _ = batch.memory.tiers.slots([0], slice(None))
    held = [tuple(sorted(group.tolist())) for group in positions[:, 0].flatten(0, 1)]
    assert present.all() and len(set(held)) > 1


def test_k18_budgets_resolve_to_tokens():
    assert resolve_budget(100) == 100
    assert resolve_budget(0.25, seen_tokens=1000) == 250
    assert resolve_budget("1MiB", bytes_per_token=1024) == 1024
    assert resolve_budget("0.5MB", bytes_per_token=1000) == 500
    assert resolve_budget("match", matched=321.7) == 321
    for wrong in (0, -3, 1.5, "5 furlongs", True, 0.2, "match", "1MB"):
        with pytest.raises(UserError, match="budget="):
            resolve_budget(wrong)


def test_k23_h2o_always_keeps_its_recent_share(model):
    policy = H2O(budget=20)
    batch, _ = decoding(model, policy, [PROMPT], [story(5, paragraphs=9)])
    evicted_ages, recent = [], policy.keep_last(len(PROMPT))

    def held():
        positions, _, _ = batch.memory.tiers.slots([0], slice(None))
        return [set(group.tolist()) for group in positions[:, 0].flatten(0, 1)]

    while len(batch.rows[0].tokens) < 150:
        before = held()
        batch.step()
        newest = batch.rows[0].position
        for one, other in zip(before, held(), strict=True):
            evicted_ages += [newest - gone for gone in one - other]
    assert min(evicted_ages) >= recent
    assert max(evicted_ages) > 3 * recent


def test_snapkv_of_both_sources_can_be_said():
    assert SnapKV(budget=64, interval=128, history=8, group="max", pool="max", kernel=7).keep_last(0) == 8


@pytest.mark.parametrize("name", ["snapkv", "snapkv_max", "rkv"])
def test_scores_of_all_layers_never_exist_at_once(model, monkeypatch, name):
    """What looks at queries or keys ranks one layer at a time, whose scores alone are transient."""
    policy, seen = policies()[name], []
    rank = type(policy).rank

    def watched(self, view):
        seen.append(view.keys().shape[0])
        return rank(self, view)

    monkeypatch.setattr(type(policy), "rank", watched)
    batch, _ = decoding(model, policy, [PROMPT], [STORY])
    while batch.rows:
        batch.step()
    assert set(seen) == {1}
