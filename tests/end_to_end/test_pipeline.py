"""The whole micro pipeline in small: killed in the middle of every stage, it ends where an uninterrupted run ends."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ["dataset.source.train=6", "dataset.source.validation=2", "dataset.source.lengths=[4,5]"]
SFT = ["sft.max_steps=3", "sft.save_every=1", "sft.evaluate_every=3", "sft.adherence.problems=1"]
EVAL = ["limit=3", "benchmark.lengths=[8]", "generation.max_new_tokens=48"]
STAGES = {
    "prepare": ["data_gen.prepare", *DATA],
    "summarize": ["data_gen.summarize", *DATA],
    "build": ["data_gen.build", *DATA],
    "sft": ["train.sft", *SFT],
    "export": ["train.export"],
    "generate": ["eval.generate", *EVAL],
    "score": ["eval.score"],
}
# What may differ between two runs of the same settings.
VARIES = re.compile(r"tokens_per_s|seconds|time|date|latency|host|started|ended|runtime|created|finished|_at$")


def command(stage, root):
    module, *overrides = STAGES[stage]
    return [sys.executable, "-m", module, f"paths.root={root}", "tracker=disabled", *overrides]


def run(stage, root):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    outcome = subprocess.run(command(stage, root), cwd=ROOT, capture_output=True, text=True, env=environment)
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    return outcome


def kill_after(stage, root, seconds):
    process = subprocess.Popen(
        command(stage, root),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def latest(root, stage):
    directory = root / "micro" / stage
    return directory / (directory / "latest").read_text()


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(entry) for key, entry in value.items() if not VARIES.search(key)}
    if isinstance(value, list):
        return [without_times(entry) for entry in value]
    return value


def records(directory, name):
    return sorted(
        json.dumps(without_times(json.loads(line)), sort_keys=True)
        for line in (directory / name).read_text().splitlines()
    )


@pytest.fixture(scope="module")
def roots(tmp_path_factory):
    """One pipeline run straight through, and one whose every stage is killed half-way and started again."""
    straight, killed = tmp_path_factory.mktemp("straight"), tmp_path_factory.mktemp("killed")
    for stage in STAGES:
        started = time.monotonic()
        run(stage, straight)
        kill_after(stage, killed, 0.6 * (time.monotonic() - started))
        run(stage, killed)
    return straight, killed


@pytest.mark.parametrize("stage", ["prepare", "build", "sft", "export"])
def test_a_killed_stage_ends_in_the_same_bytes(roots, stage):
    one, two = (latest(root, stage) for root in roots)
    assert one.name == two.name
    manifests = [json.loads((directory / "manifest.json").read_text()) for directory in (one, two)]
    assert manifests[0]["outputs"] == manifests[1]["outputs"]
    assert without_times(manifests[0]["counts"]) == without_times(manifests[1]["counts"])


@pytest.mark.parametrize(("stage", "name"), [("summarize", "summaries.jsonl"), ("generate", "samples.jsonl")])
def test_a_killed_stage_loses_and_doubles_nothing(roots, stage, name):
    one, two = (records(latest(root, stage), name) for root in roots)
    assert one == two
    assert len(set(one)) == len(one) > 0


def test_a_finished_stage_answers_before_it_imports_torch(roots):
    for stage in STAGES:
        code = (
            "import runpy, sys\n"
            f"sys.argv = {command(stage, roots[0])[2:]!r}\n"
            "try:\n"
            "    runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)\n"
            "finally:\n"
            "    print('torch' in sys.modules)\n"
        )
        outcome = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
        assert outcome.returncode == 0, outcome.stderr[-2000:]
        assert outcome.stdout.splitlines()[-1] == "False", stage


def test_every_stage_names_its_output_and_what_comes_next(roots):
    for stage in STAGES:
        last = run(stage, roots[0]).stdout.strip().splitlines()[-1]
        assert re.fullmatch(r"-> \S+   next: python -m [\w.]+.*", last), last
