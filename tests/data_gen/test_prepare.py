"""The prepare stage at the command line and as a function."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from data_gen.prepare import within
from data_gen.traces import Trace
from tests.data_gen.conftest import manifest, rows

ROOT = Path(__file__).parents[2]


def command(stage: str, *overrides: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", f"data_gen.{stage}", *overrides], cwd=ROOT, capture_output=True, text=True
    )


def source_file(path: Path, count: int) -> Path:
    text = "<think>\n" + "\n\n".join(f"Step {n} of the way." for n in range(6)) + "\n</think>\n\n\\boxed{3}"
    lines = [
        json.dumps({"messages": [{"role": "user", "content": f"{n}?"}, {"role": "assistant", "content": text}]})
        for n in range(count)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_prepare_twice_does_it_once_and_names_the_next_command(tmp_path):
    source = source_file(tmp_path / "a.jsonl", 4)
    arguments = ["dataset=local", f"dataset.path={source}", f"paths.runs={tmp_path / 'runs'}"]
    first, second = command("prepare", *arguments), command("prepare", *arguments)
    assert first.returncode == second.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    assert first.stdout.rstrip().endswith("next: python -m data_gen.summarize preset=micro")
    (directory,) = (tmp_path / "runs" / "prepare").glob("local-*")
    assert manifest(directory)["counts"] == {"traces": 4, "paragraphs": 4, "skipped": {}}
    assert [row["paragraphs"] for row in rows(directory / "traces.jsonl")][0][0].startswith("Step 0")
    page = (directory / "statistics.html").read_text()
    assert "tokens a blank-line piece" in page
    assert "http" not in page
    # The same content elsewhere is the same run, other settings are not.
    moved = source.rename(tmp_path / "b.jsonl")
    arguments[1] = f"dataset.path={moved}"
    assert command("prepare", *arguments).stdout == first.stdout
    other = command("prepare", *arguments, "dataset.segmentation.merge=false")
    assert other.stdout != first.stdout


def test_traces_pass_while_their_paragraphs_fit():
    sizes = {"a": 3, "b": 4, "c": 2, "d": 1}
    traces = [Trace(name, None, "", "", ["p"] * size, [""] * size, "", None, None) for name, size in sizes.items()]
    skipped: Counter[str] = Counter()
    assert [trace.id for trace in within(iter(traces), None, 6, skipped)] == ["a", "c", "d"]
    assert skipped == {"over dataset.paragraphs": 1}
    assert [trace.id for trace in within(iter(traces), 3, None, skipped)] == ["a", "c", "d"]
    assert skipped["over dataset.longest"] == 1
    assert len(list(within(iter(traces), None, None, skipped))) == 4


@pytest.mark.parametrize(
    ("stage", "overrides", "sentence"),
    [
        ("prepare", ["dataset=local"], "dataset.path is not set"),
        ("prepare", ["dataset=local", "dataset.path=none.jsonl"], "dataset.path=none.jsonl does not exist."),
        ("prepare", ["dataset=local", "dataset.path={empty}"], "dataset.path: none of the rows is a usable trace (no"),
        ("prepare", ["dataset=local", "dataset.path={schema}"], "dataset.path: row 0 has neither the field"),
        ("summarize", ["teacher=openai_compatible", "teacher.base_url=http://h/v1"], "teacher.model is not set."),
        ("summarize", ["summarize.traces=nowhere"], "summarize.traces=nowhere holds no finished run"),
        ("build", ["build.traces=nowhere"], "build.traces=nowhere holds no finished run"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(tmp_path, stage, overrides, sentence):
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "schema.jsonl").write_text('{"problem": "x"}\n')
    files = {"empty": tmp_path / "empty.jsonl", "schema": tmp_path / "schema.jsonl"}
    done = command(stage, *(override.format(**files) for override in overrides), f"paths.runs={tmp_path / 'runs'}")
    assert done.returncode == 2
    assert done.stderr.startswith(sentence)
    assert "Traceback" not in done.stderr
