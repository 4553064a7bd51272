"""Cells that are begun, killed, resumed and sharded, with a table of answers for a decoder. E18, H03, H04, H12."""

import json
import multiprocessing
import shutil
import sys

import pytest
from omegaconf import OmegaConf

from eval import generate
from eval.cells import Request
from eval.generate import FAILURE, SAMPLES, generate_cell
from pipeline import read_manifest, read_rows
from tests.eval.conftest import METERS
from zoomr.errors import UserError

REFUSED = 7


class Killed(BaseException):
    """Stands for a signal in the middle of a cell."""


def fake_decode(stop_after=None, reverse=False):
    """Answers every request with its seed, in the order of finishing; counts what it was asked for."""
    asked: list[str] = []

    def decode(missing: list[Request], cfg, checkpoint, matched):
        order = missing[::-1] if reverse else missing
        for number, request in enumerate(order):
            if number == stop_after:
                raise Killed
            asked.append(request.id)
            text = f"\\boxed{{{request.seed}}}"
            yield (
                request,
                {"prompt": 0, "sample": 0, "seed": 1, "token_ids": [1], "text": text, "status": "stop"} | METERS,
            )

    return decode, asked


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base").mkdir()

    def make(**changes):
        base = OmegaConf.create(
            {
                "paths": {"runs": "runs/micro"},
                "model": {"name": "micro", "path": "base", "revision": None, "dtype": None},
                "checkpoint": "base",
                "benchmark": {
                    "_target_": "data_gen.benchmarks.DrawnBenchmark",
                    "name": "ledger",
                    "world": "ledger",
                    "lengths": [4, 5],
                    "count": 6,
                },
                "generation": {"temperature": 0.6, "top_p": 0.95, "samples": 2, "max_new_tokens": 64},
                "method": {"name": "zoomr", "_target_": "zoomr.ZoomR", "c": 2, "k": 2},
                "match": {"method": "zoomr", "policy": {"c": 2}, "statistic": "peak", "checkpoint": None},
                "system_prompt": None,
                "seed": 0,
                "limit": None,
                "shard": None,
                "batch_size": 4,
                "traces": 1,
                "device": None,
            }
        )
        return OmegaConf.merge(base, OmegaConf.create(changes))

    return make


def run(monkeypatch, cfg, **options) -> list[str]:
    decode, asked = fake_decode(**options)
    monkeypatch.setattr(generate, "decode", decode)
    generate_cell(cfg)
    return asked


def cells(tmp_path):
    return sorted(path.parent for path in (tmp_path / "runs/micro/generate").glob("*/manifest.json"))


def test_a_killed_cell_resumes_with_what_is_missing_and_equals_the_uninterrupted_one(config, tmp_path, monkeypatch):
    assert len(run(monkeypatch, config())) == 12
    (whole,) = cells(tmp_path)
    expected = (whole / SAMPLES).read_bytes()
    whole.rename(tmp_path / "whole")
    with pytest.raises(Killed):
        run(monkeypatch, config(), stop_after=5, reverse=True)
    (broken,) = cells(tmp_path)
    with open(broken / SAMPLES, "ab") as file:
        file.write(b'{"id": "half a li')
    assert broken.name == whole.name
    assert "Killed" in (broken / FAILURE).read_text()
    asked = run(monkeypatch, config())
    assert len(asked) == 7
    assert (broken / SAMPLES).read_bytes() == expected
    assert not (broken / FAILURE).exists()


def test_h04_of_two_processes_on_one_cell_one_works_and_the_other_is_told(config, tmp_path, monkeypatch):
    run(monkeypatch, config())
    (whole,) = cells(tmp_path)
    expected = (whole / SAMPLES).read_bytes()
    shutil.rmtree(whole)
    decode, _ = fake_decode()
    context = multiprocessing.get_context("fork")
    told = context.Event()

    def wait_for_the_other(*arguments):
        assert told.wait(60)
        yield from decode(*arguments)

    def work():
        try:
            generate_cell(config())
        except UserError as error:
            told.set()
            sys.exit(REFUSED if "Another process is at work" in str(error) else 1)

    monkeypatch.setattr(generate, "decode", wait_for_the_other)
    processes = [context.Process(target=work) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert sorted(process.exitcode for process in processes) == [0, REFUSED]
    assert (whole / SAMPLES).read_bytes() == expected


def test_a_finished_cell_asks_for_nothing(config, tmp_path, monkeypatch):
    run(monkeypatch, config())
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert run(monkeypatch, config()) == []
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_h02_other_settings_never_land_in_an_occupied_cell(config, tmp_path, monkeypatch):
    for changes in (
        {},
        {"seed": 1},
        {"limit": 3},
        {"method": {"c": 3}},
        {"generation": {"max_new_tokens": 65}},
    ):
        run(monkeypatch, config(**changes))
    assert len(cells(tmp_path)) == 5


def test_batch_size_and_device_do_not_make_another_cell(config, tmp_path, monkeypatch):
    run(monkeypatch, config())
    assert run(monkeypatch, config(batch_size=1, device="cpu")) == []


def test_a_base_model_that_changed_makes_another_cell(config, tmp_path, monkeypatch):
    run(monkeypatch, config())
    (tmp_path / "base" / "model.safetensors").write_bytes(b"trained again")
    assert len(run(monkeypatch, config())) == 12
    assert len(cells(tmp_path)) == 2


def test_shards_together_are_the_whole_cell(config, tmp_path, monkeypatch):
    run(monkeypatch, config())
    (whole,) = cells(tmp_path)
    for shard in ("1/3", "2/3", "3/3"):
        run(monkeypatch, config(shard=shard))
    parts = [row for path in cells(tmp_path) if path != whole for row in read_rows(path / SAMPLES)]
    assert sorted(parts, key=lambda row: row["id"]) == sorted(read_rows(whole / SAMPLES), key=lambda row: row["id"])


def test_e18_settings_that_contradict_each_other_are_refused(config, monkeypatch):
    with pytest.raises(UserError, match="generation.samples=2"):
        run(monkeypatch, config(generation={"temperature": 0.0, "top_p": 1.0}))
    with pytest.raises(UserError, match="generation.top_p"):
        run(monkeypatch, config(generation={"temperature": 0.0, "samples": 1}))


def test_e18_effective_settings_are_stored(config, tmp_path, monkeypatch):
    run(monkeypatch, config())
    settings = read_manifest(cells(tmp_path)[0])["settings"]
    assert settings["generation"] == {"temperature": 0.6, "top_p": 0.95, "samples": 2, "max_new_tokens": 64}
    assert settings["benchmark"]["problems"] == 6
    json.dumps(settings)


def test_a_baseline_gets_the_matched_budget_and_names_what_is_missing(config, tmp_path, monkeypatch):
    baseline = config()
    baseline.method = {"name": "h2o", "_target_": "zoomr.H2O", "budget": "match"}
    with pytest.raises(UserError, match="method=zoomr"):
        run(monkeypatch, baseline)
    run(monkeypatch, config())
    run(monkeypatch, baseline)
    budgets = [read_manifest(path)["settings"].get("budget") for path in cells(tmp_path)]
    assert budgets == [350, None]


def test_the_missing_export_is_named(config, monkeypatch):
    with pytest.raises(UserError, match="checkpoint=.*train.export"):
        run(monkeypatch, config(checkpoint="runs/micro/export/latest"))
