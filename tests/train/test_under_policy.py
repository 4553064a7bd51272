"""Training under a policy: a forward sees what decoding under the policy would see."""

import pytest
import torch

from tests.train.test_fit import gradients, trainer_for
from tests.zoomr.conftest import tokenizer  # noqa: F401
from tests.zoomr.tiny import make_model, policies, prompt_of, story
from train.under_policy import UnderPolicy
from zoomr import teacher_forced
from zoomr.errors import UserError
from zoomr.policies import H2O, OracleZoom, SumR, ZoomR

IGNORED = -100
PROMPTS = [prompt_of(seed, length) for seed, length in enumerate((5, 1, 12))]
STORIES = [story(seed, paragraphs=3 + seed, length=(7, 14)) for seed in range(3)]


def batch():
    """Prompts and stories with their labels, padded on the right."""
    rows = [prompt + told for prompt, told in zip(PROMPTS, STORIES, strict=True)]
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    labels = torch.tensor(
        [[IGNORED] * len(p) + s + [IGNORED] * (width - len(p) - len(s)) for p, s in zip(PROMPTS, STORIES, strict=True)]
    )
    return ids, labels


def assert_as_decoded(model, tokenizer, policy):  # noqa: F811
    # One by one, since a policy that draws has a seed of its own for every prompt.
    expected = [
        teacher_forced(model, tokenizer, [prompt], [told], policy=policy, mode="mask", keep_logits=True)[0].logits
        for prompt, told in zip(PROMPTS, STORIES, strict=True)
    ]
    UnderPolicy(policy, tokenizer).install(model)
    ids, labels = batch()
    logits = model.train()(input_ids=ids, labels=labels, attention_mask=torch.ones_like(ids)).logits
    for found, prompt, own in zip(logits, PROMPTS, expected, strict=True):
        torch.testing.assert_close(found[len(prompt) - 1 :][: len(own)], own, atol=1e-5, rtol=0)
    return logits


@pytest.mark.parametrize("name", ["sumr", "recency_zoom", "random_zoom", "streaming_llm"])
def test_a_policy_that_asks_no_head_is_decodings_own(tokenizer, name):  # noqa: F811
    assert_as_decoded(make_model(), tokenizer, policies()[name])


@pytest.mark.parametrize(
    "policy",
    [
        ZoomR(window=8),
        OracleZoom(window=8),
        ZoomR(window=4, exclude_covered=True, with_delimiters=True, keep_open=True),
        ZoomR(window=8, vote_span=True, pre_rope=True),
        ZoomR(window=8, votes_by="contrast", tail=2),
    ],
    ids=["zoomr", "oracle_zoom", "options", "span", "contrast"],
)
def test_votes_are_decodings_where_no_layer_builds_on_another(tokenizer, policy):  # noqa: F811
    """Queries and keys of one layer do not depend on what is attended to."""
    assert_as_decoded(make_model(layers=1), tokenizer, policy)


def test_evaluation_sees_everything(tokenizer):  # noqa: F811
    model = make_model()
    ids, labels = batch()
    expected = model(input_ids=ids).logits
    UnderPolicy(SumR(window=8), tokenizer).install(model)
    torch.testing.assert_close(model(input_ids=ids, labels=labels).logits, expected, atol=1e-5, rtol=0)
    assert not torch.allclose(model.train()(input_ids=ids, labels=labels).logits, expected, atol=1e-3)


def test_a_share_of_the_rows_learns_under_it(tokenizer):  # noqa: F811
    """Each row sees all or what the policy leaves, and neither in every draw."""
    torch.manual_seed(0)
    ids, labels = batch()
    model = make_model().train()
    everything = model(input_ids=ids).logits
    UnderPolicy(SumR(window=8), tokenizer, share=0.5).install(model)
    draws = [model(input_ids=ids, labels=labels).logits for _ in range(6)]
    sees_all = [
        [torch.allclose(own, full, atol=1e-5) for own, full in zip(drawn, everything, strict=True)] for drawn in draws
    ]
    assert all({flags[row] for flags in sees_all} == {True, False} for row in range(len(PROMPTS)))
    UnderPolicy(SumR(window=8), tokenizer).install(other := make_model().train())
    under = other(input_ids=ids, labels=labels).logits
    for drawn, flags in zip(draws, sees_all, strict=True):
        for row, flag in enumerate(flags):
            torch.testing.assert_close(drawn[row], (everything if flag else under)[row], atol=1e-5, rtol=0)


def test_what_is_not_supported_is_said(tokenizer):  # noqa: F811
    with pytest.raises(UserError, match="policy=H2O: one that chooses for all heads together is needed"):
        UnderPolicy(H2O(budget=8), tokenizer)


def test_padding_is_no_text(tokenizer, monkeypatch):  # noqa: F811
    """Its id may be that of a boundary, and must not cost a refresh a token."""
    followed = []
    monkeypatch.setattr(
        "train.under_policy.visible_under", lambda policy, site, ids, *rest: followed.append(len(ids)) or True
    )
    UnderPolicy(SumR(window=8), tokenizer).install(model := make_model().train())
    ids, labels = batch()
    model(input_ids=ids, labels=labels)
    assert followed == [len(prompt) + len(told) for prompt, told in zip(PROMPTS, STORIES, strict=True)]


def test_the_trainer_learns_from_it(workshop, tmp_path):
    """A window that covers all changes no gradient; a short one does."""
    found = {}
    for name, overrides in {
        "off": [],
        "wide": ["+sft.policy._target_=zoomr.SumR", "+sft.policy.window=4096"],
        "narrow": ["+sft.policy._target_=zoomr.SumR", "+sft.policy.window=4"],
    }.items():
        trainer = trainer_for(workshop, tmp_path / name, "lora.dropout=0", *overrides)
        rows = trainer.data_collator([trainer.train_dataset[i] for i in range(3)])
        trainer.model.train()
        trainer.compute_loss(trainer.model, dict(rows)).backward()
        found[name] = gradients(trainer.model)
    for name, gradient in found["off"].items():
        torch.testing.assert_close(found["wide"][name], gradient, atol=1e-5, rtol=0)
    assert any(
        not torch.allclose(found["narrow"][name], gradient, atol=1e-4) for name, gradient in found["off"].items()
    )
