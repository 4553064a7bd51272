"""The plan's arithmetic."""

from pathlib import Path

import yaml

from eval.plan import plan

CONFIG = Path(__file__).resolve().parents[2] / "configs" / "plan.yaml"


def settings(**changes):
    return yaml.safe_load(CONFIG.read_text())["plan"] | changes


def test_tokens_hours_and_cost_are_products():
    rows = plan(settings(rate={"train": 1000, "generate": 100}, price={"input": 1.0, "output": 2.0}), [])
    by_cell = {row["cell"]: row for row in rows}
    assert by_cell["zoomr on math500"]["tokens, millions"] == f"{500 * 4241 / 1e6:.1f}"
    assert by_cell["zoomr on math500"]["device hours"] == f"{500 * 4241 / 100 / 3600:.1f}"
    requests = 16710 * 20
    assert rows[0]["endpoint cost"] == f"{(requests * 550 * 1.0 + requests * 20 * 2.0) / 1e6:,.2f}"
    assert len(rows) == 2 + 3 * 9 + 1


def test_unknown_rates_leave_hours_out_and_measured_ones_fill_in():
    unknown = plan(settings(), [])
    assert {row["device hours"] for row in unknown} == {"-"}
    point = {"variant": "full", "length": 100, "batch": 4, "tokens_per_s": 50.0}
    found = {row["cell"]: row for row in plan(settings(), [point, point | {"variant": "zoomr", "tokens_per_s": 25.0}])}
    assert float(found["zoomr on math500"]["device hours"]) > 1.9 * float(found["h2o on math500"]["device hours"])
