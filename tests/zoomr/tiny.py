"""Tiny random models and structured token streams, built in memory."""

import random

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from zoomr.policies import (
    CORM,
    H2O,
    RKV,
    RPC,
    Full,
    GivenZoom,
    OracleZoom,
    Quest,
    RandomAttention,
    RandomZoom,
    RecencyZoom,
    SnapKV,
    StreamingLLM,
    SumR,
    Zipage,
    ZoomR,
)
from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY

torch.set_num_threads(1)

WORDS = ["<pad>", "<s>", "</s>", "<end>", BEGIN_SUMMARY, END_SUMMARY, ".", "!", ":", "\n\n"]
PAD, BOS, EOS, END, BEGIN, CLOSE, STOP, BANG, COLON, BREAK = range(10)
VOCABULARY = WORDS + [f"w{i}" for i in range(54)]
BOUNDARIES = frozenset({STOP, BANG, COLON, BREAK})


KINDS = {
    "llama": (LlamaConfig, LlamaForCausalLM, {}),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, {}),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 8}),
    "mistral": (MistralConfig, MistralForCausalLM, {"sliding_window": None}),
}


def make_model(kind="llama", heads=(8, 2), layers=2, seed=0, dtype=torch.float32, **overrides):
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
    model = model_class(config_class(**(settings | extra | overrides))).eval()
    model.lm_head.weight.data *= 0.05  # logits of order one, so that absolute tolerances mean something
    return model.to(dtype)


def story(seed, paragraphs=5, length=(8, 20), summary=(1, 5), sentence=6, tail=7):
    """A continuation with the structure of a trace: paragraphs of sentences, each followed by a summary."""
    generator = random.Random(seed)
    tokens = []

    def words(number):
        return [generator.randrange(10, len(VOCABULARY)) for _ in range(number)]

    for _ in range(paragraphs):
        for number in range(generator.randint(*length)):
            tokens += [generator.choice(sorted(BOUNDARIES))] if number % sentence == sentence - 1 else words(1)
        tokens += [BEGIN, *words(generator.randint(*summary)), CLOSE]
    return tokens + words(tail) + [STOP] + words(3)


def prompt_of(seed, length):
    return [random.Random(seed).randrange(10, len(VOCABULARY)) for _ in range(length)]


def policies(window=8, budget=16):
    """Every policy, small enough to drop much of a `story`, by name."""
    return {
        "full": Full(),
        "full_offload": Full(lower="layerwise"),
        "zoomr": ZoomR(window=window),
        "zoomr_narrow": ZoomR(window=max(2, window // 4), c=1, k=1),
        "zoomr_every_token": ZoomR(window=window, every=1, keep_open=True),
        "zoomr_span": ZoomR(window=window, vote_span=True, votes_by="mass"),
        "zoomr_options": ZoomR(window=window, exclude_covered=True, per_kv_head=True, pre_rope=True),
        "zoomr_contrast": ZoomR(window=window, votes_by="contrast", tail=2, most_shown=2),
        "zoomr_layerwise": ZoomR(window=window, lower="layerwise"),
        "sumr": SumR(window=window),
        "sumr_tail": SumR(window=window, tail=3),
        "random_zoom": RandomZoom(window=window),
        "recency_zoom": RecencyZoom(window=window),
        "oracle_zoom": OracleZoom(window=window),
        "given_zoom": GivenZoom(window=window, targets=((None, 0, 0, 1, 5),) * 16),
        "streaming_llm": StreamingLLM(budget=budget),
        "streaming_llm_prompt": StreamingLLM(budget=budget, keep_prompt=True),
        "streaming_llm_reassigned": StreamingLLM(budget=budget, positions="reassigned"),
        "random_attention": RandomAttention(budget=budget, interval=6, recent=6),
        "random_attention_prompt": RandomAttention(budget=budget + 8, interval=6, recent=3, keep_prompt=True),
        "snapkv": SnapKV(budget=budget, interval=6, history=6),
        "snapkv_max": SnapKV(budget=budget, interval=6, history=4, group="max", pool="max", kernel=3),
        "rkv": RKV(budget=budget, interval=6, history=4, kernel=3),
        "rpc_prompt": RPC(budget=budget + 8, period=6, recent=3, kernel=3),
        "rpc_growing": RPC(period=8, ratio=4, recent=3, kernel=3, scope="head"),
        "corm": CORM(budget=budget, interval=4, history=8, recent=5),
        "zipage": Zipage(budget=budget, interval=4, block=5, history=4, kernel=3),
        "quest": Quest(attended=12, page=4, full_layers=0),
        "quest_second_layer": Quest(attended=6, page=2, full_layers=1, newest=False),
        "h2o": H2O(budget=budget),
        "h2o_prompt": H2O(budget=budget, keep_prompt=True),
    }
