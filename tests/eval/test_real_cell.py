"""A cell with the real decoder on a tiny random model: batches, resumption and traces."""

import pytest
import torch
from omegaconf import OmegaConf
from transformers import LlamaConfig, LlamaForCausalLM

from data_gen.ledger.tokens import ledger_tokenizer
from eval.generate import SAMPLES, generate_cell
from eval.view import render
from pipeline import read_manifest, read_rows, write_rows


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    directory = tmp_path_factory.mktemp("base")
    tokenizer = ledger_tokenizer()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=32, max_position_embeddings=512, initializer_range=0.3, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def cell(base, root, policy, batch_size=4, samples=2):
    name, settings = policy
    cfg = OmegaConf.create(
        {
            "paths": {"runs": str(root)},
            "model": {"name": "tiny", "path": str(base), "revision": None, "dtype": "float32"},
            "checkpoint": "base",
            "benchmark": {
                "_target_": "data_gen.benchmarks.DrawnBenchmark", "name": "ledger", "world": "ledger",
                "lengths": [4, 5], "count": 3,
            },
            "generation": {"temperature": 0.8, "top_p": 0.9, "samples": samples, "max_new_tokens": 24},
            "method": {"name": name} | settings,
            "match": {"method": "zoomr", "policy": {"c": 2}, "statistic": "peak", "checkpoint": None},
            "system_prompt": None, "seed": 0, "limit": None, "shard": None, "batch_size": batch_size, "traces": 1,
            "device": "cpu",
        }
    )  # fmt: skip
    generate_cell(cfg)
    newest = (root / "generate" / "latest").read_text()
    return root / "generate" / newest


def timeless(path):
    return [{key: value for key, value in row.items() if key != "tokens_per_s"} for row in read_rows(path / SAMPLES)]


ZOOMR = ("zoomr", {"_target_": "zoomr.ZoomR", "c": 2, "k": 2, "window": 8})


def test_batch_size_changes_no_sample(base, tmp_path):
    first = timeless(cell(base, tmp_path / "one", ZOOMR, batch_size=1))
    second = timeless(cell(base, tmp_path / "four", ZOOMR, batch_size=4))
    keys = ("id", "seed", "text", "token_ids", "status", "prompt_hash", "active_tokens_peak")
    assert [[row[key] for key in keys] for row in first] == [[row[key] for key in keys] for row in second]


def test_a_resumed_cell_equals_the_uninterrupted_one(base, tmp_path):
    path = cell(base, tmp_path / "runs", ZOOMR)
    whole = timeless(path)
    write_rows(path / SAMPLES, read_rows(path / SAMPLES)[2:5])
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text().replace(f'"ended": "{read_manifest(path)["ended"]}"', '"ended": null'))
    assert timeless(cell(base, tmp_path / "runs", ZOOMR)) == whole


def test_baselines_get_zoomrs_budget_and_stay_within_it(base, tmp_path):
    cell(base, tmp_path / "runs", ZOOMR)
    path = cell(base, tmp_path / "runs", ("h2o", {"_target_": "zoomr.H2O", "budget": "match"}))
    budget = read_manifest(path)["settings"]["budget"]
    assert budget > 0
    prompt = max(row["prompt_tokens"] for row in read_rows(path / SAMPLES))
    assert all(row["active_tokens_peak"] <= max(budget + 1, prompt) for row in read_rows(path / SAMPLES))


def test_the_first_sample_keeps_its_refreshes_for_the_viewer(base, tmp_path):
    path = cell(base, tmp_path / "runs", ZOOMR)
    traced = [row for row in read_rows(path / SAMPLES) if "trace" in row]
    assert [row["id"] for row in traced] == ["test-000000#0"]
    trace = traced[0]["trace"]
    assert len(trace["pieces"]) == traced[0]["seen_tokens"]
    assert len(trace["refreshes"]) == traced[0]["refreshes"] == len(traced[0]["consensus"])
    assert "test-000000" in render(traced[0], read_manifest(path)["settings"])
