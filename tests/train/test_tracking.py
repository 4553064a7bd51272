"""Figures reach the local file whatever happens to W&B, and the real client in offline mode."""

import json
import socket
import sys
import time
import warnings

import pytest
import wandb

from train.tracking import Tracking, read_figures

CONFIG = {"sft": {"epochs": 3, "nested": [1, {"a": None}]}, "model": "tiny"}


@pytest.fixture(autouse=True)
def no_account(monkeypatch, tmp_path):
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))


def track(directory, mode, steps=range(1, 4), start=0):
    directory.mkdir(exist_ok=True)
    with Tracking(mode=mode).start(directory, "sft", CONFIG, step=start) as tracker:
        for step in steps:
            tracker.log("train", step, {"loss": 1 / step})
        tracker.log("eval", step, {"loss": 2.0})
    return read_figures(directory)


EXPECTED = [{"train/step": s, "train/loss": 1 / s} for s in (1, 2, 3)] + [{"eval/step": 3, "eval/loss": 2.0}]


def test_h14_h15_h16_offline_needs_no_key_and_keeps_the_whole_configuration(tmp_path):
    assert track(tmp_path / "run", "offline") == EXPECTED
    (folder,) = (tmp_path / "run" / "wandb").glob("offline-run-*")
    assert folder.name.endswith("-run")
    assert json.loads((tmp_path / "run" / "tracking.json").read_text()) == {
        "id": "run",
        "group": "sft",
        "config": CONFIG,
    }


def test_h13_two_runs_in_one_process_are_two_runs(tmp_path):
    with pytest.raises(KeyError), Tracking().start(_made(tmp_path / "one"), "sft", CONFIG):
        raise KeyError
    track(tmp_path / "two", "offline")
    assert [len(list((tmp_path / name / "wandb").glob("offline-run-*"))) for name in ("one", "two")] == [1, 1]


def test_h14_online_without_a_key_warns_and_goes_on_offline(tmp_path):
    with pytest.warns(UserWarning, match="going on offline"):
        assert track(tmp_path / "run", "online") == EXPECTED
    assert list((tmp_path / "run" / "wandb").glob("offline-run-*"))


def test_h14_without_wandb_the_local_file_is_enough(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.warns(UserWarning, match="wandb is not installed"):
        assert track(tmp_path / "run", "offline") == EXPECTED


def test_disabled_leaves_wandb_out(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert track(tmp_path / "run", "disabled") == EXPECTED
    assert not (tmp_path / "run" / "wandb").exists()


def test_h19_a_server_that_never_answers_costs_a_bounded_time(tmp_path, monkeypatch):
    server = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setattr("train.tracking.SECONDS", 3)
    began = time.monotonic()
    wandb.teardown()  # the client reads its address when it is first used
    with server, pytest.warns(UserWarning, match="(?s)did not start.*127.0.0.1"):
        assert track(tmp_path / "run", "online") == EXPECTED
    wandb.teardown()
    assert time.monotonic() - began < 60


def test_h17_figures_of_a_resumed_run_follow_the_checkpoint(tmp_path):
    whole = track(tmp_path / "whole", "disabled", steps=range(1, 6))
    track(tmp_path / "killed", "disabled", steps=range(1, 5))
    with open(tmp_path / "killed" / "metrics.jsonl", "a") as file:
        file.write('{"train/step": 4, "trai')
    assert track(tmp_path / "killed", "disabled", steps=range(3, 6), start=2) == whole


def _made(directory):
    directory.mkdir()
    return directory
