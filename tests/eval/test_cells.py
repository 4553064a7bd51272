"""Identity of cells, seeds and shards. H02, H12."""

import pytest

from data_gen.benchmarks import Problem
from eval.budget import Reference, matched_budget
from eval.cells import directory_label, method_label, requests, sample_seed
from pipeline import read_manifest
from zoomr.errors import UserError

PROBLEMS = [Problem(f"p{n}", "question", "1") for n in range(7)]


def test_seed_depends_on_seed_problem_and_sample_alone():
    whole = {request.id: request.seed for request in requests(PROBLEMS, 2, 0, None)}
    other_order = {request.id: request.seed for request in requests(PROBLEMS[::-1], 3, 0, None)}
    assert whole.items() <= other_order.items()
    assert len({sample_seed(s, p, n) for s in range(3) for p in "ab" for n in range(3)}) == 18


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_shards_cover_every_sample_once(n):
    shards = [request.id for i in range(1, n + 1) for request in requests(PROBLEMS, 2, 0, f"{i}/{n}")]
    assert sorted(shards) == sorted(request.id for request in requests(PROBLEMS, 2, 0, None))


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "1/2/3", "a/b"])
def test_a_wrong_shard_is_named(shard):
    with pytest.raises(UserError, match="shard="):
        requests(PROBLEMS, 1, 0, shard)


def test_h02_labels_tell_settings_apart_and_make_plain_directory_names():
    labels = {method_label("zoomr", {"c": c, "k": k}) for c in (1, 2) for k in (1, 2)}
    assert len(labels) == 4
    assert method_label("h2o_prompt", {"budget": "match", "protect_prompt": True}) == "h2o with prompt"
    name = directory_label(method_label("h2o", {"budget": "64 MB"}), "math500")
    assert name == "h2o-budget-64-MB-math500"


REFERENCE = Reference("zoomr", {"c": 2}, "peak")


def test_match_takes_the_realised_budget_of_the_reference(make_cell, tmp_path):
    directory = make_cell("zoomr", [True], policy={"c": 2, "k": 2}, peak=321.6)
    make_cell("zoomr", [True], policy={"c": 33, "k": 2}, peak=1000)
    settings = read_manifest(directory)["settings"]
    generated = tmp_path / "runs" / "micro" / "generate"
    assert matched_budget(generated, settings, REFERENCE) == 322
    assert matched_budget(generated, settings, Reference("zoomr", {"c": 2}, "mean")) == 272


def test_match_without_a_reference_names_the_command(make_cell, tmp_path):
    settings = read_manifest(make_cell("zoomr", [True], policy={"c": 2}, ended=None))["settings"]
    with pytest.raises(UserError, match="eval.generate method=zoomr"):
        matched_budget(tmp_path / "runs" / "micro" / "generate", settings, REFERENCE)


def test_match_takes_the_newest_checkpoint_and_refuses_two_budgets_of_one(make_cell, tmp_path):
    generated = tmp_path / "runs" / "micro" / "generate"
    settings = read_manifest(make_cell("zoomr", [True], policy={"c": 2}, peak=100.0, checkpoint="old"))["settings"]
    make_cell("zoomr", [True], policy={"c": 2}, peak=200.0, checkpoint="new", ended="2026-02-01", tag="b")
    assert matched_budget(generated, settings, REFERENCE) == 200
    make_cell("zoomr", [True], policy={"c": 2, "k": 33}, peak=300.0, checkpoint="new", ended="2026-02-01")
    with pytest.raises(UserError, match="finds 2 cells"):
        matched_budget(generated, settings, REFERENCE)


def test_match_never_takes_a_cell_with_other_settings(make_cell, tmp_path):
    settings = read_manifest(make_cell("zoomr", [True], policy={"c": 2}))["settings"]
    with pytest.raises(UserError, match="needs a finished cell"):
        matched_budget(tmp_path / "runs" / "micro" / "generate", settings | {"limit": 5}, REFERENCE)
