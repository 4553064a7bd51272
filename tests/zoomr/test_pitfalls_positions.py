"""Public bug reports as tests (ids of the list they come from): positions and padding."""

from dataclasses import replace

import pytest
import torch

from tests.zoomr.decoding import decoding
from tests.zoomr.tiny import make_model, policies, prompt_of, story
from zoomr import Full, StreamingLLM, ZoomR, teacher_forced
from zoomr.rotary import Rotary

PROMPT, STORY = prompt_of(0, 9), story(2, paragraphs=4)


@pytest.mark.parametrize("name", policies())
def test_k01_positions_count_tokens_seen_not_rows_kept(model, tokenizer, name):
    positions = []

    def note(module, args, kwargs):
        positions.append(kwargs["position_ids"].flatten().tolist())

    handle = model.register_forward_pre_hook(note, with_kwargs=True)
    teacher_forced(model, tokenizer, [PROMPT], [STORY], policy=policies()[name])
    handle.remove()
    assert [one for call in positions for one in call] == list(range(len(PROMPT) + len(STORY) - 1))


@pytest.mark.parametrize("positions", ["absolute", "reassigned"])
def test_k02_k03_effective_positions_of_kept_keys(positions):
    """Sinks 2, budget 6; the logits equal a forward whose keys are all rotated for the declared positions."""
    model = make_model(layers=1)
    targets = [prompt_of(8, 14)]
    policy = StreamingLLM(budget=6, sinks=2, positions=positions)
    _, forcing = batch = decoding(model, policy, [PROMPT[:3]], targets)
    while batch[0].rows:
        batch[0].step()
    tokens = PROMPT[:3] + targets[0]
    for index in range(4, 14):
        newest = 3 + index - 1
        kept = [0, 1, *range(max(2, newest - 4), newest + 1)]
        place = kept if positions == "absolute" else list(range(len(kept)))
        model.set_attn_implementation("eager")
        # one layer: a key depends on its own token alone, so that kept tokens at given positions are the cache
        with torch.inference_mode():
            logits = model(torch.tensor([[tokens[k] for k in kept]]), position_ids=torch.tensor([place])).logits
        torch.testing.assert_close(forcing.logits[0][index], logits[0, -1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("last", [7, 16, 33])
def test_k04_one_token_writes_past_the_limit(last):
    """Keeping the last S tokens of one layer equals a dense run on the suffix: distances are all that counts."""
    model = make_model(layers=1)
    targets = [prompt_of(1, 2 * last + 5)]
    batch, forcing = decoding(model, StreamingLLM(budget=last, sinks=0), [PROMPT], targets)
    while batch.rows:
        batch.step()
    tokens = PROMPT + targets[0]
    model.set_attn_implementation("sdpa")
    for index in range(last + 1, 2 * last + 5, 3):
        stop = len(PROMPT) + index
        with torch.inference_mode():
            logits = model(torch.tensor([tokens[max(0, stop - last - 1) : stop]])).logits[0, -1]
        torch.testing.assert_close(forcing.logits[0][index], logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", [name for name in policies() if not name.endswith("_prompt")])
def test_k05_prefill_logits_are_those_of_the_full_cache(model, tokenizer, name):
    """With a prompt longer than the budget: eviction comes after attention."""
    long = prompt_of(3, 40)
    [full] = teacher_forced(model, tokenizer, [long], [[20]], policy=Full(), keep_logits=True)
    [found] = teacher_forced(model, tokenizer, [long], [[20]], policy=policies()[name], keep_logits=True)
    assert torch.equal(found.logits, full.logits)


def test_k20_padding_never_enters_keys_means_or_sinks(model, tokenizer):
    """The mean keys of a row in a left-padded batch equal those of the row alone."""
    batch, _ = decoding(model, ZoomR(window=8), [prompt_of(1, 30), PROMPT], [STORY, STORY])
    alone, _ = decoding(model, ZoomR(window=8), [PROMPT], [STORY])
    for _ in range(60):
        batch.step()
        alone.step()
    number = alone.rows[0].tracker.finished
    assert number > 1
    found, expected = (one.memory.state.means.of([row], number) for one, row in ((batch, 1), (alone, 0)))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_rotation_moves_a_key_to_another_position(model):
    rotary = Rotary.of(model)
    keys, shift = torch.randn(3, 5, 8), torch.tensor([0, 3, 9, 40, 7])
    there = rotary(keys, shift)
    torch.testing.assert_close(rotary(there, -shift), keys, atol=1e-5, rtol=1e-5)
    assert torch.equal(there[:, 0], keys[:, 0])
    assert replace(ZoomR(), pre_rope=True).pre_rope
