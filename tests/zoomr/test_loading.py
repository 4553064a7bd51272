"""The loader: delimiters as single tokens with deterministic rows, in base models of every kind of vocabulary."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.train.tiny import TEMPLATES, make_tokenizer, save_base
from zoomr.errors import UserError
from zoomr.loading import DELIMITERS, add_delimiters, load, load_tokenizer
from zoomr.summaries.segments import boundary_table, delimiter_ids

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


@pytest.mark.parametrize("path", ["no/such-model", "./nowhere", "a/b/c/d", "os.path:somewhere"])
def test_a_model_that_cannot_be_had_is_named(path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=f"^path={path} at revision=main is neither"):
        load(path, revision="main")


def test_a_directory_without_a_model_is_named(tmp_path):
    with pytest.raises(UserError, match="holds no model"):
        load(tmp_path)


def test_the_last_export_of_a_stage_and_each_by_name_are_loaded(tmp_path):
    save_base(tmp_path / "micro-1a" / "merged")
    (tmp_path / "latest").write_text("micro-1a")
    for path in (tmp_path / "latest", tmp_path / "micro-1a", tmp_path / "micro-1a" / "merged"):
        model, tokenizer = load(path)
        assert model.get_input_embeddings().weight.shape[0] == len(tokenizer)
    (tmp_path / "latest").write_text("gone-2b\n")
    with pytest.raises(UserError, match="^path=.*latest is neither|^path=.*latest holds no model"):
        load(tmp_path / "latest")
    with pytest.raises(UserError, match="^path=.*config.json holds no model"):
        load(tmp_path / "micro-1a" / "merged" / "config.json")


WORDS = ["a", "b", "c", ".", "x!", "\n\n", "[U]"]


def with_holes(kind, ids):
    vocabulary = dict(zip(WORDS, ids, strict=True))
    made = {
        "words": lambda: models.WordLevel(vocabulary, "[U]"),
        "pairs": lambda: models.BPE(vocabulary, []),
        "pieces": lambda: models.WordPiece(vocabulary, unk_token="[U]"),
    }
    core = Tokenizer(made[kind]())
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[U]")


@pytest.mark.parametrize("kind", ["words", "pairs", "pieces"])
@pytest.mark.parametrize(
    "ids", [[0, 1, 4, 5, 6, 8, 9], [2, 3, 4, 5, 6, 7, 8], [0, 1, 2, 3, 4, 5, 40], [6, 5, 9, 3, 2, 1, 0]]
)
def test_n08_delimiters_lie_above_every_id_in_use(kind, ids, tmp_path):
    tokenizer = with_holes(kind, ids)
    before = tokenizer.get_vocab()
    config = LlamaConfig(
        vocab_size=max(ids) + 1, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1
    )
    LlamaForCausalLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    weight = LlamaForCausalLM.from_pretrained(tmp_path).get_input_embeddings().weight
    model, loaded = load(tmp_path)
    assert delimiter_ids(loaded) == (max(ids) + 1, max(ids) + 2)
    assert before.items() <= loaded.get_vocab().items()
    assert torch.equal(model.get_input_embeddings().weight[: max(ids) + 1], weight)
    assert len(model.get_input_embeddings().weight) == max(ids) + 3
    assert boundary_table(loaded) == {before[word] for word in (".", "x!", "\n\n")}
    loaded.save_pretrained(tmp_path)
    assert load_tokenizer(tmp_path).get_vocab() == loaded.get_vocab()


def test_n08_a_vocabulary_that_takes_no_ids_above_its_own_is_refused(monkeypatch):
    tokenizer = with_holes("words", [1, 2, 7, 8, 9, 5, 0])
    monkeypatch.setattr(type(tokenizer), "backend_tokenizer", None)
    with pytest.raises(UserError, match="has unused ids and takes no tokens above them"):
        add_delimiters(tokenizer)
