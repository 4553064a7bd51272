"""D10 for prepare and build: killed in the middle, they begin anew and end as an uninterrupted run does."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import hydra
import pytest

from data_gen.build import build
from data_gen.ledger.tokens import ledger_tokenizer
from data_gen.prepare import prepare
from data_gen.summarize import summarize
from pipeline.cli import CONFIGS
from tests.data_gen.conftest import manifest

ROOT = Path(__file__).parents[2]


STAGES = {"prepare": prepare, "summarize": summarize, "build": build}


def overrides(runs: Path, model: Path) -> list[str]:
    size = ["dataset.source.train=40", "dataset.source.validation=4"]
    return [f"paths.runs={runs}", f"model.path={model}", *size]


def start(stage: str, runs: Path, model: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", f"data_gen.{stage}", *overrides(runs, model)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def finish(stage: str, runs: Path, model: Path) -> None:
    with hydra.initialize_config_dir(str(CONFIGS), version_base="1.3"):
        STAGES[stage](hydra.compose("data_gen", overrides(runs, model)))


def kill_when(process: subprocess.Popen, runs: Path, pattern: str) -> None:
    while process.poll() is None and not list(runs.glob(pattern)):
        time.sleep(0.001)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def outcome(runs: Path, stage: str) -> tuple[str, dict]:
    (directory,) = (path for path in (runs / stage).iterdir() if path.is_dir())
    return directory.name, manifest(directory)["outputs"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    ledger_tokenizer().save_pretrained(path)
    (path / "config.json").write_text('{"model_type": "llama"}')
    return path


def test_d10_prepare_and_build_begin_anew(tmp_path, model):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for stage in ("prepare", "summarize", "build"):
        finish(stage, whole, model)
    kill_when(start("prepare", killed, model), killed, "prepare/*/.traces.jsonl.partial")
    for stage in ("prepare", "summarize"):
        finish(stage, killed, model)
    kill_when(start("build", killed, model), killed, "build/*/.train.arrow")
    finish("build", killed, model)
    for stage in ("prepare", "summarize", "build"):
        assert outcome(whole, stage) == outcome(killed, stage)
    (directory,) = killed.glob("build/*-*")
    assert not list(directory.glob(".*.arrow"))
