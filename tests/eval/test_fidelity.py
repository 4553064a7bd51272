"""The fidelity stage on tiny traces: what it measures, that it resumes, and what its table and sentences say."""

import csv
import json

import hydra
import pytest
from omegaconf import OmegaConf
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from eval.checkpoint import Checkpoint
from eval.fidelity import ROWS, measure_fidelity
from eval.reporting.fidelity import budget_sentence, gap_sentence, halves_sentence, ranking, readable, section, sizes
from eval.reporting.fidelity_table import fidelity_table
from pipeline import read_rows
from pipeline.cli import CONFIGS
from tests.zoomr.tiny import VOCABULARY, make_model, prompt_of, story
from zoomr import comparison
from zoomr.errors import UserError
from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY

TEMPLATE = "{% for m in messages %}{{ m['content'] }} {% if m['role'] == 'assistant' %}</s> {% endif %}{% endfor %}"

PAPER = {"consensus": {"mean_refresh_gap_tokens": 35}}


class Killed(BaseException):
    """Stands for a signal in the middle of a run."""


@pytest.fixture(scope="module")
def loaded():
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token="<pad>"))
    core.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", bos_token="<s>", eos_token="</s>", chat_template=TEMPLATE
    )
    tokenizer.add_special_tokens({"additional_special_tokens": [BEGIN_SUMMARY, END_SUMMARY]})
    return make_model(), tokenizer


@pytest.fixture
def config(tmp_path, monkeypatch, loaded):
    monkeypatch.setattr(Checkpoint, "load", lambda self, device: loaded)

    def text(ids):
        return " ".join(VOCABULARY[token] for token in ids)

    rows = [
        {"id": f"t{seed}", "user": text(prompt_of(seed, 6)), "assistant": text(story(seed, paragraphs=length))}
        for seed, length in enumerate((3, 1, 4, 3))
    ]
    (tmp_path / "traces.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def make(*overrides):
        with hydra.initialize_config_dir(str(CONFIGS), version_base="1.3"):
            return hydra.compose(
                "fidelity",
                overrides=[
                    f"paths.root={tmp_path}/runs",
                    f"paths.results={tmp_path}/results",
                    "checkpoint=base",
                    f"fidelity.path={tmp_path}/traces.jsonl",
                    "fidelity.windows=[4,12]",
                    "fidelity.min_tokens=40",
                    "fidelity.seen=[30,500]",
                    *overrides,
                ],
            )

    return make


def rows_of(tmp_path):
    (path,) = (tmp_path / "runs").glob(f"micro/fidelity/*/{ROWS}")
    return read_rows(path)


def test_every_method_and_budget_on_every_long_trace(config, tmp_path, capsys):
    cfg = config()
    measure_fidelity(cfg)
    rows = rows_of(tmp_path)
    methods = set(cfg.fidelity.methods)
    assert {row["trace"] for row in rows} == {"t0", "t2", "t3"}
    assert {(row["method"], row["window"]) for row in rows} == {("full", None)} | {
        (m, w) for m in methods for w in (4, 12)
    }
    assert len(rows) == 3 * (1 + 2 * len(methods))
    by_id = {row["id"]: row for row in rows}
    for row in rows:
        if "budget" in row["policy"]:
            matched = by_id[f"{row['trace']}|zoomr|{row['window']}"]["active_tokens_mean"]
            assert row["policy"]["budget"] == round(matched)
        if row["method"] != "full":
            assert row["kl"] > 0
            assert row["active_tokens_mean"] < by_id[f"{row['trace']}|full|None"]["active_tokens_mean"]
    assert not any("show" in row["policy"] for row in rows)
    assert "next: python -m eval.report preset=micro" in capsys.readouterr().out
    part = section(tmp_path / "runs" / "micro" / "fidelity", PAPER, tmp_path / "results")
    (heading, text, figure, table, sizes) = part.parts
    assert len(part.origins) == 1 and figure.svg == tmp_path / "results" / "fidelity.svg"
    assert "(paper: 35)" in text.text and "of the 3 traces" in text.text
    assert "active at 30 seen" in sizes.rows[0] and {"active, peak", "active, mean"} <= table.rows[0].keys()
    assert "Recency zoom" in {str(row["method"]) for row in table.rows}
    assert not section(tmp_path / "nowhere", PAPER, tmp_path / "results").parts
    with open(tmp_path / "results" / "fidelity.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert [line["n_traces"] for line in table] == ["3"] * (1 + 2 * len(methods))
    assert json.loads((tmp_path / "results" / "fidelity.json").read_text())["rows"][0]["n_traces"] == 3
    assert table[0]["method"] == "full" and float(table[0]["delta_nll"]) == 0
    zoomr = next(line for line in table if line["method"] == "zoomr" and line["window"] == "12")
    assert float(zoomr["ci_low"]) <= float(zoomr["delta_nll"]) <= float(zoomr["ci_high"])
    assert float(zoomr["active_at_30"]) > 0 and zoomr["active_at_500"] == ""
    assert (tmp_path / "results" / "fidelity.svg").exists()


def test_a_killed_run_goes_on_where_it_stopped(config, tmp_path, monkeypatch):
    cfg = config("limit=2", "~fidelity.methods.h2o_prompt")
    references = []

    class Counted(comparison.Reference):
        def __init__(self, *args):
            references.append(args[2])
            super().__init__(*args)

        def compare(self, *args, **settings):
            if len(references) == 1 and len(rows_of(tmp_path)) == 9:
                raise Killed
            return super().compare(*args, **settings)

    monkeypatch.setattr(comparison, "Reference", Counted)
    with pytest.raises(Killed):
        measure_fidelity(cfg)
    before = rows_of(tmp_path)
    assert len(before) == 9  # the full cache, and four methods at two windows; the fifth asks for ZoomR's budget
    measure_fidelity(cfg)
    after = rows_of(tmp_path)
    assert after[:9] == before
    assert len({row["id"] for row in after}) == len(after) == 2 * 11
    assert len(references) == 3  # one a trace, and one more after the kill
    measure_fidelity(cfg)
    assert len(references) == 3


def test_ambiguities_are_zoomr_with_one_setting_changed(config):
    methods = OmegaConf.to_container(config("grid=ambiguities").fidelity.methods, resolve=True)
    plain = methods.pop("zoomr")
    changed = [{key for key in method if method[key] != plain.get(key)} for method in methods.values()]
    assert all(len(one) == 1 for one in changed)
    assert len(set(map(frozenset, changed))) == len(changed)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("fidelity.path=nowhere.jsonl", "fidelity.path=nowhere.jsonl does not exist"),
        ("fidelity.min_tokens=4000", "fidelity.min_tokens=4000: no trace"),
        ("fidelity.match.method=nobody", "fidelity.match.method=nobody is not among"),
    ],
)
def test_bad_input_is_one_sentence(config, override, sentence):
    with pytest.raises(UserError, match=sentence):
        measure_fidelity(config("limit=1", override))


def test_traces_without_summaries_are_refused(config, tmp_path):
    (tmp_path / "bare.jsonl").write_text(json.dumps({"id": "a", "user": "w1", "assistant": "w2 w3 ."}) + "\n")
    with pytest.raises(UserError, match="row 0 has no summaries"):
        measure_fidelity(config(f"fidelity.path={tmp_path}/bare.jsonl"))


def made(values):
    return [
        {"trace": f"t{n}", "method": method, "window": 8, "delta_nll": value, "policy": {}, "active_at": {}}
        | {
            "tokens": 9,
            "refreshes": 0,
            "active_tokens_mean": 5.0,
            "active_tokens_peak": 6.0,
            "kl": 0.1,
            "top1_agreement": 0.9,
            "seen_tokens": 9,
        }
        for method, own in values.items()
        for n, value in enumerate(own)
    ]


def test_halves_agree_or_not():
    same = made({"a": [0.1, 0.2, 0.1, 0.2], "b": [0.3, 0.4, 0.3, 0.4]})
    assert ranking(same) == [("a", 8), ("b", 8)]
    assert "rank correlation of 1.00" in halves_sentence(same)
    assert "rank correlation of -1.00" in halves_sentence(made({"a": [0.1, 0.4], "b": [0.3, 0.2]}))
    assert [row["minus ZoomR's"] for row in readable(fidelity_table(same))] == ["", ""]
    beside = readable(fidelity_table(made({"zoomr": [0.1, 0.2], "b": [0.3, 0.4]})))
    assert beside[1]["minus ZoomR's"].startswith("+0.2000 [+0.2000, +0.2000]")
    line = fidelity_table(same)[0]
    assert line["delta_nll"] == pytest.approx(0.15)
    assert 0.1 <= line["ci_low"] < 0.15 < line["ci_high"] <= 0.2


def test_what_rivals_hold_of_the_budget_that_they_get_is_said():
    rows = made({"zoomr": [0.1, 0.2], "h2o_prompt": [0.1, 0.2]})
    for row in rows[2:]:
        row |= {"policy": {"budget": 5}, "active_tokens_mean": 4.0}
    match = {"method": "zoomr", "statistic": "mean"}
    assert "their own mean is 80% of ZoomR's" in budget_sentence(rows, match)
    assert readable(fidelity_table(rows))[1]["budget"] == "5 tokens (window 8)"
    assert budget_sentence(rows[:2], match) == ""


def test_sizes_are_means_over_the_traces_that_are_so_long():
    same = made({"zoomr": [0.1, 0.2], "h2o_prompt": [0.1, 0.2]})
    same[0] |= {"active_at": {"30": 10, "60": 12}, "refreshes": 2}
    same[1] |= {"active_at": {"30": 20, "60": None}, "refreshes": 1}
    (line,) = sizes(same)
    assert line["active at 30 seen"] == "15 (2.0x fewer, n = 2)"
    assert line["active at 60 seen"] == "12 (5.0x fewer, n = 1)"
    assert gap_sentence(same, 35) == "ZoomR refreshes every 6.0 tokens (paper: 35)."
    assert not sizes(made({"h2o_prompt": [0.1]})) and not gap_sentence(made({"h2o_prompt": [0.1]}), 35)
