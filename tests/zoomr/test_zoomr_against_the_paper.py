"""The whole method, with each of its options, against a slow loop written from the paper's formulas."""

import pytest
import torch

from tests.zoomr import reference
from tests.zoomr.tiny import BEGIN, BOUNDARIES, CLOSE, make_model, prompt_of, story
from zoomr import ZoomR, teacher_forced
from zoomr.errors import UserError
from zoomr.summaries.votes import contrast_votes

PROMPT, STORY = prompt_of(3, 6), story(7)
SETTINGS = {
    "default": {"c": 2, "k": 2, "window": 12},
    "narrow": {"c": 1, "k": 1, "window": 4},
    "wide": {"c": 3, "k": 2, "window": 30},
    "keep_open": {"window": 3, "keep_open": True},
    "every_five": {"window": 9, "every": 5},
    "every_token": {"window": 9, "every": 1},
    "vote_span": {"window": 9, "vote_span": True},
    "exclude_covered": {"window": 35, "exclude_covered": True},
    "weighted": {"window": 9, "votes_by": "mass"},
    "per_kv_head": {"window": 9, "k": 1, "per_kv_head": True},
    "with_delimiters": {"window": 9, "k": 1, "with_delimiters": True},
    "no_zoom": {"window": 9, "c": 0, "tail": 2},
    "contrast": {"window": 9, "votes_by": "contrast"},
    "conclusions": {"window": 9, "tail": 3, "c": 1},
    "bounded": {"window": 9, "k": 3, "c": 1, "most_shown": 1},
    "voters": {"window": 9, "voters": ((0, 1), (1, 0), (1, 3))},
    "voters_per_kv_head": {"window": 9, "voters": ((1, 1), (1, 2)), "per_kv_head": True},
}


def check(tokenizer, model, policy, boundaries=BOUNDARIES):
    expected, refreshes = reference.zoomr(model, PROMPT, STORY, boundaries, BEGIN, CLOSE, policy)
    trace = []
    settings = {"policy": policy, "boundaries": boundaries, "trace": trace.append, "keep_logits": True}
    [result] = teacher_forced(model, tokenizer, [PROMPT], [STORY], **settings)
    assert [entry.position for entry in trace] == [position for position, *_ in refreshes]
    for entry, (_, votes, zoomed, shown, active) in zip(trace, refreshes, strict=True):
        assert entry.votes == pytest.approx(votes, rel=1e-4, abs=2e-4 if policy.votes_by == "contrast" else 0)
        assert (entry.zoomed, entry.shown) == (zoomed, shown)
        assert entry.active == len(active)
        if zoomed:
            assert entry.agreeability == pytest.approx(
                sum(votes[i] for i in zoomed) / sum(max(0, vote) for vote in votes), rel=1e-3
            )
    torch.testing.assert_close(result.logits, expected, atol=1e-5, rtol=0)
    return trace, result


@pytest.mark.parametrize("name", SETTINGS)
def test_votes_sets_and_logits_equal_the_slow_loop(tokenizer, model, name):
    trace, _ = check(tokenizer, model, ZoomR(**SETTINGS[name]))
    assert any(entry.zoomed for entry in trace) == (name != "no_zoom")


def test_a_head_that_always_asks_the_same_has_no_say():
    torch.manual_seed(0)
    means, candidates = torch.randn(2, 1, 2, 5, 8), torch.ones(1, 5, dtype=torch.bool)
    queries, habits = torch.randn(2, 1, 4, 8), torch.randn(2, 1, 4, 8)
    votes = contrast_votes(queries, habits, means, candidates, 0.4).counts
    habits[1, :, 2] = queries[1, :, 2]
    others = torch.ones(2, 4, dtype=torch.bool)
    others[1, 2] = False
    found = contrast_votes(queries, habits, means, candidates, 0.4).counts
    torch.testing.assert_close(found, contrast_votes(queries, habits, means, candidates, 0.4, voters=others).counts)
    assert not torch.allclose(found, votes) and abs(float(found.sum())) < 1e-6


@pytest.mark.parametrize("heads", [(8, 8), (8, 1)], ids=str)
def test_k12_query_heads_are_matched_to_their_kv_heads(tokenizer, heads):
    check(tokenizer, make_model(heads=heads), ZoomR(window=12))


def test_a_refresh_is_forced_when_no_boundary_comes(tokenizer, model):
    trace, result = check(tokenizer, model, ZoomR(c=1, k=1, window=4, force_after=9), boundaries=[])
    assert [entry.position for entry in trace] == list(range(6 + 8, 6 + len(STORY) - 1, 9))
    assert all(entry.forced for entry in trace)
    assert result.stats.forced_refreshes == result.stats.refreshes == len(trace)


def test_that_all_heads_vote_is_the_default(tokenizer, model):
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    everyone = tuple((layer, head) for layer in range(layers) for head in range(heads))
    found = [check(tokenizer, model, ZoomR(window=9, voters=voters))[0] for voters in (None, everyone)]
    assert found[0] == found[1]


@pytest.mark.parametrize("voters", [((0, 99),), ((9, 0),), ((0, -1),)], ids=str)
def test_a_head_that_the_model_lacks_is_named(tokenizer, model, voters):
    with pytest.raises(UserError, match=r"voters=.*the model has \d layers of \d query heads"):
        teacher_forced(model, tokenizer, [PROMPT], [STORY], policy=ZoomR(window=9, voters=voters))


def test_no_voters_are_refused(tokenizer, model):
    with pytest.raises(UserError, match="at least one head must vote"):
        teacher_forced(model, tokenizer, [PROMPT], [STORY], policy=ZoomR(window=9, voters=()))
