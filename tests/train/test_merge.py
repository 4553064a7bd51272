"""Exported checkpoints answer as their adapter does, whatever is tied, padded or rounded."""

import json

import pytest
import torch
from safetensors.torch import load_file

import train.export
from tests.train.tiny import LLAMA3, save_base
from train.lora import Lora, adapt, finish_adapter
from train.merge import merge
from zoomr.errors import UserError
from zoomr.loading import load, load_tokenizer
from zoomr.prompts import end_of_turn


def random_adapter(directory, base, std=0.1):
    """An adapter of which every trained tensor is random, the delimiters' rows too."""
    model, tokenizer = load(base)
    adapted = adapt(model, tokenizer, Lora(dropout=0))
    generator = torch.Generator().manual_seed(1)
    for parameter in adapted.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=std, generator=generator)
    adapted.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    (directory / "training_args.bin").touch()
    finish_adapter(directory, str(base), None)
    return adapted


FAMILIES = ["llama tied", "llama untied", "qwen2 tied padded", "qwen3 untied padded"]
OTHERS = ["gpt_neox tied", "gpt_neox untied", "gpt2 tied", "qwen3_moe untied", "mixtral tied"]


@pytest.fixture(params=FAMILIES)
def exported(request, tmp_path):
    family, tied, *padded = request.param.split()
    base = save_base(tmp_path / "base", family=family, tied=tied == "tied", spare_rows=9 if padded else 0)
    adapted = random_adapter(tmp_path / "adapter", base)
    return adapted, tmp_path / "adapter", tmp_path / "merged"


IDS = torch.arange(260, 336)[None]


@pytest.mark.parametrize("exported", FAMILIES + OTHERS, indirect=True)
@torch.inference_mode()
def test_t01_t03_t04_n15_adapter_and_merge_reload_to_the_trained_logits(exported):
    adapted, adapter, merged = exported
    gaps = merge(adapter, merged, "float32", 1e-4)
    expected = adapted.eval()(IDS).logits
    for path in (adapter, merged):
        model, tokenizer = load(path)
        torch.testing.assert_close(model(IDS).logits, expected, atol=1e-4, rtol=0)
        assert tokenizer.get_vocab() == load_tokenizer(adapter).get_vocab()
    assert max(gaps.values()) < 1e-4
    shared = model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert model.config.tie_word_embeddings == shared


def test_no_weight_is_ever_held_in_float64(exported, monkeypatch):
    """In float64 a model of 8B parameters takes 60 GiB."""
    _, adapter, merged = exported
    seen = []
    forward = torch.nn.Linear.forward
    monkeypatch.setattr(torch.nn.Linear, "forward", lambda self, x: seen.append(self.weight.dtype) or forward(self, x))
    merge(adapter, merged, "bfloat16", 1e-4)
    assert set(seen) == {torch.float32}


def test_t05_the_merge_is_a_plain_checkpoint_that_needs_no_peft(exported):
    """Serving engines refuse adapters with token rows; the merge has the base's tensors and nothing else."""
    _, adapter, merged = exported
    merge(adapter, merged, "float32", 1e-4)
    model, _ = load(adapter.with_name("base"))
    tied = model.config.tie_word_embeddings
    expected = {name for name in model.state_dict() if not (tied and name == "lm_head.weight")}
    assert set(load_file(merged / "model.safetensors")) == expected
    assert not (merged / "adapter_config.json").exists()
    assert "Serving" in (train.export.__doc__ or "")


def test_t20_bfloat16_is_rounded_once_after_a_float32_merge(exported):
    adapted, adapter, merged = exported
    gaps = merge(adapter, merged, "bfloat16", 1e-4)
    assert gaps["merge"] < 1e-4
    assert gaps["reload"] < 1e-4 < gaps["total"]
    stored = load(merged, dtype="auto")[0].state_dict()["model.layers.0.mlp.up_proj.weight"]
    exact = adapted.merge_and_unload().state_dict()["model.layers.0.mlp.up_proj.weight"]
    assert torch.equal(stored, exact.to(torch.bfloat16))


def test_t20_tokenizer_template_and_generation_config_lie_beside_the_weights(exported):
    _, adapter, merged = exported
    merge(adapter, merged, "float32", 1e-4)
    for name in ("tokenizer.json", "chat_template.jinja"):
        assert (merged / name).read_text() == (adapter / name).read_text()
    assert (merged / "model.safetensors").exists()
    assert not list(merged.glob("*.bin"))


def test_t07_generation_stops_at_the_token_that_rows_end_with(tmp_path):
    base = save_base(tmp_path / "base", template=LLAMA3)
    random_adapter(tmp_path / "adapter", base)
    merge(tmp_path / "adapter", tmp_path / "merged", "float32", 1e-4)
    model, tokenizer = load(tmp_path / "merged")
    assert end_of_turn(tokenizer) != tokenizer.eos_token_id
    assert set(model.generation_config.eos_token_id) == {end_of_turn(tokenizer), tokenizer.eos_token_id}


def test_t03_an_adapter_that_trained_a_tied_head_apart_is_refused(tmp_path):
    base = save_base(tmp_path / "base", tied=True)
    model, tokenizer = load(base)
    from peft import LoraConfig, get_peft_model

    apart = get_peft_model(
        model, LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], modules_to_save=["lm_head"])
    )
    with torch.no_grad():
        apart.get_output_embeddings().modules_to_save["default"].weight += 1
    apart.save_pretrained(tmp_path / "adapter", save_embedding_layers=False)
    tokenizer.save_pretrained(tmp_path / "adapter")
    with pytest.raises(UserError, match="head apart from the embedding"):
        merge(tmp_path / "adapter", tmp_path / "merged", "float32", 1e-4)
    assert not (tmp_path / "merged").exists()


def test_a_difference_beyond_the_tolerance_is_refused(tmp_path):
    base = save_base(tmp_path / "base")
    random_adapter(tmp_path / "adapter", base)
    with pytest.raises(UserError, match="export.tolerance=0"):
        merge(tmp_path / "adapter", tmp_path / "merged", "float32", 0.0)
    assert not (tmp_path / "merged").exists()


def test_a_saved_adapter_holds_no_embeddings_and_the_same_bytes_each_time(tmp_path):
    base = save_base(tmp_path / "base")
    random_adapter(tmp_path / "one", base)
    random_adapter(tmp_path / "two", base)
    names = load_file(tmp_path / "one" / "adapter_model.safetensors").keys()
    assert all("lora_" in name or "trainable_tokens_delta" in name for name in names)
    for file in ("adapter_config.json", "adapter_model.safetensors"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert json.loads((tmp_path / "one" / "adapter_config.json").read_text())["base_model_name_or_path"] == str(base)
