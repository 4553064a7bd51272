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
    assert whole.sft.max_steps == 4 * quarter.sft.max_steps
    assert whole.benchmark.count == 4 * quarter.benchmark.count
    traces = [compose("data_gen", "preset=laptop_traces", f"time_limit={limit}") for limit in ("2h", "30m")]
    assert [config.limit for config in traces] == [12, 3]
    assert [config.dataset.paragraphs for config in traces] == [100, 25]
