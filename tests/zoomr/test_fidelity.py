"""Teacher forcing and the comparison with the full cache."""

import pytest
import torch

from tests.zoomr.tiny import policies, prompt_of, story
from zoomr import Full, fidelity, teacher_forced
from zoomr.comparison import Reference

PROMPTS = [prompt_of(seed, 4 + seed) for seed in range(3)]
STORIES = [story(seed, paragraphs=2 + seed) for seed in range(3)]


def test_log_probabilities_are_those_of_a_plain_forward(model, tokenizer):
    forced = teacher_forced(model, tokenizer, PROMPTS, STORIES, policy=Full(), batch_size=2)
    model.set_attn_implementation("sdpa")
    for result, prompt, continuation in zip(forced, PROMPTS, STORIES, strict=True):
        with torch.inference_mode():
            logits = model(torch.tensor([prompt + continuation])).logits[0, len(prompt) - 1 : -1]
        expected = logits.log_softmax(-1).gather(1, torch.tensor(continuation)[:, None])[:, 0]
        torch.testing.assert_close(result.log_probs, expected, atol=1e-5, rtol=0)
        assert result.top.tolist() == logits.argmax(-1).tolist()


def test_the_full_cache_is_faithful_to_itself(model, tokenizer):
    for result in fidelity(model, tokenizer, PROMPTS, STORIES, policy=Full()):
        assert result.delta_nll == pytest.approx(0.0, abs=1e-9)
        assert (result.kl, result.top1_agreement) == (0.0, 1.0)


def test_what_the_full_cache_is_beside_itself_needs_no_second_run(model, tokenizer):
    reference = Reference(model, tokenizer, PROMPTS[0], STORIES[0])
    (measured,), said = reference.compare([Full()]), reference.itself()
    assert said.nll == pytest.approx(measured.nll, abs=1e-9)
    assert (said.kl, said.top1_agreement) == (measured.kl, measured.top1_agreement)
    assert said.stats.active_by_kind == measured.stats.active_by_kind


@pytest.mark.parametrize("name", ["zoomr_narrow", "streaming_llm", "h2o"])
def test_damage_is_measured_against_separate_runs(model, tokenizer, name):
    policy = policies()[name]
    full = teacher_forced(model, tokenizer, PROMPTS, STORIES, policy=Full(), keep_logits=True)
    own = teacher_forced(model, tokenizer, PROMPTS, STORIES, policy=policy, keep_logits=True)
    found = fidelity(model, tokenizer, PROMPTS, STORIES, policy=policy)
    for one, before, after in zip(found, full, own, strict=True):
        assert one.nll_full == pytest.approx(-float(before.log_probs.mean()), abs=1e-5)
        assert one.delta_nll == pytest.approx(float(before.log_probs.mean() - after.log_probs.mean()), abs=1e-5)
        p, q = before.logits.log_softmax(-1), after.logits.log_softmax(-1)
        assert one.kl == pytest.approx(float((p.exp() * (p - q)).sum(-1).mean()), abs=1e-5)
        assert one.kl > 1e-3 and one.tokens == len(before.top)
        assert one.top1_agreement == pytest.approx(float((before.top == after.top).float().mean()))
        assert one.to_dict()["active_tokens_mean"] == pytest.approx(after.stats.active_tokens_mean)
    assert [one.prompt for one in found] == [0, 1, 2]
