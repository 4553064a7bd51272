"""Durations, and the counts that follow from them."""

import pytest

from pipeline.duration import scaled, seconds
from tests.configs.test_configs import compose
from zoomr.errors import UserError


def test_durations():
    assert [seconds(text) for text in ("90s", "30m", "2h", "1h30m", "0.5h")] == [90, 1800, 7200, 5400, 1800]


@pytest.mark.parametrize("text", ["30", "m", "2 h", "0m", "2h-", "-2h"])
def test_other_texts_are_refused(text):
    with pytest.raises(UserError, match=f"time_limit={text}: write a duration"):
        seconds(text)


def test_counts_are_in_proportion():
    assert [scaled(limit, "2h", 24) for limit in ("2h", "1h", "30m", "1s", "4h")] == [24, 12, 6, 2, 48]


def test_the_laptop_preset_scales_all_its_counts():
    whole, quarter = (compose("train", "preset=laptop", f"time_limit={limit}") for limit in ("2h", "30m"))
    for get in (lambda c: c.limit, lambda c: c.dataset.paragraphs, lambda c: c.sft.max_steps):
        assert get(whole) == 4 * get(quarter)
    assert whole.dataset.paragraphs == 200
