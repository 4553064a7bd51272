"""A policy's damage against separate runs of the decoding loop."""

import pytest

from tests.zoomr.tiny import policies, prompt_of, story
from zoomr import Full, teacher_forced
from zoomr.damage import Reference

PROMPT, STORY = prompt_of(0, 6), story(1, paragraphs=3)


@pytest.fixture(scope="module")
def reference(model, tokenizer):
    return Reference(model, tokenizer, PROMPT, STORY)


@pytest.mark.parametrize("name", ["zoomr_narrow", "streaming_llm", "h2o"])
def test_damage_is_that_of_separate_runs(model, tokenizer, reference, name):
    policy = policies()[name]
    (full,) = teacher_forced(model, tokenizer, [PROMPT], [STORY], policy=Full(), keep_logits=True)
    (own,) = teacher_forced(model, tokenizer, [PROMPT], [STORY], policy=policy, keep_logits=True)
    found = reference.damage(policy)
    p, q = full.logits.log_softmax(-1), own.logits.log_softmax(-1)
    assert found.tokens == len(STORY)
    assert found.nll_full == pytest.approx(-float(full.log_probs.mean()), abs=1e-5)
    assert found.delta_nll == pytest.approx(float(full.log_probs.mean() - own.log_probs.mean()), abs=1e-5)
    assert found.kl == pytest.approx(float((p.exp() * (p - q)).sum(-1).mean()), abs=1e-5)
    assert found.kl > 1e-3
    assert found.top1_agreement == pytest.approx(float((full.top == own.top).float().mean()))
    assert found.usage.active_tokens_mean == pytest.approx(own.stats.active_tokens_mean)


def test_nothing_dropped_is_no_damage(reference):
    found = reference.damage(Full())
    assert found.delta_nll == pytest.approx(0.0, abs=1e-9)
    assert (found.kl, found.top1_agreement) == (0.0, 1.0)
    assert found.usage.active_tokens_mean == reference.undamaged().usage.active_tokens_mean
