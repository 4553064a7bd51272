"""A wrong setting of a policy is one sentence, when the policy is made: its name, its value and what would do."""

import math

import pytest

from zoomr import H2O, Full, RandomAttention, SnapKV, StreamingLLM, SumR, ZoomR
from zoomr.errors import UserError

WRONG = [
    (ZoomR, "c", -1),
    (ZoomR, "c", 1.5),
    (ZoomR, "k", 0),
    (ZoomR, "k", -1),
    (ZoomR, "k", True),
    (ZoomR, "window", -5),
    (ZoomR, "window", 0),
    (ZoomR, "every", 0),
    (ZoomR, "force_after", 0),
    (ZoomR, "tail", -1),
    (ZoomR, "most_shown", -1),
    (ZoomR, "votes_by", "weight"),
    (ZoomR, "votes_by", "index"),
    (ZoomR, "lower", "int3"),
    (ZoomR, "keep_open", "yes"),
    (SumR, "window", "512"),
    (Full, "lower", "host"),
    (StreamingLLM, "sinks", -1),
    (StreamingLLM, "positions", "re-assigned"),
    (StreamingLLM, "budget", 0),
    (StreamingLLM, "keep_prompt", 1),
    (H2O, "recent_share", 2.0),
    (H2O, "recent_share", math.nan),
    (SnapKV, "group", "foo"),
    (SnapKV, "pool", "median"),
    (SnapKV, "kernel", 4),
    (SnapKV, "history", 0),
    (RandomAttention, "interval", 0),
]


@pytest.mark.parametrize(("policy", "name", "value"), WRONG, ids=lambda one: getattr(one, "__name__", str(one)))
def test_nonsense_is_refused_by_name(policy, name, value):
    budget = {} if policy in (ZoomR, SumR, Full) else {"budget": 300}
    with pytest.raises(UserError, match=rf"^{name}=.*: .*need"):
        policy(**(budget | {name: value}))


def test_no_zoom_and_long_intervals_are_meant():
    assert ZoomR(c=0).c == 0
    clock = type("Clock", (), {"boundary": True, "since": 511})
    assert not ZoomR(every=512).refreshes(clock)
    clock.since = 512
    assert ZoomR(every=512).refreshes(clock)
