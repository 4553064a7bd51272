"""The plan's cells are those of the sweeps, and its arithmetic."""

from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_dir

from eval.plan import plan, sums
from eval.sweeps import cells, settle
from zoomr.errors import UserError

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def composed(*overrides):
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        return compose("plan", overrides=list(overrides))


@pytest.fixture(scope="module")
def paper():
    cfg = composed("preset=paper")
    return cells(cfg.plan.cells, cfg, "r1_llama8b")


def settings(**changes):
    return yaml.safe_load((CONFIGS / "plan.yaml").read_text())["plan"] | changes


def labels(found, **wanted):
    return {
        cell.config.method.name
        for cell in found
        if {
            "model": cell.config.model.name,
            "base": cell.base,
            "benchmark": cell.config.benchmark.name,
            "generation": cell.config.generation.name,
            "limit": cell.config.generation.max_new_tokens,
        }.items()
        >= wanted.items()
    }


@pytest.mark.parametrize("model", ["r1-llama-8b", "r1-qwen-7b"])
@pytest.mark.parametrize("benchmark", ["math500", "aime2025", "gpqa_diamond"])
def test_the_paper_preset_has_its_table_and_what_a_sceptic_asks_for(paper, model, benchmark):
    here = {"model": model, "benchmark": benchmark}
    baselines = {"full", "streaming_llm", "streaming_llm_prompt", "h2o", "h2o_prompt"}
    table1 = labels(paper, **here, base=False, generation="sampled", limit=16384)
    assert baselines | {"zoomr", "sumr", "random_zoom", "recency_zoom"} == table1
    assert labels(paper, **here, base=True) == baselines
    assert {"zoomr", "full"} <= labels(paper, **here, base=False, limit=32768)
    assert {"zoomr", "full"} <= labels(paper, **here, base=False, generation="greedy", limit=16384)


def test_no_cell_is_listed_twice(paper):
    assert len(paper) == len({cell.label for cell in paper})
    assert len([cell for cell in paper if cell.sweep == "c_k"]) == 3 * 16 - 3  # those of table 1 are there already


def test_a_settled_cell_is_what_hydra_composes(paper):
    for cell in paper[:: len(paper) // 4]:
        full = composed("preset=paper", *(o for o in cell.overrides if not o.startswith(("checkpoint", "match"))))
        for group in ("model", "benchmark", "method", "generation"):
            assert full[group] == cell.config[group], cell.overrides


def test_tokens_hours_and_cost_are_products():
    cell = cells([{"sweep": "table1"}], composed("preset=paper"), "r1_llama8b")[0]
    given = settings(rate={"train": 1000, "generate": 100}, price={"input": 1.0, "output": 2.0})
    data, train, generate = rows = plan(given, [cell], [])
    assert cell.label == "r1-llama-8b, zoomr c2 k2, math500, sampled x1, 16,384 tokens"
    assert generate["tokens"] == 500 * 4241
    assert generate["hours"] == pytest.approx(500 * 4241 / 100 / 3600)
    requests = 16710 * 20
    assert data["cost"] == pytest.approx((requests * 550 * 1.0 + requests * 20 * 2.0) / 1e6)
    total = sums(rows)[-1]
    assert total["hours"] == pytest.approx(train["hours"] + generate["hours"])
    assert total["tokens"] == sum(row["tokens"] for row in rows)


def test_unknown_rates_leave_hours_out_and_measured_ones_fill_in():
    wanted = cells([{"sweep": "methods"}], composed(), "micro")
    unknown = plan(settings(), wanted, [])
    assert {row["hours"] for row in (*unknown, *sums(unknown))} == {None}
    point = {"method": "full", "seen_tokens": 100, "batch": 4, "tokens_per_s": 50.0}
    found = plan(settings(), wanted, [point, point | {"method": "zoomr", "tokens_per_s": 25.0}])
    hours = {row["cell"].split(", ")[1]: row["hours"] for row in found[2:]}
    assert hours["zoomr c2 k2"] == 2 * hours["h2o"]


def test_what_the_plan_does_not_know_is_named():
    cell = cells([{"sweep": "table1"}], composed(), "micro")[0]
    with pytest.raises(UserError, match="plan.tokens .* math500"):
        plan(settings(tokens={}), [cell], [])
    with pytest.raises(UserError, match="plan.cells names the sweep table9"):
        cells([{"sweep": "table9"}], composed(), "micro")


def test_overrides_of_a_group_reach_its_settings():
    cfg = settle(("model=micro", "method=h2o", "method.budget=64"), composed())
    assert cfg.method.budget == 64
