"""The benchmark's caches hold what a trace would have left, and its card says what was measured."""

import json

import pytest
import torch
import yaml
from hydra.utils import instantiate
from omegaconf import OmegaConf

from eval.bench.__main__ import measure
from eval.bench.clock import take_turns
from eval.bench.contenders import Decoder, PlainCache
from eval.bench.measure import Bench
from eval.bench.memory_model import active_tokens, state_bytes
from eval.bench.trace import BEGIN, BOUNDARY, END, TraceForm
from eval.report import PAPER
from eval.reporting.profile import draw_profile, profile_rows, profile_sentences
from tests.eval.conftest import CONFIGS
from tests.zoomr.tiny import make_model
from zoomr import H2O, Full, SnapKV, StreamingLLM, SumR, ZoomR
from zoomr.compat import shape_of
from zoomr.errors import UserError

FORM = TraceForm(prompt=16, paragraph=24, summary=6, gap=7)
TOKEN = 2 * 2 * 2 * 8 * 4  # bytes of a token's KVs: layers, keys and values, KV heads, dimensions, float32
POLICIES = {
    "full": Full(),
    "full_offload": Full(lower="layerwise"),
    "zoomr": ZoomR(window=40),
    "zoomr_layerwise": ZoomR(window=40, lower="layerwise"),
    "contrast": ZoomR(window=40, votes_by="contrast"),
    "sumr": SumR(window=40),
    "streaming_llm": StreamingLLM(budget=64),
    "h2o": H2O(budget=64),
    "snapkv": SnapKV(budget=64, interval=16, history=8),
}


def methods():
    settings = OmegaConf.load(CONFIGS / "bench.yaml").bench
    settings.window = 40
    return OmegaConf.to_container(settings.methods, resolve=True)


@pytest.mark.parametrize("name", POLICIES)
def test_a_filled_cache_goes_on_as_a_long_trace_does(name):
    decoder = Decoder(make_model(), 3, 700, POLICIES[name], FORM)
    [seen] = {row.position + 1 for row in decoder.runner.rows}
    assert seen == 700
    bound = active_tokens(POLICIES[name], FORM, 700)
    with decoder.attending():
        for _ in range(2 * decoder.cycle):
            decoder.step()
            memory = decoder.runner.memory
            for place, row in enumerate(decoder.runner.rows):
                assert memory.tiers.used[place] == row.held
                positions = memory.tiers.positions[:, place, :, : row.held]
                assert positions.max() == row.position
                assert (positions.sort(dim=-1).values.diff(dim=-1) > 0).all()  # no position twice
    assert all(len(row.tokens) == 2 * decoder.cycle for row in decoder.runner.rows)
    refreshed = [row.refreshes for row in decoder.runner.rows]
    assert min(refreshed) >= (0 if name.startswith("full") else 2)
    # the window grows by a gap after a refresh and may cover what is zoomed into; with contrast fewer are shown
    assert 0.5 * bound <= decoder.active() - 1 <= bound + 2 * FORM.gap


def test_rows_reach_their_boundaries_and_summaries_as_the_form_says():
    tokens = [FORM.token(position, 0) for position in range(16, 16 + 30)]
    assert tokens.index(BEGIN) == 24
    assert tokens.index(END) == 29
    assert [n + 16 for n, token in enumerate(tokens) if token == BOUNDARY] == [21, 28, 35, 42]
    decoder = Decoder(make_model(), 2, 16 + 4 * 30, ZoomR(window=40), FORM)
    tracker = decoder.runner.rows[1].tracker
    assert tracker.finished == 4
    assert tracker.edges == [16, 40, 46, 70, 76, 100, 106, 130, 136]


def test_a_mean_key_is_that_of_the_summarys_keys_on_the_host():
    decoder = Decoder(make_model(), 2, 400, ZoomR(window=40), FORM)
    memory = decoder.runner.memory
    start, stop = decoder.runner.rows[1].tracker.key_span(3, False)
    keys = memory.tiers.hosts[1].read([(start, stop)], torch.device("cpu"))[0]
    assert torch.allclose(memory.state.means.of([1], 12)[:, 0, :, 3], keys.mean(-2))


def test_a_cell_counts_bytes_and_active_tokens():
    bench = Bench(make_model(), FORM, methods())
    names = ["full", "dynamic_cache", "zoomr", "active_only", "contrast", "h2o", "snapkv", "zoomr_layerwise"]
    rows = {row["method"]: row for row in bench.cell(names, batch=2, seen=700, steps=2, rounds=2)}
    assert list(rows) == names
    # two turns of two steps, each after one that warms up, and the one that lets buffers grow: 2 + 2 * 3
    assert rows["dynamic_cache"]["device_kv_bytes"] == 2 * (700 + 8) * TOKEN
    assert 2 * 704 * TOKEN <= rows["full"]["device_kv_bytes"] <= 2 * (1.25 * 768 + 256) * TOKEN
    assert rows["full"]["analytic_kv_bytes"] == rows["dynamic_cache"]["analytic_kv_bytes"] == 2 * 700 * TOKEN
    assert rows["zoomr"]["host_kv_bytes"] >= 2 * 700 * TOKEN
    assert rows["zoomr"]["device_kv_bytes"] < rows["full"]["device_kv_bytes"] / 1.5
    assert rows["zoomr"]["state_bytes"] == 2 * 32 * 2 * 2 * 8 * 4  # mean keys of 2 rows, in blocks of 16 summaries
    assert rows["contrast"]["state_bytes"] - rows["zoomr"]["state_bytes"] == 2 * 2 * 8 * 8 * 4  # a query a head
    assert rows["h2o"]["state_bytes"] == rows["h2o"]["device_kv_bytes"] / 16  # a sum for keys and values of 8 each
    assert rows["snapkv"]["state_bytes"] == 2 * 64 * 2 * 8 * 8 * 4  # the last 64 queries
    assert rows["h2o"]["analytic_kv_bytes"] / 2 / TOKEN == pytest.approx(rows["active_only"]["active_tokens"], abs=8)
    assert rows["zoomr"]["kv_saving"] == pytest.approx(700 / rows["zoomr"]["active_tokens"], abs=0.01)
    assert rows["zoomr"]["speed_over"]["zoomr"] == 1.0
    for row in rows.values():
        assert row["transient_peak_bytes"] is None
        low, high = row["speed_over_range"]["dynamic_cache"]
        assert low <= row["speed_over"]["dynamic_cache"] <= high


def test_turns_alternate_and_are_whole_cycles():
    order = []

    class Counting(PlainCache):
        def __init__(self, name, cycle):
            super().__init__(make_model(), 1, 10)
            self.name, self.cycle = name, cycle

        def step(self):
            order.append(self.name)

    contenders = {"a": Counting("a", 1), "b": Counting("b", 4)}
    take_turns(contenders, steps=2, rounds=2, device=torch.device("cpu"))
    assert "".join(order) == "aaa" + "bbbbb" + "bbbbb" + "aaa"


def test_a_bounded_active_set_is_flat_and_others_grow():
    bench = Bench(
        make_model(), FORM, methods() | {"bounded": {"_target_": "zoomr.ZoomR", "window": 40, "most_shown": 2}}
    )
    rows = bench.growth(["zoomr", "bounded"], [512, 1024, 2048])
    found = {name: [row["active_tokens"] for row in rows if row["method"] == name] for name in ("zoomr", "bounded")}
    assert found["zoomr"][2] > found["zoomr"][0] + 24
    assert max(found["bounded"]) <= 16 + 2 * 24 + 2 * 6 + 40 + 1
    modelled = [row["analytic_tokens"] for row in rows if row["method"] == "bounded"]
    assert modelled == [16 + 2 * 24 + 2 * 6 + 40] * 3


def test_analytic_model_is_the_papers():
    for row in yaml.safe_load(PAPER.read_text())["memory_model"]:
        form = TraceForm(row["prompt"], row["paragraph"], row["summary"], gap=35)
        seen = row["prompt"] + row["generated"]
        held = active_tokens(ZoomR(c=row["c"], window=row["window"]), form, seen)
        segments = row["generated"] / (row["paragraph"] + row["summary"])
        assert held == pytest.approx(row["prompt"] + 2 * 250 + (segments - 2) * 20 + row["window"])
        # The paper counts more candidates than the text has paragraphs, so its saving is the smaller one.
        assert seen / held > row["saving"]


def test_analytic_state_counts_mean_keys_and_habits():
    shape = shape_of(make_model().config)
    assert state_bytes(ZoomR(), FORM, 16 + 10 * 30, shape) == 10 * 2 * 2 * 8 * 4
    contrast = state_bytes(ZoomR(votes_by="contrast"), FORM, 16 + 10 * 30, shape)
    assert contrast == 10 * 2 * 2 * 8 * 4 + 2 * 8 * 8 * 4
    assert state_bytes(SumR(), FORM, 700, shape) == state_bytes(Full(), FORM, 700, shape) == 0


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["zoomer"], "bench.contenders: there is no zoomer, but dynamic_cache, active_only, full"),
        (["h2o", "zoomr"], "bench.contenders: h2o matches the active set of zoomr, which must come before it."),
        (["active_only"], "bench.contenders: active_only needs the active set of zoomr, before it."),
    ],
)
def test_contenders_that_cannot_be_are_refused(names, sentence):
    with pytest.raises(UserError, match=sentence):
        Bench(make_model(), FORM, methods()).cell(names, 1, 100, 1, 1)


def test_every_method_of_the_settings_can_be_made():
    bench = Bench(make_model(), FORM, methods())
    for name, settings in methods().items():
        assert bench.policy(name, 400) == instantiate(settings | ({"budget": 400} if "budget" in settings else {}))


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    """What the command leaves of a tiny run."""
    from hydra import compose, initialize_config_dir

    path = tmp_path_factory.mktemp("bench") / "bench.json"
    tiny = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2}
    tiny |= {"num_attention_heads": 4, "num_key_value_heads": 2}
    overrides = [f"bench.shape.{name}={value}" for name, value in tiny.items()]
    overrides += [f"bench.form.{name}={value}" for name, value in vars(FORM).items()]
    overrides += [f"bench.output={path}", "bench.window=40", "bench.lengths=[600,300]", "bench.batches=[2]"]
    overrides += ["bench.rounds=1", "bench.growth.lengths=[300,600]", "bench.threads=1", "device=cpu"]
    overrides += ["bench.contenders=[full,dynamic_cache,zoomr,contrast,streaming_llm,h2o]"]
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        measure(compose("bench", overrides=overrides))
    return path


def test_the_card_tells_host_versions_settings_and_rows(card):
    told = json.loads(card.read_text())
    assert told["settings"]["form"] == vars(FORM)
    assert told["versions"]["torch"] == torch.__version__
    assert told["threads"] == 1
    assert [(row["seen_tokens"], row["method"]) for row in told["rows"]][::6] == [(300, "full"), (600, "full")]
    assert len(told["rows"]) == 2 * 6
    assert {row["method"] for row in told["growth"]} == {"zoomr", "contrast", "bounded"}
    assert card.with_suffix(".svg").stat().st_size > 5000


def test_the_report_reads_the_card(card, tmp_path):
    rows = json.loads(card.read_text())["rows"]
    assert [row["tokens seen"] for row in profile_rows(rows)] == [row["seen_tokens"] for row in rows]
    first = draw_profile(rows, tmp_path / "profile").read_bytes()
    assert draw_profile(rows, tmp_path / "profile").read_bytes() == first


def test_the_report_sets_ratios_beside_the_papers():
    def row(method, seen, kv, speed):
        measured = {"device_kv_bytes": kv, "analytic_kv_bytes": kv, "tokens_per_s": speed}
        return {"method": method, "seen_tokens": seen, "batch": 4} | measured

    rows = [row("full", 100, 50, 40.0), row("full", 200, 100, 40.0), row("zoomr_layerwise", 200, 10, 10.0)]
    sentences = profile_sentences(rows, yaml.safe_load(PAPER.read_text())["efficiency"])
    assert sentences[0].endswith("10.0x (paper: >20x).")
    assert sentences[1].endswith("0.25x (paper: 0.29x).")
