"""The report is a function of the cells: deterministic, honest about what is missing. E17, E19."""

import csv
import json
import re
from pathlib import Path

import pytest
import yaml
from omegaconf import DictConfig, OmegaConf

from eval.report import PAPER, build
from eval.reporting.table1 import agreement
from eval.score import score_cells
from zoomr.errors import UserError

ZOOM = {"_target_": "zoomr.ZoomR", "c": 2, "k": 2, "window": 48}
RANDOM = ZOOM | {"_target_": "zoomr.RandomZoom"}
H2O = {"_target_": "zoomr.H2O", "budget": "match", "keep_prompt": False}
GREEDY = {"temperature": 0.0, "top_p": 1.0, "samples": 1, "max_new_tokens": 16384}


@pytest.fixture
def report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def settings(**changes) -> DictConfig:
        return OmegaConf.create(
            {
                "paths": {"runs": "runs/micro", "results": "results/micro"},
                "preset": {"name": "micro"},
                "model": {"name": "micro"},
                "score": {"workers": 1, "seconds": 5, "mebibytes": 1024},
                "generation": GREEDY,
                "seed": 0,
                "limit": None,
                "reference": {"c": 2, "k": 2, "keep_open": False},
                "paper_models": {"r1-llama-8b": "llama"},
            }
            | changes
        )

    def run(**changes) -> Path:
        cfg = settings(**changes)
        score_cells(cfg)
        build(cfg)
        return tmp_path / "results" / "micro"

    run.cfg = settings
    return run


def write_cells(make_cell):
    make_cell("full", [True] * 38 + [False] * 2)
    make_cell("zoomr", [True] * 36 + [False] * 4, policy=ZOOM)
    make_cell("random_zoom", [True] * 16 + [False] * 24, policy=RANDOM)
    make_cell("sumr", [True] * 15 + [False] * 25, policy={"_target_": "zoomr.SumR", "window": 48})
    make_cell("h2o", [False] * 2 + [True] * 36 + [False] * 2, policy=H2O)


def test_a_second_report_changes_no_byte(report, make_cell):
    write_cells(make_cell)
    first = {path: path.read_bytes() for path in report().rglob("*") if path.is_file()}
    assert {path.name for path in first} >= {
        "cells.csv",
        "table1.md",
        "accuracy_vs_active.svg",
        "accuracy_vs_active.png",
    }
    assert {path: path.read_bytes() for path in report().rglob("*") if path.is_file()} == first


def test_cells_csv_has_a_row_a_cell_with_the_promised_columns(report, make_cell):
    write_cells(make_cell)
    rows = list(csv.DictReader((report() / "cells.csv").open()))
    promised = "preset model benchmark method settings n_problems n_samples accuracy ci_low ci_high truncated_share "
    promised += "unparsed_share generated_tokens_mean seen_tokens_mean active_tokens_mean active_tokens_peak "
    promised += "balanced_share summarised_share full_peak_over_peak refreshes_mean tokens_per_s commit"
    assert set(promised.split()) <= set(rows[0])
    assert [row["method"] for row in rows] == [
        "full",
        "zoomr c2 k2 window 48",
        "sumr window 48",
        "h2o",
        "random_zoom c2 k2 window 48",
    ]
    assert json.loads(rows[1]["settings"])["method"]["policy"]["window"] == 48


def test_sentences_say_which_orderings_show_and_which_do_not(report, make_cell):
    write_cells(make_cell)
    page = (report() / "table1.md").read_text()
    lines = {line.split("? ")[0]: line.split("? ")[1] for line in page.splitlines() if line.startswith("- ")}
    assert lines["- Does voting beat random zoom"].startswith("Yes")
    assert lines["- Does zooming in beat summaries alone (ZoomR > SumR)"].startswith("Yes")
    assert lines["- Does ZoomR beat H2O at its own budget"].startswith("Cannot be told here")
    missing = next(line for line in page.splitlines() if line.startswith("Not run: "))
    assert "Does keeping the prompt help H2O?" in missing and "random zoom" not in missing


def test_budget_curves_and_options_do_not_enter_the_comparison(report, make_cell):
    write_cells(make_cell)
    before = (report() / "table1.md").read_text()
    make_cell("h2o", [False] * 40, policy=H2O | {"budget": 64})
    make_cell("zoomr", [False] * 40, policy=ZOOM | {"keep_open": True})
    results = report()
    assert (results / "table1.md").read_text() == before
    labels = [row["method"] for row in csv.DictReader((results / "cells.csv").open())]
    assert {"h2o budget 64", "zoomr c2 k2 window 48 keep open"} <= set(labels)


def test_what_is_left_open_stands_beside_zoomr_as_it_is(report, make_cell):
    write_cells(make_cell)
    assert not (report() / "options.md").exists()
    make_cell("zoomr", [False] * 40, policy=ZOOM | {"keep_open": True}, tag="open")
    make_cell("zoomr", [True] * 40, policy=ZOOM | {"keep_open": True, "c": 3}, tag="open3")
    make_cell("zoomr", [True] * 40, policy=ZOOM | {"c": 4}, tag="four")
    page = (report() / "options.md").read_text()
    lines = [[value.strip() for value in line.split("|")] for line in page.splitlines() if line.startswith("| Ledger")]
    assert [line[3] for line in lines] == ["keep open", "c 3, keep open"]
    assert [line[5].split()[0] for line in lines] == ["-90.0", "+10.0"]
    missing = next(line for line in page.splitlines() if line.startswith("Ledger, micro, not run: "))
    assert "pre_rope_keys" in missing and "one_vote" in missing and "keep_open" not in missing
    assert "of sweep=ambiguities" in missing


def test_the_papers_table_marks_what_was_not_run(report, make_cell, tmp_path):
    write_cells(make_cell)
    page = (report() / "table1.md").read_text()
    assert len(re.findall(r"not run +\|", page)) == 30
    assert len(list(csv.DictReader((tmp_path / "results/micro/table1.csv").open()))) == 30
    tex = (tmp_path / "results/micro/table1.tex").read_text()
    assert tex.count(r"\\") == 11
    assert tex.startswith(r"\begin{tabular}{lllllll}")


def test_what_our_interval_says_of_the_papers_value(report, make_cell):
    model = {"name": "r1-llama-8b", "checkpoint": "export", "revision": None, "dtype": None}

    def benchmark(name, problems):
        return {"name": name, "answer": "integer", "checksum": "0", "problems": problems}

    make_cell("full", [True] * 356 + [False] * 44, model=model, benchmark=benchmark("math500", 400))
    make_cell("zoomr", [True] * 50 + [False] * 50, policy=ZOOM, model=model, benchmark=benchmark("math500", 100))
    streaming = {"_target_": "zoomr.StreamingLLM", "budget": "match", "keep_prompt": False}
    make_cell("streaming_llm", [False] * 20, policy=streaming, model=model, benchmark=benchmark("aime2025", 20))
    rows = json.loads((report() / "table1.json").read_text())["rows"]
    said = {(row["method"], row["benchmark"]): row for row in rows if row["verdict"] != "not run"}
    assert said["StreamingLLM", "AIME25"]["verdict"] == "not told apart"  # 0 of 20 beside 13.3
    assert said["ZoomR", "MATH500"]["verdict"] == "differs"
    full = said["Full KV", "MATH500"]
    assert full["verdict"] == "agrees" and (full["ci_high"] - full["ci_low"]) / 2 < 5
    assert full["within"] == pytest.approx(max(88.9 - full["ci_low"], full["ci_high"] - 88.9))
    page = (report() / "table1.md").read_text()
    assert f"agrees within ±{full['within']:.1f}" in page and "reproduced" not in page.lower()


@pytest.mark.parametrize(
    ("low", "high", "paper", "said"),
    [
        (0.0, 16.8, 13.3, "not told apart"),
        (80.0, 89.9, 85.0, "agrees"),
        (80.0, 90.0, 85.0, "not told apart"),
        (80.0, 84.0, 84.1, "differs"),
    ],
)
def test_only_a_narrow_interval_agrees(low, high, paper, said):
    assert agreement(low, high, paper) == said


def test_an_ablation_that_goes_the_other_way_round_than_the_papers_says_so(report, make_cell):
    write_cells(make_cell)
    make_cell("zoomr", [True] * 40, policy=ZOOM | {"k": 1}, tag="one")
    make_cell("zoomr", [False] * 40, policy=ZOOM | {"c": 1}, tag="few")
    make_cell("zoomr", [False] * 20 + [True] * 20, policy=ZOOM | {"c": 4}, tag="many")
    lines = (report() / "ablation.md").read_text().splitlines()
    reversed_ones = [line.split(" (")[0] for line in lines if "the other way round than in the paper" in line]
    assert reversed_ones == ["- c=4 against c=2"]  # k=1 is higher by 4 of 40, which is not told apart
    assert any(line.startswith("- Of the 16 pairs of sweep=c_k, 4 were run") for line in lines)


def test_a_comparison_with_nothing_in_it_says_so(report, make_cell):
    make_cell("full", [False] * 4)
    directory = make_cell("zoomr", [False] * 4, policy=ZOOM)
    rows = [json.loads(line) | {"summaries": 0} for line in (directory / "samples.jsonl").read_text().splitlines()]
    (directory / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = (report() / "table1.md").read_text()
    assert "nothing is answered rightly by any method" in page and "no answer has a summary" in page


def test_measurements_are_reported_without_any_cell(report, tmp_path):
    run = tmp_path / "runs/micro/steps/micro-a"
    run.mkdir(parents=True)
    rest = {"hits": [], "others": [1.0], "vote_share": None, "vote_chance": None, "head_hits": None}
    row = {"id": "full", "look_ups": [1.0], "active_tokens_peak": [5], "seen_tokens": [6]} | rest
    (run / "steps.jsonl").write_text(json.dumps(row) + "\n")
    manifest = {"stage": "steps", "started": "1", "ended": "2", "command": "c", "commit": "d", "settings": {}}
    (run / "manifest.json").write_text(json.dumps(manifest))
    build(report.cfg())
    assert json.loads((tmp_path / "results/micro/steps.json").read_text())["rows"][0]["look_ups"] == 1.0
    page = (tmp_path / "results/micro/report.html").read_text()
    assert 'id="steps"' in page and "Table 1: accuracy: <code>" in page


def test_e19_cells_with_another_token_limit_are_not_compared(report, make_cell):
    write_cells(make_cell)
    make_cell("oracle_zoom", [True] * 40, policy=ZOOM, generation=GREEDY | {"max_new_tokens": 9})
    results = report()
    assert "Oracle" not in (results / "table1.md").read_text()
    assert "oracle_zoom" in (results / "cells.csv").read_text()


def test_cells_of_a_replaced_checkpoint_are_left_out(report, make_cell):
    make_cell("full", [True] * 40, checkpoint="old", started="2026-01-01", tag="old")
    make_cell("full", [False] * 40, checkpoint="new", started="2026-02-01", tag="new")
    make_cell("zoomr", [True] * 40, policy=ZOOM, checkpoint="old", started="2026-01-01")
    rows = list(csv.DictReader((report() / "cells.csv").open()))
    assert [(row["method"], row["accuracy"]) for row in rows] == [("full", "0")]


def test_no_cells_names_the_command(report, tmp_path):
    with pytest.raises(UserError, match="python -m eval.generate"):
        report()


def test_paper_numbers_average_to_what_the_paper_prints():
    for methods in yaml.safe_load(PAPER.read_text())["table1"].values():
        for values in methods.values():
            mean = sum(values[name] for name in ("gpqa_diamond", "aime2025", "math500")) / 3
            assert mean == pytest.approx(values["average"], abs=0.051)
