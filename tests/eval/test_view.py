"""The trace viewer: the right sample, a page of its own, and what a browser shows against the data."""

import json
import re
import shutil
import subprocess

import pytest

from eval.view import find, render
from tests.eval.conftest import METERS
from zoomr.errors import UserError

SETTINGS = {"method": {"name": "zoomr", "policy": {"window": 3}}, "benchmark": {"name": "ledger"}}
# Prompt 0-3, then two closed paragraphs with summaries of two tokens, and an open one.
EDGES = [3, 7, 9, 13, 15]
REFRESHES = [
    {"position": 8, "number": 0, "finished": 0, "votes": None, "zoomed": [], "shown": [], "active": 6, "forced": False},
    {
        "position": 15,
        "number": 1,
        "finished": 2,
        "votes": [3, 5],
        "zoomed": [1],
        "shown": [0],
        "active": 12,
        "forced": True,
    },
]
TRACE = {
    "pieces": [f"t{n} " for n in range(19)] + ["</script>"],
    "prompt_tokens": 3,
    "edges": EDGES,
    "refreshes": [row | {"agreeability": 0.6, "moved_bytes": 0} for row in REFRESHES],
}
ROW = {"id": "p0#0", "problem": "p0", "status": "stop", "gold": "7", "trace": TRACE} | METERS


def dom(tmp_path, fragment: str) -> str:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs chromium")
    page = tmp_path / "view.html"
    page.write_text(render(ROW, SETTINGS))
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", f"file://{page}#{fragment}"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def shown(html: str, kind: str) -> str:
    text = html[html.index('<div id="text"') :]
    return "".join(re.findall(rf'<span[^>]*class="{kind}(?: here)?"[^>]*>([^<]*)</span>', text)).strip()


def test_a_browser_shows_what_the_data_say(tmp_path):
    html = dom(tmp_path, "refresh=2")
    assert "refresh 2 of 2 at token 15: 12 active, forced" in html
    assert shown(html, "prompt") == "t0 t1 t2"
    assert shown(html, "zoomed") == "t9 t10 t11 t12"
    assert shown(html, "summary") == "t7 t8"
    assert shown(html, "absent") == "t3 t4 t5 t6"
    assert shown(html, "window").startswith("t13 t14 t15 t16")
    votes = re.findall(r"<div class=\"(\w+)\"><span>(\d)</span><b[^>]*></b><span>(\d)</span>", html)
    assert votes == [("summary", "0", "3"), ("zoomed", "1", "5")]


def test_a_link_leads_to_its_refresh(tmp_path):
    html = dom(tmp_path, "refresh=1")
    assert "refresh 1 of 2 at token 8: 6 active" in html
    assert "no finished summary" in html
    assert shown(html, "future").startswith("t15 t16")


def test_the_page_needs_no_network_and_cannot_be_broken_by_the_text():
    page = render(ROW, SETTINGS)
    assert "http:" not in page and "https:" not in page
    assert page.count("</script>") == 2
    embedded = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, flags=re.DOTALL)
    assert embedded is not None
    assert json.loads(embedded[1])["pieces"][-1] == "</script>"


def test_find_takes_the_named_sample_and_names_those_that_there_are(make_cell, tmp_path):
    directory = make_cell("zoomr", [True, True], policy={"window": 3})
    rows = [json.loads(line) for line in (directory / "samples.jsonl").read_text().splitlines()]
    rows[1]["trace"] = TRACE
    (directory / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    generated = tmp_path / "runs/micro/generate"
    assert find(generated, "zoomr", "ledger", None)[1]["problem"] == "p1"
    with pytest.raises(UserError, match="sample=p0 keeps no refreshes; those that do: p1"):
        find(generated, "zoomr", "ledger", "p0")
    with pytest.raises(UserError, match="traces=3"):
        find(generated, "h2o", "ledger", None)
