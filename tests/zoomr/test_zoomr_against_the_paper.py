"""The whole method against a slow loop written from the paper's formulas."""

import pytest
import torch

from tests.zoomr import reference
from tests.zoomr.tiny import BEGIN, BOUNDARIES, CLOSE, make_model, prompt_of, story
from zoomr import ZoomR, teacher_forced


@pytest.mark.parametrize("heads", [(8, 8), (8, 2), (8, 1)], ids=str)
@pytest.mark.parametrize(("c", "k", "window"), [(2, 2, 12), (1, 1, 4), (3, 2, 30)])
def test_votes_sets_and_logits_equal_the_slow_loop(tokenizer, heads, c, k, window):
    """Also K12: query heads are matched to their KV heads as the model does it."""
    model = make_model(heads=heads)
    prompt, continuation = prompt_of(3, 6), story(7)
    expected, refreshes = reference.zoomr(model, prompt, continuation, BOUNDARIES, BEGIN, CLOSE, c, k, window)
    trace = []
    policy = ZoomR(c=c, k=k, window=window)
    [result] = teacher_forced(
        model, tokenizer, [prompt], [continuation], policy=policy, trace=trace.append, keep_logits=True
    )
    assert [entry.position for entry in trace] == [position for position, *_ in refreshes]
    for entry, (_, votes, zoomed, shown, active) in zip(trace, refreshes, strict=True):
        assert (entry.votes, entry.zoomed, entry.shown) == (votes, zoomed, shown)
        assert entry.active == len(active)
        if sum(votes):
            assert entry.agreeability == pytest.approx(sum(votes[i] for i in zoomed) / sum(votes))
    assert any(entry.zoomed for entry in trace)
    assert any(entry.shown for entry in trace) or k == 1 or c == 3
    torch.testing.assert_close(result.logits, expected, atol=2e-4, rtol=1e-4)


def test_a_refresh_is_forced_when_no_boundary_comes(tokenizer, model):
    prompt, continuation = prompt_of(3, 6), story(7)
    trace = []
    policy = ZoomR(c=1, k=1, window=4, force_after=9)
    [result] = teacher_forced(
        model, tokenizer, [prompt], [continuation], policy=policy, boundaries=[], trace=trace.append, keep_logits=True
    )
    expected, refreshes = reference.zoomr(model, prompt, continuation, (), BEGIN, CLOSE, 1, 1, 4, force_after=9)
    assert [entry.position for entry in trace] == list(range(6 + 8, 6 + len(continuation) - 1, 9))
    assert all(entry.forced for entry in trace)
    assert result.stats.forced_refreshes == result.stats.refreshes == len(refreshes)
    torch.testing.assert_close(result.logits, expected, atol=2e-4, rtol=1e-4)
