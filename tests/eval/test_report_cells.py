"""The micro report from committed cells, which a real run of the pipeline left: each number against the rows."""

import json
import re
from html import unescape
from statistics import fmean

import numpy as np
import pytest

from eval.reporting.active_set import KINDS, active_set
from eval.reporting.finetuning import curve
from pipeline import read_manifest, read_rows
from tests.eval.conftest import CELLS

Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def page(micro_report) -> str:
    return (micro_report / "results" / "report.html").read_text()


def text(html: str) -> str:
    return unescape(re.sub("<[^>]*>", "", html)).strip()


def tables(page: str, section: str) -> list[Rows]:
    """The tables of a section, by their column titles."""
    body = page[page.index(f'<section id="{section}">') :]
    found = []
    for table in re.findall(r"<table>(.*?)</table>", body[: body.index("</section>")], flags=re.DOTALL):
        lines = [
            [text(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line)] for line in table.split("</tr>")
        ]
        found.append([dict(zip(lines[0], line, strict=True)) for line in lines[1:] if line])
    return found


def cells() -> dict[str, tuple[dict, list[dict]]]:
    """Settings of the method and rows of each committed cell."""
    return {
        path.parent.name: (read_manifest(path.parent)["settings"]["method"], read_rows(path))
        for path in sorted(CELLS.glob("generate/*/samples.jsonl"))
    }


def correct(row: dict) -> bool:
    """Whether a sample ended by itself with its gold in a box; enough for these rows."""
    return row["status"] == "stop" and rf"\boxed{{{row['gold']}}}" in row["text"]


def test_accuracies_are_the_shares_of_golds_in_boxes(page):
    reported = {row["method"]: row["accuracy"].split(" ")[0] for row in tables(page, "table1")[0]}
    own = {
        "-".join(
            [
                method["name"] + "_prompt" * method["policy"].get("keep_prompt", False),
                *(str(method["policy"].get(key)) for key in ("c", "k", "budget")),
            ]
        ): f"{100 * fmean(map(correct, rows)):.1f}"
        for method, rows in cells().values()
    }
    assert reported == {
        "Full KV": own["full-None-None-None"],
        "ZoomR (c=2, k=2)": own["zoomr-2-2-None"],
        "SumR": own["sumr-None-None-None"],
        "StreamingLLM": own["streaming_llm-None-None-match"],
        "StreamingLLM + prompt": own["streaming_llm_prompt-None-None-match"],
        "H2O": own["h2o-None-None-match"],
        "H2O + prompt": own["h2o_prompt-None-None-match"],
        "Random zoom (c=2, k=2)": own["random_zoom-2-2-None"],
    }


def test_paired_differences_count_the_problems_that_one_of_two_solves(page):
    by_name = {(method["name"], method["policy"].get("c")): rows for method, rows in cells().values()}
    zoomed = {row["problem"] for name, rows in by_name.items() if name == ("zoomr", 2) for row in rows if correct(row)}
    sumr = {row["problem"] for row in by_name["sumr", None] if correct(row)}
    row = next(row for row in tables(page, "differences")[0] if row["minus ZoomR"] == "SumR")
    assert (row["only this higher"], row["only ZoomR higher"]) == (str(len(sumr - zoomed)), str(len(zoomed - sumr)))
    assert row["points"].startswith(f"{100 * (len(sumr) - len(zoomed)) / 16:+.1f} ")


def test_the_ablation_has_a_row_for_each_pair_and_compares_it_with_two_and_two(page):
    rows = [row for row in tables(page, "fig3c")[0] if row["method"] == "ZoomR"]
    assert [(row["c"], row["k"]) for row in rows] == [("1", "2"), ("2", "1"), ("2", "2"), ("2", "4"), ("4", "2")]
    active = {
        (method["policy"]["c"], method["policy"]["k"]): fmean(row["active_tokens_mean"] for row in found)
        for method, found in cells().values()
        if method["name"] == "zoomr"
    }
    for row in rows:
        pair = int(row["c"]), int(row["k"])
        assert row["active, mean"] == f"{active[pair]:.0f}"
        assert row["active, relative"] == f"{100 * (active[pair] / active[2, 2] - 1):+.0f}%"


def test_budget_curves_lengths_and_memory_are_in_the_page(page):
    assert [row["budget"] for row in tables(page, "active")[0]] == ["96", "192"]
    full = next(row for row in tables(page, "lengths")[0] if row["method"] == "Full KV")
    rows = next(rows for method, rows in cells().values() if method["name"] == "full")
    assert full["generated tokens"] == f"{fmean(row['generated_tokens'] for row in rows):.0f}"
    points = json.loads((CELLS / "bench.json").read_text())["rows"]
    shown = [(row["tokens seen"], row["device KV, MiB"]) for row in tables(page, "fig3a")[0]]
    assert shown == [(str(point["seen_tokens"]), f"{point['device_kv_bytes'] / 2**20:.1f}") for point in points]


def test_each_row_and_finding_leads_to_its_command(page):
    anchors = re.findall(r'id="([^"]+)"', page)
    assert len(anchors) == len(set(anchors))
    links = re.findall(r'href="#([^"]+)"', page)
    assert set(links) <= set(anchors)
    origins = dict(re.findall(r'<details id="([^"]+)">.*?<pre>(.*?)\ncommit', page, flags=re.DOTALL))
    for section in ("table1", "active", "fig3a", "fig3c", "differences", "lengths", "table2"):
        body = page[page.index(f'<section id="{section}">') :]
        assert set(re.findall(r'href="#([^"]+)"', body[: body.index("</section>")])) & origins.keys(), section
    assert all(command.startswith("python -m ") for command in map(text, origins.values()))


def test_the_table_of_contents_has_the_papers_names_and_what_was_not_run(page):
    names = {anchor: text(name) for anchor, name in re.findall(r'<li><a href="#(\w+)">([^<]*)</a>', page)}
    for anchor, name in (("table1", "Table 1"), ("fig2", "Fig. 2"), ("fig3a", "Fig. 3a"), ("fig3c", "Fig. 3c")):
        assert names[anchor].startswith(name)
    assert not names.keys() & {"steps", "fidelity", "options"}
    missing = page[page.index('<section id="missing">') :]
    commands = [text(command) for command in re.findall(r"<li>[^<]*<code>(.*?)</code></li>", missing)]
    assert commands == [
        f"python -m {rest}" for rest in ("eval.generate -m sweep=ambiguities", "eval.steps", "eval.fidelity")
    ]


def test_the_curves_of_the_fine_tuning_are_those_it_noted(page):
    adapter = next(CELLS.glob("sft/*/manifest.json")).parent
    rows = read_rows(adapter / "metrics.jsonl")
    steps, losses = curve(rows, "eval")
    assert steps == sorted(steps) and losses == [row["eval/loss"] for row in rows if "eval/loss" in row]
    section = page[page.index('<section id="table2">') :]
    figure = section[: section.index("</section>")]
    for words in ("validation", "balanced delimiters", "summaries per 1,000 tokens"):
        assert words in figure


def test_a_map_row_has_the_active_tokens_that_the_refresh_counted():
    traced = [(method, row) for method, rows in cells().values() for row in rows if "trace" in row]
    (method, row), *_ = traced
    kinds = active_set(row["trace"], method["policy"])
    assert kinds.shape == (row["refreshes"], row["seen_tokens"])
    for line, refresh in zip(kinds, row["trace"]["refreshes"], strict=True):
        held = line[: refresh["position"]]
        assert np.count_nonzero(held >= KINDS.index("window and since the refresh")) == refresh["active"]


def test_the_report_needs_no_network(page):
    assert not re.findall(r'(?:src|href)="https?:', page)
    assert "<script" not in page and "@import" not in page
