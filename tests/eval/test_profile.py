"""The profile's text, its analytic model, and its bytes against those of the decoder's own tensors."""

from types import SimpleNamespace

import pytest
import torch
import yaml
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from eval.measure import Point, measure, stored_bytes
from eval.report import PAPER
from eval.reporting.profile import draw_profile, load_points, profile_rows, profile_sentences
from eval.workload import Form, analytic_tokens, write_row
from tests.zoomr.tiny import VOCABULARY, make_model
from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY

FORM = Form(prompt=8, paragraph=12, summary=4, gap=5)


@pytest.fixture
def tokenizer():
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token="<pad>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", bos_token="<s>", eos_token="</s>")
    made.add_special_tokens({"additional_special_tokens": [BEGIN_SUMMARY, END_SUMMARY]})
    return made


def test_text_has_its_form():
    prompt, continuation = write_row(FORM, 40, [7, 8], 1, (2, 3), seed=0)
    assert len(prompt) == 8
    assert len(continuation) == 40
    assert [n for n, token in enumerate(continuation[:12]) if token == 1] == [4, 9]
    assert continuation[12] == 2
    assert continuation[15] == 3
    assert write_row(FORM, 40, [7, 8], 1, (2, 3), seed=0) == (prompt, continuation)
    assert write_row(FORM, 40, [7, 8], 1, (2, 3), seed=1) != (prompt, continuation)


def test_analytic_model_is_the_papers():
    for row in yaml.safe_load(PAPER.read_text())["memory_model"]:
        form = Form(prompt=row["prompt"], paragraph=row["paragraph"], summary=row["summary"], gap=35)
        segments = row["generated"] / (row["paragraph"] + row["summary"])
        held = analytic_tokens(form, row["generated"], {"c": row["c"], "window": row["window"]})
        by_hand = row["prompt"] + 2 * 250 + (segments - 2) * 20 + row["window"]
        assert held == pytest.approx(by_hand)
        # The paper counts more candidates than the text has paragraphs, so its saving is the smaller one.
        assert (row["prompt"] + row["generated"]) / held > row["saving"]


def test_storages_are_counted_once():
    whole = torch.zeros(4, 8)
    store = SimpleNamespace(tensors=lambda: {"device": [whole[0], whole[1]], "host": []})
    assert stored_bytes(store) == {"device": 4 * 8 * 4, "host": 0}


@pytest.mark.parametrize(("variant", "residency"), [("full", "active"), ("zoomr", "active"), ("zoomr", "layerwise")])
def test_a_point_is_measured(tokenizer, variant, residency):
    policies = {"full": {"_target_": "zoomr.Full"}, "zoomr": {"_target_": "zoomr.ZoomR", "c": 1, "k": 1, "window": 8}}
    checkpoint = SimpleNamespace(load=lambda device: (make_model(), tokenizer))
    row = measure(Point(variant, policies[variant], residency, 40, 2), FORM, checkpoint, "cpu")  # type: ignore[arg-type]
    assert row["device_kv_bytes"] > 0
    assert (row["host_kv_bytes"] > 0) == (variant == "zoomr")
    assert row["transient_peak_bytes"] is None
    assert row["rss_peak_bytes"] > row["weights_bytes"]
    assert row["tokens_per_s"] > 0


def test_the_report_sets_ratios_beside_the_papers(tmp_path):
    nothing = {"weights_bytes": 1, "host_kv_bytes": 0, "transient_peak_bytes": None, "rss_peak_bytes": None}

    def point(variant, length, kv, speed):
        measured = {"device_kv_bytes": kv, "analytic_kv_bytes": kv, "tokens_per_s": speed}
        return {"variant": variant, "length": length, "batch": 4, "device": "cpu"} | measured | nothing

    points = [point("full", 100, 50, 40.0), point("full", 200, 100, 40.0), point("zoomr_layerwise", 200, 10, 10.0)]
    sentences = profile_sentences(points, yaml.safe_load(PAPER.read_text())["efficiency"])
    assert sentences[0].endswith("10.0x (paper: >20x).")
    assert sentences[1].endswith("0.25x (paper: 0.29x).")
    assert profile_rows(points)[0]["RSS peak, MiB"] == "-"
    first = draw_profile(points, tmp_path / "profile").read_bytes()
    assert draw_profile(points, tmp_path / "profile").read_bytes() == first
    assert load_points(tmp_path) == []
