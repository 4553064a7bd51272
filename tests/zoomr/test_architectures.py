"""Architectures by what their layers do: served exactly as transformers does, or refused in one sentence."""

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from tests.zoomr.tiny import PAD, VOCABULARY, make_model, prompt_of, story
from zoomr import H2O, Full, StreamingLLM, ZoomR, generate, teacher_forced
from zoomr.errors import UserError
from zoomr.rotary import Rotary

SMALL = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 2048,
    "initializer_range": 0.3,
    "pad_token_id": PAD,
    "tie_word_embeddings": False,
}
SERVED = {
    "llama": {},
    "qwen3": {},
    "qwen3_moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    "mixtral": {"num_local_experts": 4, "sliding_window": None},
    "gemma": {},
    "glm4": {"partial_rotary_factor": 0.5},
    "phi3": {"sliding_window": None},
    "cohere": {},  # interleaved rotation
    "olmo2": {},
    "smollm3": {"no_rope_layers": [1, 0]},  # one layer without rotation
    "granite": {},
    "gpt_neox": {"rotary_pct": 0.5, "num_key_value_heads": 8},
    "deepseek_v3": {  # latent attention: keys and values of different width
        "num_key_value_heads": 8,
        "kv_lora_rank": 16,
        "q_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 12,
        "n_routed_experts": 4,
        "n_group": 1,
        "topk_group": 1,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "first_k_dense_replace": 2,
    },
}


REFUSED = {"stablelm": {}, "bloom": {"n_layer": 2, "n_head": 8}}  # attention of their own, or biases on it


def tiny(kind):
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **(SMALL | SERVED.get(kind, REFUSED.get(kind, {}))))
    return AutoModelForCausalLM.from_config(config).eval()


@pytest.mark.parametrize("kind", REFUSED)
def test_what_goes_past_the_attention_interface_is_refused(tokenizer, kind):
    with pytest.raises(UserError, match=f"model: {kind} does not show keys and values"):
        generate(tiny(kind), tokenizer, [prompt_of(0, 9)], policy=Full(), max_new_tokens=3)


@pytest.mark.parametrize("kind", SERVED)
def test_a_full_cache_is_transformers_own_and_policies_are_their_oracle(tokenizer, kind):
    model, prompts = tiny(kind), [prompt_of(0, 9), prompt_of(1, 14)]
    settings = {"do_sample": False, "max_new_tokens": 24, "eos_token_id": None, "pad_token_id": PAD}
    expected = [model.generate(torch.tensor([prompt]), **settings)[0, len(prompt) :].tolist() for prompt in prompts]
    found = generate(model, tokenizer, prompts, policy=Full(), max_new_tokens=24, stop_ids=[])
    assert [one.token_ids for one in found] == expected
    told = [story(seed, paragraphs=3) for seed in range(2)]
    for policy in (ZoomR(window=8), H2O(budget=16)):
        settings = {"policy": policy, "keep_logits": True}
        masked = teacher_forced(model, tokenizer, prompts, told, mode="mask", batch_size=1, **settings)
        gathered = teacher_forced(model, tokenizer, prompts, told, mode="gather", **settings)
        for one, other in zip(masked, gathered, strict=True):
            scale = one.logits.abs().max()
            torch.testing.assert_close(one.logits / scale, other.logits / scale, atol=2e-5, rtol=0)


@pytest.mark.parametrize("kind", ["llama", "glm4", "cohere"])
def test_keys_are_turned_as_the_model_turns_them(kind):
    """Whole, in part, interleaved: keys rotated for their positions, moved by 5, are those of positions moved by 5."""
    model, seen = tiny(kind), []

    def keys(first):
        ids = torch.tensor([prompt_of(3, 6)])
        output = model(ids, position_ids=torch.arange(first, first + 6)[None], use_cache=True)
        layer = output.past_key_values.layers[0]
        return layer.keys[0]

    with torch.inference_mode():
        seen = [keys(0), keys(5)]
    rotary = Rotary.of(model)
    torch.testing.assert_close(rotary(seen[0], torch.full((6,), 5)), seen[1], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(rotary(seen[1], torch.full((6,), -5)), seen[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("policy", "setting"),
    [
        (StreamingLLM(budget=8, positions="reassigned"), "positions=reassigned"),
        (ZoomR(window=8, pre_rope=True), "pre_rope=True"),
        (ZoomR(window=8, votes_by="contrast"), "votes_by=contrast"),
    ],
    ids=["reassigned", "pre_rope", "contrast"],
)
def test_positions_of_keys_that_are_not_all_rotated_cannot_be_moved(tokenizer, policy, setting):
    with pytest.raises(UserError, match=f"{setting}: it is not known how this model rotates"):
        generate(tiny("smollm3"), tokenizer, [prompt_of(0, 9)], policy=policy, max_new_tokens=3)


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0},
        {
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "factor": 2.0,
            "original_max_position_embeddings": 32,
            "short_factor": [1.0] * 4,
            "long_factor": [2.0] * 4,
        },
    ],
    ids=["dynamic", "longrope"],
)
def test_rotations_that_change_with_the_length_are_refused_where_they_would(tokenizer, rope):
    model = make_model(max_position_embeddings=32, rope_parameters=rope)
    settings = {"policy": Full(), "stop_ids": []}
    [found] = generate(model, tokenizer, [prompt_of(0, 9)], max_new_tokens=23, **settings)
    assert len(found.token_ids) == 23
    with pytest.raises(UserError, match=r"beyond 32 tokens \(rope_type=(dynamic|longrope)\), and a row may come to 33"):
        generate(model, tokenizer, [prompt_of(0, 9)], max_new_tokens=24, **settings)
