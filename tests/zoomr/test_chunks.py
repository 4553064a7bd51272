"""Teacher forcing in chunks computes what the decoding loop computes token by token."""

import pytest
import torch

from tests.zoomr.tiny import BOUNDARIES, make_model, policies, prompt_of, story
from zoomr import H2O, Full, SumR, ZoomR, teacher_forced
from zoomr.chunks import by_layer, forced_in_chunks, in_chunks
from zoomr.summaries.segments import boundary_table
from zoomr.trace import Refresh

PROMPTS = [prompt_of(seed, length) for seed, length in enumerate((5, 1, 13))]
STORIES = [
    story(3, paragraphs=4, length=(8, 14)),
    story(4, paragraphs=3, length=(7, 9), sentence=40),  # no boundary for long: two summaries between refreshes
    story(5, paragraphs=2, length=(8, 12), summary=(70, 75))[:-20],  # closed by force, and one left open
]


def chunked(model, tokenizer, policy, trace=None):
    logits, usages = [], []
    for number, (prompt, continuation) in enumerate(zip(PROMPTS, STORIES, strict=True)):
        found: list[torch.Tensor] = []
        (usage,) = forced_in_chunks(
            model,
            tokenizer,
            prompt,
            continuation,
            policies=[policy],
            visits=[found.append],
            traces=[trace],
            seed=number,
            number=number,
        )
        logits.append(torch.cat(found))
        usages.append(usage)
    return logits, usages


def assert_same_run(model, tokenizer, policy, mode):
    found, usages = chunked(model, tokenizer, policy)
    expected = teacher_forced(model, tokenizer, PROMPTS, STORIES, policy=policy, mode=mode, keep_logits=True)
    for one, other, usage in zip(found, expected, usages, strict=True):
        torch.testing.assert_close(one.log_softmax(-1), other.logits.log_softmax(-1), atol=1e-5, rtol=0)
        theirs = other.stats
        assert usage.active_by_kind == pytest.approx(theirs.active_by_kind)
        for name in ("active_tokens_peak", "refreshes", "forced_refreshes", "seen_tokens", "summaries", "unbalanced"):
            assert getattr(usage, name) == getattr(theirs, name), name


@pytest.mark.parametrize("mode", ["mask", "gather"])
@pytest.mark.parametrize("name", policies())
def test_chunks_equal_the_loop(model, tokenizer, name, mode):
    assert_same_run(model, tokenizer, policies()[name], mode)


@pytest.mark.parametrize("name", ["zoomr", "zoomr_span", "zoomr_options"])
@pytest.mark.parametrize(
    ("kind", "heads"), [("llama", (8, 8)), ("llama", (8, 1)), ("qwen2", (8, 2)), ("qwen3", (8, 2))]
)
def test_other_models(tokenizer, kind, heads, name):
    assert_same_run(make_model(kind, heads), tokenizer, policies()[name], "mask")


def test_policies_side_by_side_are_each_as_alone(model, tokenizer):
    """All at once, in whatever forwards they share, and more of them than one batch takes."""
    chosen = policies()
    found: dict[str, list[torch.Tensor]] = {name: [] for name in chosen}
    visits = [own.append for own in found.values()]
    usages = forced_in_chunks(
        model, tokenizer, PROMPTS[0], STORIES[0], policies=list(chosen.values()), visits=visits, boundaries=BOUNDARIES
    )
    for (name, policy), usage in zip(chosen.items(), usages, strict=True):
        own: list[torch.Tensor] = []
        settings = {"policies": [policy], "visits": [own.append], "boundaries": BOUNDARIES}
        (alone,) = forced_in_chunks(model, tokenizer, PROMPTS[0], STORIES[0], **settings)
        torch.testing.assert_close(torch.cat(found[name]), torch.cat(own), atol=1e-5, rtol=0)
        assert usage.active_by_kind == alone.active_by_kind and usage.refreshes == alone.refreshes


def test_refreshes_are_traced_alike(model, tokenizer):
    policy = ZoomR(window=8, vote_span=True)
    own: list[Refresh] = []
    theirs: list[Refresh] = []
    chunked(model, tokenizer, policy, trace=own.append)
    teacher_forced(model, tokenizer, PROMPTS, STORIES, policy=policy, mode="mask", batch_size=1, trace=theirs.append)
    assert [refresh.to_dict() for refresh in own] == [refresh.to_dict() for refresh in theirs]


def test_tokens_between_refreshes_share_a_forward(model, tokenizer):
    """Guards the speed: as many forwards as refreshes, not as tokens; a chunk ends where the row is due."""
    calls = []

    def forced(*chosen):
        nobody = [lambda _: None] * len(chosen)
        return forced_in_chunks(model, tokenizer, PROMPTS[0], STORIES[0], policies=chosen, visits=nobody)

    hook = model.register_forward_pre_hook(
        lambda module, args, kwargs: calls.append(kwargs["input_ids"][0].tolist()), with_kwargs=True
    )
    try:
        (usage,) = forced(ZoomR(window=8))
        chunks = calls[1:]  # the first is the prompt
        assert [token for chunk in chunks for token in chunk] == STORIES[0][:-1]
        boundaries = boundary_table(tokenizer)
        assert all(chunk[-1] in boundaries for chunk in chunks[:-1])
        assert usage.refreshes <= len(chunks) <= usage.refreshes + 1 < len(STORIES[0]) / 3
        calls.clear()
        forced(Full())
        assert len(calls) == 2
        calls.clear()
        forced(H2O(budget=16))
        assert len(calls) == 2
        calls.clear()
        forced(SumR(window=8))  # looks at positions alone
        assert len(calls) == 2
        calls.clear()
        forced(SumR(window=8), ZoomR(window=12), ZoomR(window=8, c=1))
        assert len(calls) == len(chunks) + 1
    finally:
        hook.remove()


def test_policies_whose_choice_is_not_known_beforehand_go_by_layer_or_by_step():
    left = {name: policy for name, policy in policies().items() if not in_chunks(policy)}
    layered = {name for name, policy in left.items() if by_layer(policy)}
    assert layered == {"snapkv", "snapkv_max", "h2o", "h2o_prompt", "rkv", "corm", "zipage", "rpc_growing"}
    steps = {"streaming_llm_reassigned", "random_attention", "random_attention_prompt", "rpc_prompt"}
    assert left.keys() - layered == steps | {"quest", "quest_second_layer"}
    assert not any(by_layer(policy) for name, policy in policies().items() if name not in left)
