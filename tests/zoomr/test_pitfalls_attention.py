"""Public bug reports as tests (ids of the list they come from): attention and its weights."""

import pytest
import torch

from tests.zoomr.decoding import decoding
from tests.zoomr.tiny import make_model, policies, prompt_of, story
from zoomr import Full, teacher_forced
from zoomr.attention import attend, attend_weighed
from zoomr.prefill import received_attention
from zoomr.tiers import SlotTiers

PROMPT, STORY = prompt_of(0, 9), story(2, paragraphs=4)


@pytest.mark.parametrize("heads", [(8, 8), (8, 2), (8, 1)], ids=str)
def test_k12_k13_attention_and_its_weights_by_hand(heads):
    """K13: policies that need weights compute them; nothing is asked of the model's attention output."""
    torch.manual_seed(0)
    query = torch.randn(2, heads[0], 1, 8)
    key, value = torch.randn(2, heads[1], 11, 8), torch.randn(2, heads[1], 11, 8)
    mask = torch.rand(2, 1, 1, 11) < 0.6
    expected, weights = torch.zeros(2, 1, heads[0], 8), torch.zeros(2, heads[1], 11)
    for row in range(2):
        for head in range(heads[0]):
            group = head * heads[1] // heads[0]
            scores = (key[row, group] @ query[row, head, 0]) * 0.3
            share = scores.masked_fill(~mask[row, 0, 0], float("-inf")).softmax(-1)
            expected[row, 0, head] = share @ value[row, group]
            weights[row, group] += share
    torch.testing.assert_close(attend(query, key, value, mask, 0.3), expected)
    output, given = attend_weighed(query, key, value, mask, 0.3)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(given, weights)


def test_k13_h2o_counts_every_prompt_query_in_blocks_without_a_square_matrix(monkeypatch):
    monkeypatch.setattr("zoomr.prefill.QUERY_BLOCK", 5)
    torch.manual_seed(0)
    query, key = torch.randn(2, 4, 13, 8), torch.randn(2, 2, 13, 8)
    padding = torch.arange(13) >= torch.tensor([[0], [4]])
    expected = torch.zeros(2, 2, 13)
    for row, pad in enumerate((0, 4)):
        for head in range(4):
            for at in range(pad, 13):
                scores = key[row, head // 2, pad : at + 1] @ query[row, head, at] * 0.4
                expected[row, head // 2, pad : at + 1] += scores.softmax(-1)
    torch.testing.assert_close(received_attention(query, key, padding, 0.4), expected)


def test_k17_k22_a_full_cache_of_ours_does_no_bookkeeping_per_token(model):
    """No eviction, no mask and no copy on the host where nothing is dropped."""
    batch, _ = decoding(model, Full(), [PROMPT], [STORY])
    for _ in range(5):
        batch.step()
    tiers = batch.memory.tiers
    assert isinstance(tiers, SlotTiers) and not tiers.tensors()["host"]
    assert tiers.read(0)[2] is None and batch.rows[0].refreshes == 0


@pytest.mark.parametrize("name", ["zoomr", "h2o"])
def test_bf16_stays_within_its_band(tokenizer, name):
    """Half precision: the same choices, logits apart by rounding alone; equality is for fp32."""
    model = make_model(dtype=torch.bfloat16)
    settings = {"policy": policies()[name], "keep_logits": True}
    [mask] = teacher_forced(model, tokenizer, [PROMPT], [STORY], mode="mask", **settings)
    [gather] = teacher_forced(model, tokenizer, [PROMPT], [STORY], mode="gather", **settings)
    assert (mask.logits - gather.logits).abs().mean() < 0.05 * mask.logits.std()
    assert (mask.top == gather.top).float().mean() > 0.9
