"""The `transformers_serve` teacher: transformers' own server with a tiny random model, started by the stage."""

from importlib.util import find_spec

import pytest
from omegaconf import OmegaConf

from configs.cli import CONFIGS
from data_gen.ledger.tokens import ledger_tokenizer
from data_gen.summarize import summarize
from tests.data_gen.conftest import prepared_run, rows, summarize_run, trace

needs_server = pytest.mark.skipif(
    find_spec("fastapi") is None or find_spec("uvicorn") is None, reason='needs pip install "transformers[serving]"'
)


@needs_server
def test_replies_of_a_served_model_are_read_and_its_babble_is_listed(configure, tmp_path):
    """A random model writes until it is cut, which is a failure with its reason and its usage, not a summary."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = ledger_tokenizer()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(tmp_path / "served")
    tokenizer.save_pretrained(tmp_path / "served")
    prepared_run(tmp_path / "runs", [trace(0, ["Next is ada.", "So ada:374."])])
    cfg = configure(None)
    parts = [
        OmegaConf.load(CONFIGS / "teacher" / f"{name}.yaml") for name in ("openai_compatible", "transformers_serve")
    ]
    cfg.teacher = OmegaConf.merge(*parts)
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
