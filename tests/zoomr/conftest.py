"""Tiny random models and a toy tokenizer, built in memory."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from zoomr.segments import BEGIN_SUMMARY, END_SUMMARY

torch.set_num_threads(1)

WORDS = ["<pad>", "<s>", "</s>", "<end>", BEGIN_SUMMARY, END_SUMMARY, ".", "!", ":", "\n\n"]
PAD, BOS, EOS, END, BEGIN, CLOSE, STOP, BANG, COLON, BREAK = range(10)
VOCABULARY = WORDS + [f"w{i}" for i in range(54)]
BOUNDARIES = frozenset({STOP, BANG, COLON, BREAK})


@pytest.fixture(scope="session")
def tokenizer():
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token="<pad>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", bos_token="<s>", eos_token="</s>")
    made.add_special_tokens({"additional_special_tokens": [BEGIN_SUMMARY, END_SUMMARY]})
    return made


KINDS = {
    "llama": (LlamaConfig, LlamaForCausalLM, {}),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, {}),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 8}),
    "mistral": (MistralConfig, MistralForCausalLM, {"sliding_window": None}),
}


def make_model(kind="llama", heads=(8, 2), layers=2, seed=0, **overrides):
    """A random model; (query heads, KV heads), head dimension 8; weights large enough for peaked attention."""
    config_class, model_class, extra = KINDS[kind]
    settings = {
        "vocab_size": len(VOCABULARY),
        "hidden_size": heads[0] * 8,
        "intermediate_size": 64,
        "num_hidden_layers": layers,
        "num_attention_heads": heads[0],
        "num_key_value_heads": heads[1],
        "max_position_embeddings": 4096,
        "initializer_range": 0.3,
        "tie_word_embeddings": False,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
    }
    torch.manual_seed(seed)
    return model_class(config_class(**(settings | extra | overrides))).eval()


@pytest.fixture(scope="session")
def model():
    return make_model()
