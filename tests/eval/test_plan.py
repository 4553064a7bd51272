"""The plan's cells are those of a preset's stages, and its arithmetic."""

from collections import Counter

import pytest
import yaml

from eval.hardware import Device, Shape
from eval.plan import plan, readable, sums
from eval.sweeps import jobs, planned_cells
from pipeline.cli import CONFIGS, composing
from tests.configs.test_configs import compose
from zoomr.errors import UserError

SETTINGS = yaml.safe_load((CONFIGS / "plan.yaml").read_text())["plan"]
LLAMA = Shape(8e9, 32, 32, 8, 128)


def settings(**changes):
    device = {key: float(value) if key != "name" else value for key, value in SETTINGS["device"].items()}
    return SETTINGS | {"device": device} | changes


def stages(preset):
    return list(compose("plan", f"preset={preset}").preset.stages)


@pytest.fixture(scope="module")
def paper():
    mine = [stage for stage in stages("paper") if "model=" not in stage and "c_k" not in stage]
    return planned_cells(mine, ["preset=paper"])


@pytest.mark.parametrize("benchmark", ["math500", "aime2025", "gpqa_diamond"])
def test_the_paper_preset_has_its_table_and_what_a_sceptic_asks_for(paper, benchmark):
    def methods(base, generation, limit):
        return {
            cell.label.split(", ")[1].removesuffix(" window 512")
            for cell in paper
            if (cell.base, cell.config.generation.name) == (base, generation)
            and (cell.config.benchmark.name, cell.config.generation.max_new_tokens) == (benchmark, limit)
        }

    baselines = {"full", "streaming_llm", "h2o", "streaming_llm with prompt", "h2o with prompt"}
    controls = {"zoomr c2 k2", "sumr", "random_zoom c2 k2", "recency_zoom c2 k2"}
    assert methods(False, "sampled", 16384) == baselines | controls
    assert methods(True, "sampled", 16384) == baselines
    assert methods(False, "sampled", 32768) == {"zoomr c2 k2", "full"}
    assert methods(False, "greedy", 16384) == {"zoomr c2 k2", "full"}


def test_both_models_run_the_same_cells():
    by_model = Counter(" ".join(p for p in line.split() if "model=" not in p) for line in stages("paper"))
    once = {line for line, times in by_model.items() if times == 1}
    assert once == {"data_gen.prepare", "data_gen.summarize", "eval.generate -m sweep=c_k", "eval.score", "eval.report"}


def test_no_cell_is_listed_twice(paper):
    assert len(paper) == len({cell.label for cell in paper}) == 21 + 6 + 9 + 6 + 18
    twice = planned_cells(["eval.generate", "eval.generate -m method=zoomr,full", "eval.score"], [])
    assert [cell.stage for cell in twice] == ["", "-m method=zoomr,full"]


def test_a_given_override_reaches_every_cell():
    found = planned_cells(["eval.generate -m method=zoomr,full"], ["preset=laptop", "limit=3"])
    assert {(cell.config.limit, cell.config.model.name) for cell in found} == {(3, "smollm2-135m")}


def test_without_m_there_is_one_job():
    with composing():
        assert jobs(["preset=micro", "method=h2o", "method.budget=64"]) == [
            ("preset=micro", "method=h2o", "method.budget=64")
        ]


def test_tokens_hours_and_cost_are_products(paper):
    given = settings(rate={"train": 1000, "generate": 100}, price={"input": 1.0, "output": 2.0})
    data, train, generate = rows = plan(given, paper[:1])
    assert generate["cell"] == "r1-llama-8b, zoomr c2 k2 window 512, math500, sampled x1, 16,384 tokens"
    assert generate["tokens"] == 500 * 4241
    decoding = 500 * 4241 / 100 / 3600
    assert decoding < generate["hours"] < 1.01 * decoding  # and the prompts' reading
    requests = 16710 * 20
    assert data["cost"] == pytest.approx((requests * 550 * 1.0 + requests * 20 * 2.0) / 1e6)
    total = sums(rows)[-1]
    assert total["hours"] == pytest.approx(train["hours"] + generate["hours"])
    assert total["tokens"] == sum(row["tokens"] for row in rows)
    assert total["cost"] == pytest.approx(data["cost"] + 3.0 * total["hours"])
    assert not readable(generate)["device hours"].startswith("~")


def test_without_rates_hours_and_costs_are_estimates_and_marked(paper):
    rows = plan(settings(), paper)
    assert all(row["hours"] > 0 and row["cost"] > 0 for row in rows if row["stage"] != "data_gen")
    assert rows[0]["cost"] == pytest.approx(334_200 * (550 * 0.59 + 20 * 0.79) / 1e6)
    assert all(readable(row)["cost, $"].startswith("~") for row in rows)


def test_the_roofline():
    device = Device("x", 1e15, 3e12, 80e9, training=0.5, prefill=0.5, decode=0.5, step=0.0, price=1.0)
    assert (LLAMA.weights, LLAMA.kv) == (16e9, 131072)
    # one row, hardly any KVs: the weights are read once a token
    assert device.decode_rate(LLAMA, 1, 1, batch=1) == pytest.approx(1.5e12 / 16e9, rel=1e-3)
    # 64 GB of room for rows of 16,384 tokens
    rows = int(64e9 / (131072 * 16384))
    step = (16e9 + rows * 131072 * 8192) / 1.5e12
    assert device.decode_rate(LLAMA, 0, 16384, batch=1000) == pytest.approx(rows / step)
    assert device.prefill_rate(LLAMA, 0) == pytest.approx(0.5e15 / 16e9)
    assert device.training_rate(LLAMA, 0) == pytest.approx(0.5e15 / 48e9)
    slow = Device("x", 1e15, 3e12, 80e9, training=0.5, prefill=0.5, decode=0.5, step=0.1, price=1.0)
    assert slow.decode_rate(LLAMA, 1, 1, batch=4) == 40


def test_what_the_plan_does_not_know_is_named(paper):
    with pytest.raises(UserError, match=r"plan\.tokens .* math500"):
        plan(settings(tokens={}), paper[:1])
