"""The benchmark measures what it says, on a tiny model."""

import pytest

from tests.zoomr.tiny import make_model
from zoomr import ZoomR
from zoomr.bench import measure
from zoomr.bench_figure import draw, slopes


def test_a_cell_counts_bytes_and_active_tokens(tmp_path):
    model = make_model()
    cells = []
    for seen in (1024, 2048):
        cells += measure(model, batch=2, seen=seen, policy=ZoomR(), steps=40, repeats=1, full_steps=2)
    by_name = {(cell["policy"], cell["seen_tokens"]): cell for cell in cells}
    token_bytes = 2 * 2 * 2 * 8 * 4
    zoom, full, plain = (by_name[name, 2048] for name in ("zoomr", "full", "dynamic_cache"))
    assert plain["device_kv_bytes"] == pytest.approx(2 * 2048 * token_bytes, rel=0.03)
    assert full["device_kv_bytes"] >= full["analytic_device_kv_bytes"] >= 2 * 2048 * token_bytes
    assert zoom["device_kv_bytes"] <= 1.25 * zoom["analytic_device_kv_bytes"] * 1.1 + 2 * 256 * token_bytes
    assert zoom["host_kv_bytes"] >= 2 * 2048 * token_bytes
    # prompt 128, two paragraphs of 250, window 512 to 547, at most five more summaries of 20
    assert 128 + 512 < zoom["active_tokens"] <= 128 + 2 * 250 + 547 + 5 * 20
    assert {one["policy"] for one in slopes(cells)} == {"zoomr", "full", "dynamic_cache", "active_only"}
    draw(cells, tmp_path / "decode.svg")
    assert (tmp_path / "decode.svg").stat().st_size > 5000
