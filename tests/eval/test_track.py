"""Cells without W&B at hand: runs of their own, and a dashboard built but not pushed. H13, H15, H16, H17, H18."""

import json
import shutil

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from eval.dashboard import dashboard, specification
from eval.reporting.cells import load_cells
from eval.score import score_cells
from eval.track import COLUMNS, figures, run_config, sample_rows, track_cells


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
        json.dumps(run_config(cell))
        assert all(isinstance(value, int | float) for value in figures(cell, cells).values())
    assert run_config(cells[1])["c"] == 2
    assert figures(cells[0], cells)["accuracy"] == 1.0


def test_h13_h17_every_cell_has_a_run_of_its_own_that_can_be_rebuilt(cells):
    tracking = instantiate({"_target_": "train.tracking.Tracking", "mode": "disabled"})
    for _ in range(2):
        for cell in cells:
            with tracking.start(cell.directory, group="micro-ledger", config=run_config(cell)) as run:
                run.log("eval", 0, figures(cell, cells))
    for cell in cells:
        rows = [json.loads(line) for line in (cell.directory / "metrics.jsonl").read_text().splitlines()]
        assert rows[-1]["eval/accuracy"] == cell.summary["accuracy"]
        assert json.loads((cell.directory / "tracking.json").read_text())["id"] == cell.directory.name


def test_h16_h18_tracking_again_leaves_one_offline_run_a_cell_under_the_same_id(cells, tmp_path, monkeypatch, capsys):
    """The real client, offline: what `wandb sync` finds is one run a cell, however often it was tracked."""
    shutil.rmtree(cells.pop().directory)  # one cell will do: the client takes its time
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    tracker = {"_target_": "train.tracking.Tracking", "mode": "offline", "project": "zoomr", "entity": None}
    settings = {"paths": {"runs": "runs/micro"}, "preset": {"name": "micro"}, "push": False, "table_rows": 1}
    for _ in range(2):
        track_cells(OmegaConf.create(settings | {"tracker": tracker}))
    for cell in cells:
        (folder,) = (cell.directory / "wandb").glob("offline-run-*")
        assert folder.name.endswith(f"-{cell.directory.name}")
        (table,) = folder.glob("files/media/table/*.json")
        assert json.loads(table.read_text())["columns"] == COLUMNS
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith("next: wandb sync runs/micro/score/*/wandb/offline-run-*")


def test_the_table_shows_samples_beside_their_grades(cells, tmp_path):
    rows = sample_rows(cells[1], tmp_path / "runs/micro/generate", 5)
    shown = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    assert [(row["id"], row["status"], row["answer"]) for row in shown] == [
        ("p0#0", "correct", "7"),
        ("p1#0", "wrong", "8"),
    ]
    assert "\\boxed{7}" in shown[0]["text"]
    assert len(sample_rows(cells[1], tmp_path / "runs/micro/generate", 1)) == 1


def test_the_dashboard_is_built_offline():
    spec = json.dumps(specification(dashboard("entity", "zoomr")))
    for metric in ("eval/accuracy", "eval/active_tokens_mean", "eval/truncated_share", "samples"):
        assert metric in spec
    assert json.loads(spec)["project"] == "zoomr"
