"""Both pages in headless Chromium, by day and by night, wide and narrow: what is shown against the data.

The README's screenshots, of results/micro: SCREENSHOTS=results python -m pytest tests/eval/test_browser.py -k readme
"""

import os
import shutil
from pathlib import Path

import pytest

from eval.reporting.active_set import active_set
from eval.view import render
from pipeline import read_manifest, read_rows
from tests.eval.conftest import CELLS

playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
ROOT = Path(__file__).parents[2]
SIZES = {"wide": (1280, 900), "narrow": (390, 844)}
LOOKS = [(scheme, size) for scheme in ("light", "dark") for size in SIZES]
# The viewer's names of the kinds that the report's map has.
NAMES = ("future", "absent", "window", "summary", "zoomed", "prompt")


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs Debian's package chromium")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open a file; errors of the page and requests that leave the disk fail the test."""
    opened, faults = [], []

    def visit(path: Path, fragment: str = "", scheme: str = "light", size: str = "wide"):
        width, height = SIZES[size]
        page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": height})
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith("file:") else faults.append(request.url))
        page.goto(path.as_uri() + fragment)
        opened.append(page)
        return page

    yield visit
    for page in opened:
        page.close()
    assert faults == []


@pytest.fixture(scope="module")
def traced():
    """The committed sample that keeps its refreshes, and the settings of its cell."""
    for path in sorted(CELLS.glob("generate/*/samples.jsonl")):
        for row in read_rows(path):
            if "trace" in row:
                return row, read_manifest(path.parent)["settings"]
    raise AssertionError("no committed sample keeps its refreshes")


@pytest.fixture(scope="module")
def trace(traced, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "trace.html"
    path.write_text(render(*traced))
    return path


# The least contrast of a text with what is painted behind it (WCAG 2), and how far the page can be pushed sideways.
LEAST_CONTRAST = """selector => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const paint = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
      .map((value) => value / 255).map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratios = [...document.querySelectorAll(selector)].filter((node) => node.textContent.trim()).map((node) => {
    const behind = [];
    for (let at = node; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
    const [one, other] = [paint(behind), paint([...behind, getComputedStyle(node).color])];
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  });
  return Math.min(...ratios);
}"""
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Labels of the figures that stick out of their drawing.
CLIPPED = """() => [...document.querySelectorAll("figure svg")].flatMap((drawing) => {
  const frame = drawing.getBoundingClientRect();
  return [...drawing.querySelectorAll("[id*='text_'], [id*='legend']")].map((label) => label.getBoundingClientRect())
    .filter((box) => box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1);
}).length"""


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_the_report_reads_by_day_and_by_night_wide_and_narrow(visit, micro_report, tmp_path, scheme, size):
    page = visit(micro_report / "results" / "report.html", scheme=scheme, size=size)
    assert page.evaluate(SIDEWAYS) == 0
    assert page.evaluate(CLIPPED) == 0
    assert page.evaluate(LEAST_CONTRAST, "h1, h2, h3, p, a, td, th, dt, dd, small, figcaption, summary, .mark") >= 4.5
    page.screenshot(path=tmp_path / f"report-{scheme}-{size}.png", full_page=True)


def test_keys_alone_lead_from_the_contents_to_a_number_and_to_what_made_it(visit, micro_report):
    page = visit(micro_report / "results" / "report.html")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Table 1: accuracy"
    page.keyboard.press("Enter")
    assert page.evaluate("document.getElementById('table1').getBoundingClientRect().top") == pytest.approx(0, abs=60)
    page.locator("#table1").get_by_role("link", name="Full KV", exact=True).press("Enter")
    origin = page.locator("details:target")
    origin.locator("summary").press("Enter")
    assert "python -m eval.generate" in origin.locator("pre").inner_text()


def test_the_report_leads_to_the_sample_of_its_second_figure(visit, micro_report):
    page = visit(micro_report / "results" / "report.html")
    page.get_by_role("link", name="Walk through this sample").click()
    assert page.locator("#place").inner_text().startswith("refresh 1 of ")


def shown(page) -> list[tuple[str, str]]:
    """Texts and kinds of the viewer's spans."""
    return page.evaluate("nodes.map((node) => [node.textContent, node.classList[0]])")


def test_every_refresh_shows_what_the_record_says(visit, trace, traced):
    row, settings = traced
    page = visit(trace)
    for number, line in enumerate(active_set(row["trace"], settings["method"]["policy"])):
        expected = [(piece, NAMES[kind]) for piece, kind in zip(row["trace"]["pieces"], line, strict=True)]
        joined = "".join(f"{kind}|{letter}" for piece, kind in expected for letter in piece)
        assert "".join(f"{kind}|{letter}" for text, kind in shown(page) for letter in text) == joined
        refresh = row["trace"]["refreshes"][number]
        assert f"token {refresh['position']}: {refresh['active']} active" in page.locator("#place").inner_text()
        votes = page.locator("#votes div").evaluate_all("rows => rows.map((row) => Number(row.lastChild.textContent))")
        assert votes == [pytest.approx(vote, abs=0.05) for vote in refresh["votes"] or []]
        page.keyboard.press("ArrowRight")


def test_slider_map_and_link_lead_to_the_same_refresh(visit, trace, traced):
    page = visit(trace)
    last = len(traced[0]["trace"]["refreshes"])
    page.locator("#slider").focus()
    page.keyboard.press("End")
    assert page.locator("#place").inner_text().startswith(f"refresh {last} of {last} ")
    page.locator("#previous").click()
    page.locator("#link").click()
    assert page.url.endswith(f"#refresh={last - 1}")
    assert shown(visit(trace, f"#refresh={last - 1}")) == shown(page)
    page.locator("#map").click(position={"x": 5, "y": 1})
    assert page.locator("#place").inner_text().startswith(f"refresh 1 of {last} ")


def test_search_marks_a_place_in_the_text(visit, trace):
    page = visit(trace)
    page.locator("#search").fill("So ")
    page.keyboard.press("Enter")
    assert page.locator("mark").inner_text() == "So "
    assert page.locator("#hits").inner_text().startswith("1 of ")
    page.locator("#search").fill("nowhere to be found")
    page.keyboard.press("Enter")
    assert page.locator("#hits").inner_text() == "not found"


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_the_viewer_reads_by_day_and_by_night_wide_and_narrow(visit, trace, traced, tmp_path, scheme, size):
    page = visit(trace, f"#refresh={len(traced[0]['trace']['refreshes']) // 2}", scheme, size)
    assert page.evaluate(SIDEWAYS) == 0
    kept = "h1, h2, dt, dd, label, output, a, li, #votes span, #text span:not(.future)"
    assert page.evaluate(LEAST_CONTRAST, kept) >= 4.5
    page.screenshot(path=tmp_path / f"viewer-{scheme}-{size}.png")


def long_sample(tokens: int = 20_000, prompt: int = 500, paragraph: int = 250, summary: int = 20, gap: int = 35):
    """A row of the paper's proportions."""
    edges = [prompt]
    while edges[-1] + paragraph + summary < tokens:
        edges += [edges[-1] + paragraph, edges[-1] + paragraph + summary]
    refreshes = []
    for number, position in enumerate(range(prompt + gap, tokens, gap)):
        finished = sum(edge <= position for edge in edges[2::2])
        refreshes.append(
            {"position": position, "number": number, "finished": finished, "votes": [number % 7] * finished or None}
            | {"zoomed": list(range(finished))[-2:], "shown": list(range(finished))[:-2:2]}
            | {"active": 3000, "forced": False}
        )
    trace = {"pieces": [f"w{n} " for n in range(tokens)], "prompt_tokens": prompt, "edges": edges}
    numbers = {"prompt_tokens": prompt, "generated_tokens": tokens - prompt, "active_tokens_peak": 3000}
    counts = {"summaries": len(edges) // 2, "refreshes": len(refreshes)}
    return (
        {"problem": "long", "status": "stop", "gold": "1", "trace": trace | {"refreshes": refreshes}} | numbers | counts
    )


MOVES = """async () => {
  const slider = document.getElementById("slider"), times = [];
  for (let i = 0; i < 30; i++) {
    const start = performance.now();
    slider.value = Math.floor((i * slider.max) / 30);
    slider.dispatchEvent(new Event("input"));
    document.getElementById("text").getBoundingClientRect();
    times.push(performance.now() - start);
    await new Promise(requestAnimationFrame);
  }
  return times.sort((one, other) => one - other)[15];
}"""


def test_a_slider_move_through_twenty_thousand_tokens_is_done_within_a_frame_or_two(visit, traced, tmp_path):
    path = tmp_path / "long.html"
    path.write_text(render(long_sample(), traced[1]))
    assert visit(path).evaluate(MOVES) < 33  # milliseconds


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_readmes_screenshots(visit, tmp_path, scheme):
    results = ROOT / "results" / "micro"
    if not (results / "trace.html").exists():
        pytest.skip("results/micro has no trace.html: python -m eval.report writes it")
    target = Path(os.environ.get("SCREENSHOTS", tmp_path))
    report = visit(results / "report.html", scheme=scheme)
    report.evaluate("document.getElementById('table1').scrollIntoView()")
    report.screenshot(path=target / f"report_{scheme}.png")
    viewer = visit(results / "trace.html", scheme=scheme)
    viewer.evaluate("show(Math.floor(refreshes.length / 2))")
    viewer.screenshot(path=target / f"viewer_{scheme}.png")
    assert report.evaluate(SIDEWAYS) == viewer.evaluate(SIDEWAYS) == 0
