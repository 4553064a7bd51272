"""Public bug reports as tests (ids of the list they come from): what is counted and written down."""

import re
from pathlib import Path

import pytest

from tests.zoomr.decoding import decoding
from tests.zoomr.tiny import policies, prompt_of, story
from zoomr import ZoomR, teacher_forced
from zoomr.policies import Summarized

PROMPT, STORY = prompt_of(0, 9), story(2, paragraphs=4)


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "configs/method").glob("*.yaml")), ids=lambda path: path.stem
)
def test_k14_every_number_of_a_method_has_its_source(path):
    for line in path.read_text().splitlines():
        if re.search(r"^  \w+: [-\d]", line):
            assert re.search(r"# (paper|assumption|source): ", line), line


def test_k16_kinds_of_active_tokens_add_up(model, tokenizer):
    for name, policy in policies().items():
        [result] = teacher_forced(model, tokenizer, [PROMPT], [STORY], policy=policy)
        stats = result.stats
        assert sum(stats.active_by_kind.values()) == pytest.approx(stats.active_tokens_mean)
        assert stats.seen_tokens == len(PROMPT) + len(STORY)
        if isinstance(policy, Summarized) or name.endswith("prompt"):
            assert stats.active_by_kind["prompt"] == len(PROMPT)


def test_k16_the_meter_counts_what_attention_sees(model):
    """Active tokens by the meter, against the slots that the steps really attended to."""
    batch, _ = decoding(model, ZoomR(window=8), [PROMPT], [STORY])
    row, seen = batch.rows[0], []
    while batch.rows:
        batch.step()
        seen.append(batch.memory.tiers._filled)
    usage = row.usage()
    assert usage.active_tokens_mean == pytest.approx(sum(seen) / len(seen))
    assert usage.active_tokens_peak == max(seen)
    assert usage.kv_saving == pytest.approx(usage.seen_tokens / max(seen))
