"""Base against fine-tuned: adherence to the format and the paired price of the summaries. T24."""

import json

import pytest
from omegaconf import OmegaConf

from eval.finetuned import compare
from eval.score import score_cells
from pipeline import read_rows, write_rows
from zoomr.errors import UserError

MODEL = {"name": "micro", "revision": None, "dtype": None}


@pytest.fixture
def cfg(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generation = {"temperature": 0.0, "top_p": 1.0, "samples": 1, "max_new_tokens": 16384}
    return OmegaConf.create(
        {
            "paths": {"runs": "runs/micro", "results": "results/micro"},
            "preset": {"name": "micro"},
            "score": {"workers": 1, "seconds": 5, "mebibytes": 1024},
            "model": {"name": "micro"},
            "benchmark": {"name": "ledger"},
            "generation": generation,
            "seed": 0,
            "limit": None,
        }
    )


def test_t24_adherence_and_the_paired_difference(cfg, make_cell, tmp_path, capsys):
    make_cell("full", [True] * 6 + [False] * 2, tag="base", model=MODEL | {"checkpoint": "base"}, checkpoint="b")
    tuned = make_cell("full", [True] * 5 + [False] * 3, tag="tuned", model=MODEL | {"checkpoint": "export"})
    rows = read_rows(tuned / "samples.jsonl")
    rows[0] |= {"balanced": False}
    rows[1] |= {"summaries": 0}  # without a summary there is nothing to be out of balance, and nothing was learnt
    write_rows(tuned / "samples.jsonl", rows)
    score_cells(cfg)
    compare(cfg)
    found = json.loads((tmp_path / "results/micro/finetuning.json").read_text())
    assert found["balanced"] == 6 / 8
    assert found["difference"]["mean"] == -1 / 8
    assert found["accuracy"] == {"base": 0.75, "fine_tuned": 0.625}
    assert found["summaries_per_1k"] == pytest.approx(1000 * 56 / 4800)
    assert "75.0% of 8 generations balanced" in capsys.readouterr().out


def test_a_missing_cell_is_named_with_its_command(cfg, make_cell):
    make_cell("full", [True], model=MODEL | {"checkpoint": "export"})
    score_cells(cfg)
    with pytest.raises(UserError, match="checkpoint=base .*sweep=finetuning"):
        compare(cfg)
