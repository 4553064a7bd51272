"""D10: kill -9 at random moments, in a loop; the outcome equals that of an uninterrupted run."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import hydra
import pytest

from data_gen.summarize import summarize
from pipeline.cli import CONFIGS
from tests.data_gen.conftest import manifest, prepared_run, rows, summarize_run, texts, trace
from tests.data_gen.scripted_server import Answer, echo, serve

ROOT = Path(__file__).parents[2]
OUTPUTS = ("summaries.jsonl", "failures.jsonl")


def script(call):
    """A note for most, after 20 ms; one paragraph always fails, one needs a second attempt."""
    if "1.7 " in call.paragraph:
        return Answer(status=400, body={})
    if "2.5 " in call.paragraph and call.attempt == 0:
        return Answer(status=500, body={})
    return Answer(body=echo(call).body, delay=0.02)


def overrides(runs: Path, url: str) -> list[str]:
    return [
        *("teacher=openai_compatible", f"teacher.base_url={url}"),
        *("teacher.model=m", "teacher.api_key_env=null", "teacher.answer=text", "teacher.concurrency=4"),
        *(f"paths.runs={runs}", "summarize.failed_share=0.5", "summarize.patience.backoff=0.01"),
    ]


def finish(runs: Path, url: str) -> None:
    with hydra.initialize_config_dir(str(CONFIGS), version_base="1.3"):
        summarize(hydra.compose("data_gen", overrides(runs, url)))


def start(runs: Path, url: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "data_gen.summarize", *overrides(runs, url)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def kill(process: subprocess.Popen) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("seed", [0, 1])
def test_d10_killed_again_and_again(tmp_path, seed):
    rng = random.Random(seed)
    traces = [trace(n, texts(n, 20)) for n in range(10)]
    for name in ("whole", "killed"):
        prepared_run(tmp_path / name, traces)
    with serve(script) as server:
        finish(tmp_path / "whole", server.url)

    with serve(script) as server:
        for _ in range(3):
            process = start(tmp_path / "killed", server.url)
            until = len(server.calls) + rng.randint(1, 40)
            while len(server.calls) < until and process.poll() is None:
                time.sleep(0.002)
            time.sleep(rng.random() * 0.3)
            kill(process)
            (directory,) = (tmp_path / "killed/summarize").glob("*-*")
            if manifest(directory)["ended"] is None:
                with open(directory / "replies.jsonl", "ab") as file:
                    file.write(b'{"id": "half a li')
        finish(tmp_path / "killed", server.url)
        # What was on the disk is not asked again; at most what a kill found in memory is.
        assert len(server.calls) <= 200 + 1 + 4 + 3 * 80

    whole, killed = (
        next(path for path in (tmp_path / name / "summarize").iterdir() if path.is_dir())
        for name in ("whole", "killed")
    )
    assert whole.name == killed.name
    for name in OUTPUTS:
        assert (whole / name).read_bytes() == (killed / name).read_bytes()
    assert manifest(whole)["outputs"] == manifest(killed)["outputs"]
    assert len(rows(killed / "summaries.jsonl")) == 199
    assert len({row["id"] for row in rows(killed / "replies.jsonl")}) == len(rows(killed / "replies.jsonl")) == 199


@pytest.mark.parametrize("lost", ["replies.jsonl", "summaries.jsonl", "failures.jsonl", "manifest.json", ".lock"])
def test_d10_a_lost_file_is_made_again(configure, tmp_path, lost):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 10))])
    with serve() as server:
        cfg = configure(server.url)
        summarize(cfg)
        directory = summarize_run(cfg)
        before = {name: (directory / name).read_bytes() for name in OUTPUTS}
        (directory / lost).unlink()
        summarize(cfg)
    assert {name: (directory / name).read_bytes() for name in OUTPUTS} == before
    assert len(server.calls) == 10 if lost != "replies.jsonl" else len(server.calls) in (10, 20)


def test_two_processes_on_one_directory_do_not_mix(tmp_path):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 60))])
    with serve(lambda call: Answer(body=echo(call).body, delay=0.2)) as server:
        first = start(tmp_path / "runs", server.url)
        while not server.calls:
            time.sleep(0.01)
        second = start(tmp_path / "runs", server.url)
        _, error = second.communicate()
        first.communicate()
    assert second.returncode == 2
    assert error.decode().startswith("Another process is at work in ")
    assert first.returncode == 0
    assert len(server.calls) == 60
