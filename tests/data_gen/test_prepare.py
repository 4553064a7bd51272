"""The prepare stage at the command line and as a function."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from data_gen.conversations import Conversation
from data_gen.prepare import within
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
    assert "tokens a paragraph" in page
    assert "http" not in page
    # The same content elsewhere is the same run, other settings are not.
    moved = source.rename(tmp_path / "b.jsonl")
    arguments[1] = f"dataset.path={moved}"
    assert command("prepare", *arguments).stdout == first.stdout
    other = command("prepare", *arguments, "dataset.segmentation.merge=false")
    assert other.stdout != first.stdout


def test_traces_pass_while_their_paragraphs_fit():
    sizes = {"a": 3, "b": 4, "c": 2, "d": 1}
    traces = [
        Conversation(name, None, "", "", ["p"] * size, [""] * size, "", None, None) for name, size in sizes.items()
    ]
    skipped = []
    assert [trace.id for trace in within(iter(traces), None, 6, skipped)] == ["a", "c", "d"]
    assert [trace.id for trace in within(iter(traces), 3, None, skipped)] == ["a", "c", "d"]
    assert skipped == [
        {"id": "b", "reason": "over dataset.paragraphs", "detail": "4 paragraphs"},
        {"id": "b", "reason": "over dataset.longest", "detail": "4 paragraphs"},
    ]
    assert len(list(within(iter(traces), None, None, skipped))) == 4


def test_what_is_skipped_is_named_beside_the_traces(tmp_path):
    source = source_file(tmp_path / "a.jsonl", 3)
    bad = {"id": "broken", "messages": [{"role": "user", "content": "1?"}, {"role": "assistant", "content": "\ud835"}]}
    source.write_text(source.read_text() + json.dumps(bad) + "\n")
    done = command("prepare", "dataset=local", f"dataset.path={source}", f"paths.runs={tmp_path / 'runs'}")
    assert done.returncode == 0, done.stderr
    (directory,) = (tmp_path / "runs" / "prepare").glob("local-*")
    assert rows(directory / "skipped.jsonl") == [{"id": "broken", "reason": "half of a surrogate pair", "detail": ""}]
    assert manifest(directory)["counts"]["skipped"] == {"half of a surrogate pair": 1}
    assert "half of a surrogate pair" in (directory / "statistics.html").read_text()


@pytest.mark.parametrize(
    ("stage", "overrides", "sentence"),
    [
        ("prepare", ["dataset=local"], "dataset.path is not set"),
        ("prepare", ["dataset=local", "dataset.path=none.jsonl"], "dataset.path=none.jsonl does not exist."),
        ("prepare", ["dataset=local", "dataset.path={empty}"], "dataset.path: none of the rows is a usable trace (no"),
        ("prepare", ["dataset=local", "dataset.path={schema}"], "dataset.path: row 0 has neither the field"),
        ("prepare", ["dataset=local", "dataset.path={null}"], "dataset.path={null}: line 1 is no object"),
        ("summarize", ["teacher=openai_compatible", "teacher.base_url=http://h/v1"], "teacher.model is not set."),
        ("summarize", ["summarize.traces=nowhere"], "summarize.traces=nowhere holds no finished run"),
        ("build", ["build.traces=nowhere"], "build.traces=nowhere holds no finished run"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(tmp_path, stage, overrides, sentence):
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "schema.jsonl").write_text('{"problem": "x"}\n')
    (tmp_path / "null.jsonl").write_text("null\n")
    files = {name: tmp_path / f"{name}.jsonl" for name in ("empty", "schema", "null")}
    done = command(stage, *(override.format(**files) for override in overrides), f"paths.runs={tmp_path / 'runs'}")
    assert done.returncode == 2
    assert done.stderr.startswith(sentence.format(**files))
    assert "Traceback" not in done.stderr
