"""The loader: delimiters as single tokens with deterministic rows, in base models of every kind of vocabulary."""

import pytest
import torch
from transformers import AutoTokenizer

from tests.train.tiny import TEMPLATES, make_tokenizer, save_base
from zoomr.errors import UserError
from zoomr.loading import DELIMITERS, add_delimiters, load, load_tokenizer

CONTEXTS = ["{}", "\n{}", "x.{}", "x. {}", "{}\n", "{}x", "{}{}", "2{}2", "  {}  "]


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
@pytest.mark.parametrize("context", CONTEXTS)
def test_t23_a_delimiter_is_one_token_in_every_context(template, context, tmp_path):
    tokenizer = make_tokenizer(template)
    add_delimiters(tokenizer)
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    for made in (tokenizer, load_tokenizer(tmp_path)):
        for token in DELIMITERS:
            text = context.replace("{}", token)
            ids = made(text, add_special_tokens=False).input_ids
            assert ids.count(made.convert_tokens_to_ids(token)) == context.count("{}")
            assert made.decode(ids, skip_special_tokens=False) == text
            assert token not in made.decode(ids, skip_special_tokens=True)


def test_t19_only_the_two_delimiters_are_added(tmp_path):
    save_base(tmp_path)
    before, after = make_tokenizer(), load_tokenizer(tmp_path)
    assert set(after.get_vocab().items()) - set(before.get_vocab().items()) == {
        (token, len(before) + i) for i, token in enumerate(DELIMITERS)
    }
    assert (after.eos_token, after.pad_token, after.chat_template) == (before.eos_token, None, before.chat_template)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("spare_rows", [0, 1, 7])
def test_new_rows_are_the_mean_of_the_sub_tokens(family, tied, spare_rows, tmp_path):
    save_base(tmp_path, family=family, tied=tied, spare_rows=spare_rows)
    plain = AutoTokenizer.from_pretrained(tmp_path)
    rows = len(make_tokenizer()) + spare_rows
    model, tokenizer = load(tmp_path)
    layers = model.get_input_embeddings(), model.get_output_embeddings()
    for layer in layers:
        assert len(layer.weight) == max(rows, len(plain) + 2) == model.config.vocab_size
        for token in DELIMITERS:
            pieces = plain(token, add_special_tokens=False).input_ids
            assert len(pieces) > 1
            expected = layer.weight[pieces].mean(0)
            torch.testing.assert_close(layer.weight[tokenizer.convert_tokens_to_ids(token)], expected)
    assert (layers[0].weight is layers[1].weight) == tied == model.config.tie_word_embeddings


def test_a_saved_model_with_delimiters_is_loaded_as_it_is(tmp_path):
    save_base(tmp_path / "base")
    model, tokenizer = load(tmp_path / "base")
    with torch.no_grad():
        model.get_input_embeddings().weight[-2:] += 1
    model.save_pretrained(tmp_path / "again")
    tokenizer.save_pretrained(tmp_path / "again")
    again, _ = load(tmp_path / "again")
    for (name, a), b in zip(model.named_parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b), name


def test_dtype_and_attention_are_selectable(tmp_path):
    save_base(tmp_path)
    model, _ = load(tmp_path, dtype="bfloat16", attn_implementation="eager")
    assert model.dtype == torch.bfloat16
    assert model.config._attn_implementation == "eager"


@pytest.mark.parametrize("path", ["no/such-model", "./nowhere", "a/b/c/d"])
def test_a_model_that_cannot_be_had_is_named(path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=f"^model.path={path} at model.revision=main is neither"):
        load(path, revision="main")


def test_a_directory_without_a_model_is_named(tmp_path):
    with pytest.raises(UserError, match="holds no model"):
        load(tmp_path)
