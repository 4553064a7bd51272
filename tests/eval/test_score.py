"""Regrading, shortfalls and shards. E17, E20, E21."""

import json
import sys

import pytest
from omegaconf import OmegaConf

from eval.score import score_cells
from pipeline import read_manifest, read_rows, write_rows
from zoomr.errors import UserError


@pytest.fixture
def score(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    cfg = OmegaConf.create(
        {
            "paths": {"runs": "runs/micro"},
            "preset": {"name": "micro"},
            "score": {"workers": 1, "seconds": 5, "mebibytes": 1024},
        }
    )

    def run():
        score_cells(cfg)
        paths = sorted(path.parent for path in (tmp_path / "runs/micro/score").glob("*/cell.json"))
        return [(path, json.loads((path / "cell.json").read_text())) for path in paths], capfd.readouterr().out

    return run


def test_e20_regrading_needs_no_model_and_changes_nothing(score, make_cell, tmp_path):
    make_cell("zoomr", [True, False, True])
    (((path, cell),), _) = score()
    assert cell["accuracy"] == pytest.approx(2 / 3)
    assert read_manifest(path)["settings"]["math_verify"]
    before = {path: path.read_bytes() for path in (tmp_path / "runs/micro/score").rglob("*.json*")}
    score()
    assert {path: path.read_bytes() for path in (tmp_path / "runs/micro/score").rglob("*.json*")} == before


def test_pass_at_1_is_the_mean_over_problems_of_their_samples(score, make_cell):
    directory = make_cell("zoomr", [True, True], samples=4)
    rows = read_rows(directory / "samples.jsonl")
    for row, wrong in zip(rows[:2], "89", strict=True):
        row["text"] = f"\\boxed{{{wrong}}}"
    write_rows(directory / "samples.jsonl", rows)
    (((_, cell),), _) = score()
    assert cell["accuracy"] == 0.75
    assert cell["majority"] == 1.0


def test_every_outcome_has_its_status_and_its_reason(score, make_cell):
    directory = make_cell("zoomr", [True] * 4)
    rows = read_rows(directory / "samples.jsonl")
    rows[1] |= {"text": "no box"}
    rows[2] |= {"status": "length"}
    rows[3] |= {"status": "repetition"}
    write_rows(directory / "samples.jsonl", rows)
    (((path, cell),), _) = score()
    assert cell["statuses"] == {"correct": 1, "wrong": 0, "unparsed": 1, "truncated": 2, "grader_error": 0}
    assert cell["repetition_share"] == 0.25
    assert read_rows(path / "scores.jsonl")[1]["reason"] == "no \\boxed"


def test_shortfalls_are_shown_and_graded_again_when_they_are_filled(score, make_cell):
    directory = make_cell("zoomr", [True, False], problems=5, ended=None)
    (((_, cell),), out) = score()
    assert (cell["n_samples"], cell["expected_samples"], cell["complete"]) == (2, 5, False)
    assert "2 of 5 samples" in out
    with open(directory / "samples.jsonl", "a") as file:
        file.write(json.dumps(read_rows(directory / "samples.jsonl")[0] | {"id": "p9#0", "problem": "p9"}) + "\n")
    found, _ = score()
    assert sorted(cell["n_samples"] for _, cell in found) == [2, 3]


def test_shards_are_scored_as_one_cell(score, make_cell):
    for shard, tag in (("1/2", "a"), ("2/2", "b")):
        directory = make_cell("zoomr", [True, False], shard=shard, tag=tag, problems=4)
        rows = read_rows(directory / "samples.jsonl")
        write_rows(
            directory / "samples.jsonl",
            [row | {"problem": row["problem"] + tag, "id": row["id"] + tag} for row in rows],
        )
    (((_, cell),), _) = score()
    assert (cell["n_problems"], cell["n_samples"], cell["expected_samples"]) == (4, 4, 4)


def test_a_sample_of_a_shard_and_of_the_whole_run_counts_once(score, make_cell):
    make_cell("zoomr", [True, True, False, False])
    half = make_cell("zoomr", [True, True], shard="1/2", tag="b", problems=4)
    (((_, cell),), out) = score()
    assert (cell["n_samples"], cell["accuracy"], cell["statuses"]["correct"]) == (4, 0.5, 2)
    assert "4 of 4 samples" in out
    rows = read_rows(half / "samples.jsonl")
    rows[0]["tokens_per_s"] = 7.0  # as fast as the machine happened to be
    write_rows(half / "samples.jsonl", rows)
    ((_, (_, cell)), _) = score()
    assert cell["n_samples"] == 4


def test_two_rows_of_a_sample_that_differ_are_refused_with_their_files(score, make_cell):
    whole = make_cell("zoomr", [True, True])
    half = make_cell("zoomr", [False], shard="1/2", tag="b", problems=2)
    with pytest.raises(UserError, match=f"Sample 0 of problem p0 .*{whole.name}/samples.*{half.name}/samples"):
        score()


def test_a_cell_is_complete_once_all_its_shards_are(score, make_cell):
    make_cell("zoomr", [True], shard="1/2", tag="a", problems=2)
    (((_, cell),), _) = score()
    assert not cell["complete"]


def test_e17_few_problems_with_one_sample_are_warned_about(score, make_cell):
    make_cell("zoomr", [True] * 8 + [False] * 22)
    _, out = score()
    assert "warning: one sample on 30 problems" in out


def test_a_gold_that_cannot_be_right_stops_the_stage(score, make_cell):
    directory = make_cell("zoomr", [True])
    write_rows(directory / "samples.jsonl", [row | {"gold": "seven"} for row in read_rows(directory / "samples.jsonl")])
    with pytest.raises(UserError, match="1 golds are not accepted"):
        score()


def test_h03_failed_cells_are_listed_and_do_not_stop_the_rest(score, make_cell):
    make_cell("zoomr", [True])
    broken = make_cell("h2o", [True], ended=None)
    (broken / "samples.jsonl").write_text("")
    (broken / "failure.txt").write_text("Traceback\nValueError: no good\n")
    found, out = score()
    assert len(found) == 1
    assert f"failed: runs/micro/generate/{broken.name}: ValueError: no good" in out


def test_nothing_to_score_names_the_command(score):
    with pytest.raises(UserError, match="python -m eval.generate"):
        score()


def test_scoring_does_not_import_torch():
    import subprocess

    code = "import sys, eval.score, eval.generate, eval.report; print('torch' in sys.modules, 'sympy' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]
