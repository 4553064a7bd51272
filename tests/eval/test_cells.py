"""Identity of cells, seeds and shards. H02, H12."""

import shutil

import pytest

from data_gen.benchmarks import Problem
from eval.budget import Reference, matched_budget
from eval.cells import directory_label, method_label, requests, sample_seed
from eval.checkpoint import Checkpoint
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
    assert method_label("h2o", {"budget": "match", "keep_prompt": True}) == "h2o with prompt"
    name = directory_label(method_label("h2o", {"budget": "64 MB"}), "math500")
    assert name == "h2o-budget-64-MB-math500"


def asking(directory, **changes):
    return read_manifest(directory)["settings"] | changes


def reference(tmp_path, policy=None, statistic="peak", weights="c"):
    """The cells of the fixture, whose checkpoint has the digest `weights`."""

    class Weights(Checkpoint):
        digest = weights

    settings = {"name": "micro", "checkpoint": "export", "revision": None, "dtype": None}
    return Reference("zoomr", policy or {"c": 2}, statistic, Weights("export", settings, {}, None, None))


@pytest.fixture
def generated(tmp_path):
    return tmp_path / "runs" / "micro" / "generate"


def test_match_takes_the_realised_budget_of_the_reference(make_cell, generated, tmp_path):
    directory = make_cell("zoomr", [True], policy={"c": 2, "k": 2}, peak=321.6)
    make_cell("zoomr", [True], policy={"c": 33, "k": 2}, peak=1000)
    assert matched_budget(generated, asking(directory), reference(tmp_path)) == 322
    assert matched_budget(generated, asking(directory), reference(tmp_path, statistic="mean")) == 272


def test_match_without_a_reference_names_the_command(make_cell, generated, tmp_path):
    directory = make_cell("zoomr", [True], policy={"c": 2}, ended=None)
    with pytest.raises(UserError, match="eval.generate method=zoomr` with"):
        matched_budget(generated, asking(directory), reference(tmp_path))


def test_match_takes_cells_of_the_checkpoint_at_hand_and_refuses_two_budgets_of_it(make_cell, generated, tmp_path):
    directory = make_cell("zoomr", [True], policy={"c": 2}, peak=100.0, checkpoint="old", ended="2027-01-01")
    make_cell("zoomr", [True], policy={"c": 2}, peak=200.0, checkpoint="new", tag="b")
    assert matched_budget(generated, asking(directory), reference(tmp_path, weights="new")) == 200
    make_cell("zoomr", [True], policy={"c": 2, "k": 33}, peak=300.0, checkpoint="new")
    with pytest.raises(UserError, match="finds 2 cells"):
        matched_budget(generated, asking(directory), reference(tmp_path, weights="new"))


def test_match_never_takes_a_cell_with_other_settings(make_cell, generated, tmp_path):
    directory = make_cell("zoomr", [True], policy={"c": 2})
    with pytest.raises(UserError, match="needs a finished cell"):
        matched_budget(generated, asking(directory, limit=5), reference(tmp_path))


def test_shards_are_the_cell_that_is_matched_once_all_are_there(make_cell, generated, tmp_path):
    def shard(number, right, peak, ended="2026-01-02"):
        settings = {"shard": f"{number}/3", "tag": str(number), "ended": ended, "problems": 4}
        return make_cell("zoomr", right, policy={"c": 2}, peak=peak, **settings)

    first = shard(1, [True, True], 100.0)
    shard(3, [True], 400.0)
    with pytest.raises(
        UserError, match=r"the shards 2/3 are missing; run `python -m eval\.generate method=zoomr shard=2/3`"
    ):
        matched_budget(generated, asking(first, shard=None), reference(tmp_path))
    unfinished = shard(2, [True], 800.0, ended=None)
    with pytest.raises(UserError, match="the shards 2/3 are missing"):
        matched_budget(generated, asking(first), reference(tmp_path))
    shutil.rmtree(unfinished)
    shard(2, [True], 800.0)
    # the mean over all problems: two of 100, one of 800, one of 400
    assert matched_budget(generated, asking(first, shard=None), reference(tmp_path)) == 350


def test_a_cell_run_whole_and_in_shards_counts_once(make_cell, generated, tmp_path):
    whole = make_cell("zoomr", [True, True], policy={"c": 2}, peak=200.0)
    make_cell("zoomr", [True], policy={"c": 2}, peak=100.0, shard="1/2", tag="b", problems=2)
    assert matched_budget(generated, asking(whole), reference(tmp_path)) == 200
