"""The backbone: real eviction and offload compute what a mask over the full cache computes."""

import pytest
import torch

from tests.zoomr.tiny import make_model, policies, prompt_of, story
from zoomr import teacher_forced

PROMPTS = [prompt_of(seed, length) for seed, length in enumerate((5, 1, 12))]
CONTINUATIONS = [story(seed, paragraphs=3 + seed % 2, length=(7, 14)) for seed in range(3)]


def logits(model, tokenizer, policy, **settings):
    forced = teacher_forced(model, tokenizer, PROMPTS, CONTINUATIONS, policy=policy, keep_logits=True, **settings)
    return [result.logits for result in forced], [result.stats for result in forced]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


@pytest.mark.parametrize("heads", [(8, 8), (8, 2), (8, 1)], ids=str)
@pytest.mark.parametrize("name", policies())
def test_gather_in_a_batch_equals_mask_alone(tokenizer, name, heads):
    """K19, K20: also says that neighbours, padding and the place of a finished row do not matter."""
    model, policy = make_model(heads=heads), policies()[name]
    expected, alone = logits(model, tokenizer, policy, mode="mask", batch_size=1)
    found, batched = logits(model, tokenizer, policy, mode="gather", batch_size=2)
    assert_same(found, expected)
    for one, other in zip(batched, alone, strict=True):
        assert one.active_by_kind == other.active_by_kind
        assert (one.active_tokens_peak, one.refreshes) == (other.active_tokens_peak, other.refreshes)


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "mistral"])
@pytest.mark.parametrize("name", ["zoomr_options", "h2o"])
def test_other_architectures(tokenizer, kind, name):
    model, policy = make_model(kind), policies()[name]
    expected, _ = logits(model, tokenizer, policy, mode="mask", batch_size=1)
    found, _ = logits(model, tokenizer, policy, mode="gather", batch_size=2)
    assert_same(found, expected)


@pytest.mark.parametrize("name", [name for name in policies() if not name.startswith("full")])
def test_these_policies_do_drop_something(model, tokenizer, name):
    """Guards the tests above: an equality of two full caches would say nothing."""
    full, _ = logits(model, tokenizer, policies()["full"], batch_size=3)
    found, stats = logits(model, tokenizer, policies()[name], batch_size=3)
    # one that chooses at each step what it attends to may hold everything
    assert policies()[name].chooses or all(one.active_tokens_mean < 0.8 * one.seen_tokens for one in stats)
    assert max((one - other).abs().max() for one, other in zip(found, full, strict=True)) > 1e-2
