"""The two sides of the comparison do the same work."""

import json

import pytest
from omegaconf import OmegaConf

from train.bench import Turn, bench, summarize
from zoomr.errors import UserError


def options(tmp_path, steps):
    return f"bench.steps={steps}", "bench.rounds=1", f"bench.output={tmp_path}/t/throughput.json", "lora.dropout=0"


def test_both_train_on_the_same_tokens_from_the_same_loss(workshop, tmp_path):
    """Before the first step an adapter changes nothing: equal first losses mean equal rows, labels and models."""
    bench(OmegaConf.create(workshop.config(*options(tmp_path, 2))))
    found = json.loads((tmp_path / "t/throughput.json").read_text())
    assert found["ours"]["first_loss"] == pytest.approx(found["bare"]["first_loss"], abs=1e-4)
    assert found["settings"]["rows"] == 8
    assert found["ratio"] > 0


def test_ratios_are_taken_round_by_round():
    turns = {"ours": [Turn(2, 4, 0), Turn(20, 4, 0)], "bare": [Turn(1, 2, 0), Turn(30, 6, 0)]}
    found = summarize(turns, 100)
    assert found["ratio"] == pytest.approx((0.5 + 1.5) / 2)
    assert found["ours"]["tokens_per_s"] == pytest.approx(100 / 11)


def test_too_few_rows_are_named(workshop, tmp_path):
    with pytest.raises(UserError, match="bench.steps=50 takes 200 rows"):
        bench(OmegaConf.create(workshop.config(*options(tmp_path, 50))))
