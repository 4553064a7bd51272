"""Cells without W&B at hand: runs of their own, and a dashboard built but not pushed. H13, H15, H17."""

import json

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from eval.dashboard import dashboard, specification
from eval.reporting.cells import load_cells
from eval.score import score_cells
from eval.track import describe, figures


@pytest.fixture
def cells(make_cell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_cell("zoomr", [True, False], policy={"_target_": "zoomr.ZoomR", "c": 2, "k": 2, "window": 48})
    make_cell("full", [True, True])
    cfg = {"paths": {"runs": "runs/micro"}, "preset": {"name": "micro"}}
    score_cells(OmegaConf.create(cfg | {"score": {"workers": 1, "seconds": 5, "mebibytes": 1024}}))
    return load_cells(tmp_path / "runs/micro/score")


def test_h15_config_and_figures_are_plain(cells):
    for cell in cells:
        json.dumps(describe(cell))
        assert all(isinstance(value, int | float) for value in figures(cell).values())
    assert describe(cells[1])["c"] == 2
    assert figures(cells[0])["accuracy"] == 1.0


def test_h13_h17_every_cell_has_a_run_of_its_own_that_can_be_rebuilt(cells):
    tracking = instantiate({"_target_": "train.tracking.Tracking", "mode": "disabled"})
    for _ in range(2):
        for cell in cells:
            with tracking.start(cell.directory, group="micro-ledger", config=describe(cell)) as run:
                run.log("eval", 0, figures(cell))
    for cell in cells:
        rows = [json.loads(line) for line in (cell.directory / "metrics.jsonl").read_text().splitlines()]
        assert rows[-1]["eval/accuracy"] == cell.summary["accuracy"]
        assert json.loads((cell.directory / "tracking.json").read_text())["id"] == cell.directory.name


def test_the_dashboard_is_built_offline():
    spec = json.dumps(specification(dashboard("entity", "zoomr")))
    for metric in ("eval/accuracy", "eval/active_tokens_mean", "eval/truncated_share"):
        assert metric in spec
    assert json.loads(spec)["project"] == "zoomr"
