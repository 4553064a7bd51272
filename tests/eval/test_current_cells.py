"""Which scores and samples a report takes: the newest complete ones, each sample once. B1, B3."""

import json
import os
import shutil

import pytest
from omegaconf import OmegaConf

from eval.reporting.cells import cell_row, load_cells
from eval.reporting.sections import newest_run
from eval.samples import unique_rows
from eval.score import score_cells
from eval.view import find
from pipeline import read_rows, write_rows
from zoomr.errors import UserError

ZOOM = {"_target_": "zoomr.ZoomR", "c": 2, "k": 2, "window": 48}


@pytest.fixture
def score(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scored = tmp_path / "runs/micro/score"

    def run():
        score = {"workers": 1, "seconds": 5, "mebibytes": 1024}
        score_cells(OmegaConf.create({"paths": {"runs": "runs/micro"}, "preset": {"name": "micro"}, "score": score}))
        return scored

    return run


def change(directory, name, manifest=None, **cell):
    """Copy a score run under another name, with other figures."""
    copy = directory.with_name(name)
    shutil.copytree(directory, copy)
    for file, changes in (("cell.json", cell), ("manifest.json", manifest or {})):
        (copy / file).write_text(json.dumps(json.loads((copy / file).read_text()) | changes))
    return copy


@pytest.mark.parametrize("names", [("zoomr-aaaa", "zoomr-bbbb"), ("zoomr-bbbb", "zoomr-aaaa")])
def test_of_two_gradings_the_one_that_ended_last_counts_whatever_it_is_called(score, make_cell, names):
    make_cell("zoomr", [True, False], policy=ZOOM)
    (directory,) = (path.parent for path in score().glob("*/cell.json"))
    old, new = names
    change(directory, old, {"ended": "2026-03-01T00:00:00+00:00"}, accuracy=0.1)
    change(directory, new, {"ended": "2026-03-02T00:00:00+00:00"}, accuracy=0.9)
    shutil.rmtree(directory)
    assert [cell.summary["accuracy"] for cell in load_cells(directory.parent)] == [0.9]


def test_a_complete_score_comes_before_a_later_one_of_fewer_samples(score, make_cell):
    make_cell("zoomr", [True, False], policy=ZOOM)
    (directory,) = (path.parent for path in score().glob("*/cell.json"))
    later = {"ended": "2099-01-01T00:00:00+00:00"}
    partial = change(directory, "zoomr-zzzz", later, complete=False, n_samples=1, accuracy=1.0)
    (cell,) = load_cells(directory.parent)
    assert cell.directory == directory and cell.complete and cell.title.endswith("window=48)")
    shutil.rmtree(directory)
    (cell,) = load_cells(directory.parent)
    assert cell.directory == partial and cell.title.endswith(", incomplete: 1 of 2 samples")


def test_cells_that_differ_in_anything_have_names_of_their_own(score, make_cell):
    make_cell("zoomr", [True], policy=ZOOM, tag="a")
    make_cell("zoomr", [True], policy=ZOOM, tag="b", prompt="Think.")
    make_cell("zoomr", [True], policy=ZOOM | {"voters": [[1, 2]]}, tag="c")
    cells = load_cells(score())
    assert len({cell.label for cell in cells}) == len({cell.title for cell in cells}) == 3
    assert any(cell.title.endswith("prompt=Think.") for cell in cells)


def test_the_newest_run_of_a_stage_is_the_finished_one_and_the_unfinished_is_named(tmp_path):
    for name, started, ended in (("a", 3, None), ("b", 1, 2), ("c", 0, 1)):
        (tmp_path / f"micro-{name}").mkdir()
        times = {"started": f"2026-01-0{started + 1}", "ended": ended and f"2026-01-0{ended + 1}"}
        (tmp_path / f"micro-{name}" / "manifest.json").write_text(json.dumps(times))
    newest, unfinished = newest_run(tmp_path, "*")
    assert newest == tmp_path / "micro-b"
    assert unfinished == "Not finished, and left out: micro-a."
    assert newest_run(tmp_path, "other") == (None, "")


def test_the_viewer_takes_the_cell_that_was_started_last_not_the_file_touched_last(make_cell, tmp_path):
    old = make_cell("zoomr", [True], policy=ZOOM, started="2026-01-01", tag="z")
    new = make_cell("zoomr", [True], policy=ZOOM, started="2026-02-01", tag="a")
    for directory in (new, old):
        rows = [row | {"trace": {}} for row in read_rows(directory / "samples.jsonl")]
        write_rows(directory / "samples.jsonl", rows)
    os.utime(new / "samples.jsonl", (0, 0))
    assert find(old.parent, "zoomr", "ledger", None)[0] == new


def test_a_sample_counts_once_and_two_that_differ_are_refused(tmp_path):
    whole, shard = tmp_path / "whole.jsonl", tmp_path / "shard.jsonl"
    rows = [{"id": f"p{n}#0", "problem": f"p{n}", "sample": 0, "status": "correct", "answer": str(n)} for n in range(3)]
    write_rows(whole, [*rows, rows[0]])
    write_rows(shard, [rows[1] | {"tokens_per_s": 3.0}])
    assert unique_rows([whole, shard]) == rows
    write_rows(shard, [rows[1] | {"status": "wrong"}])
    with pytest.raises(UserError, match=r"problem p1 differs .*whole.jsonl and .*shard.jsonl"):
        unique_rows([whole, shard])


def test_a_score_that_counted_a_sample_twice_is_put_right(score, make_cell):
    make_cell("zoomr", [True, False], policy=ZOOM)
    (path,) = score().glob("*/scores.jsonl")
    rows = read_rows(path)
    write_rows(path, [*rows, rows[0]])
    cell = path.with_name("cell.json")
    cell.write_text(json.dumps(json.loads(cell.read_text()) | {"n_samples": 3, "accuracy": 2 / 3}))
    (found,) = load_cells(path.parents[1])
    assert (found.summary["n_samples"], found.summary["accuracy"]) == (2, 0.5)


def test_balanced_wants_a_summary_and_the_share_with_one_stands_beside_it(score, make_cell):
    directory = make_cell("zoomr", [True] * 4, policy=ZOOM)
    rows = read_rows(directory / "samples.jsonl")
    rows[0] |= {"summaries": 0}  # never wrote a delimiter
    rows[1] |= {"balanced": False}
    write_rows(directory / "samples.jsonl", rows)
    (cell,) = load_cells(score())
    row = cell_row(cell, [cell])
    assert (row["balanced_share"], row["summarised_share"]) == (0.5, 0.75)


def test_the_saving_does_not_fall_when_a_method_stops_early(score, make_cell):
    make_cell("full", [True] * 2, peak=700.0)
    make_cell("zoomr", [True] * 2, policy=ZOOM, peak=350.0)
    early = make_cell("sumr", [True] * 2, policy={"_target_": "zoomr.SumR", "window": 48}, peak=350.0)
    write_rows(early / "samples.jsonl", [row | {"seen_tokens": 400} for row in read_rows(early / "samples.jsonl")])
    cells = load_cells(score())
    assert [cell_row(cell, cells)["full_peak_over_peak"] for cell in cells] == [1.0, 2.0, 2.0]
    assert cell_row(cells[1], cells[1:])["full_peak_over_peak"] is None
