"""Build: nothing changed but the summaries, ids as evaluation renders them, no row that should not be there."""

import errno
import gc
import json
import os
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from data_gen.assemble import IGNORED, RowBuilder, insert_summaries, strip_summaries
from data_gen.build import build
from data_gen.control import control_texts
from data_gen.conversations import Conversation
from data_gen.dataset import DatasetWriter
from data_gen.ledger.tokens import ledger_tokenizer
from data_gen.prepare import prepare
from data_gen.records import Skip
from data_gen.summarize import summarize
from tests.data_gen.conftest import manifest, prepared_run, rows, texts, trace
from tests.data_gen.scripted_server import Answer, completion, echo, serve
from tests.train.tiny import CHATML, R1, make_tokenizer
from zoomr.errors import UserError
from zoomr.loading import add_delimiters, load_tokenizer
from zoomr.prompts import render_prompt
from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY, delimiter_ids


@pytest.fixture(scope="module")
def tokenizer():
    made = ledger_tokenizer()
    add_delimiters(made)
    return made


@pytest.fixture
def model(tmp_path):
    """A directory with a tokenizer and a configuration, which is all that build reads of a model."""
    ledger_tokenizer().save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "config.json").write_text('{"model_type": "llama"}')
    return tmp_path / "model"


LEDGER = {
    "_target_": "data_gen.sources.Drawn",
    "world": "ledger",
    "train": 12,
    "validation": 3,
    "lengths": [4, 5, 6],
    "seed": 0,
}


def ledger_run(configure, url, **changes):
    """Settings for all three stages on a few ledger problems."""
    dataset = {
        "name": "ledger",
        "source": LEDGER,
        "tokens": "approximate",
        "benchmarks": ["ledger"],
        "longest": None,
        "paragraphs": None,
        "segmentation": {
            "_target_": "data_gen.segmentation.Segmentation",
            "merge": False,
            "minimum": 120,
            "target": 225,
            "maximum": 512,
        },
    }
    return configure(url, dataset=OmegaConf.create(dataset), **changes)


def built(cfg):
    (directory,) = [path for path in (cfg_runs(cfg) / "build").iterdir() if path.is_dir()]
    return directory


def cfg_runs(cfg):
    from pathlib import Path

    return Path(cfg.paths.runs)


def test_the_three_stages_make_a_dataset_that_loads(configure, model):
    from datasets import load_from_disk

    with serve() as server:
        cfg = ledger_run(configure, server.url)
        prepare(cfg)
        summarize(cfg)
        build(cfg)
    directory = built(cfg)
    tokenizer = load_tokenizer(model)
    begin, end = delimiter_ids(tokenizer)
    for split, count in (("train", 12), ("validation", 3)):
        data, written = load_from_disk(str(directory / split)), rows(directory / f"{split}.jsonl")
        assert len(data) == len(written) == count
        for row, text in zip(data, written, strict=True):
            ids, labels = row["input_ids"], row["labels"]
            prompt = render_prompt(tokenizer, text["system"], text["user"])
            assert ids[: len(prompt)] == prompt
            assert labels == [IGNORED] * len(prompt) + ids[len(prompt) :]
            assert ids.count(tokenizer.bos_token_id) == 1
            assert ids[-1] == tokenizer.eos_token_id
            assert ids.count(begin) == ids.count(end) == text["assistant"].count(BEGIN_SUMMARY) > 0
    assert "written by `scripted-model`" in (directory / "README.md").read_text()
    page = (directory / "validation.html").read_text()
    assert page.count("<details>") == 10
    assert '<span class="summary">' in page
    assert manifest(directory)["counts"] == {"rows": {"train": 12, "validation": 3}, "dropped": {}, "cut": 0}


def test_d17_the_texts_keep_their_delimiters_and_the_ids_decode_to_them(configure, model):
    from datasets import load_from_disk

    with serve() as server:
        cfg = ledger_run(configure, server.url)
        prepare(cfg)
        summarize(cfg)
        build(cfg)
    tokenizer = load_tokenizer(model)
    (row, *_), (text, *_) = load_from_disk(str(built(cfg) / "train")), rows(built(cfg) / "train.jsonl")
    count = text["assistant"].count(BEGIN_SUMMARY)
    assert tokenizer.decode(row["input_ids"], skip_special_tokens=False).count(BEGIN_SUMMARY) == count > 0
    assert tokenizer.decode(row["input_ids"], skip_special_tokens=True).count(BEGIN_SUMMARY) == 0


@given(
    st.lists(st.tuples(st.text(max_size=20), st.sampled_from(["\n\n", "\n \n", " ", ""])), min_size=1, max_size=8),
    st.text(max_size=10),
    st.data(),
)
@settings(max_examples=200, deadline=None)
def test_without_its_summaries_the_text_is_the_source(parts, around, data):
    paragraphs, separators = zip(*parts, strict=True)
    made = Conversation("t", None, "q", around, list(paragraphs), list(separators), around, None, None)
    assume(BEGIN_SUMMARY not in made.assistant and END_SUMMARY not in made.assistant)
    chosen = data.draw(st.sets(st.integers(0, len(parts) - 1)))
    text = insert_summaries(made, {index: f"note {index}" for index in chosen})
    assert strip_summaries(text) == made.assistant
    assert text.count(BEGIN_SUMMARY) == text.count(END_SUMMARY) == len(chosen)


def test_a_summary_stands_right_after_its_paragraph():
    text = insert_summaries(trace(1, ["One.", "Two."]), {0: "first", 1: "second"})
    assert f"One.{BEGIN_SUMMARY} first{END_SUMMARY}\n\nTwo.{BEGIN_SUMMARY} second{END_SUMMARY}\n\n<|end_of" in text


def test_real_traces_are_unchanged_but_for_summaries(shared_data):
    from data_gen.conversations import read_conversations
    from data_gen.lengths import approximate_tokens
    from data_gen.segmentation import Segmentation
    from pipeline import read_rows

    source = list(read_rows(shared_data / "reasoning_traces_sample.jsonl"))
    assistants = {row["conversations"][1]["value"] for row in source}
    skipped = []
    count = 0
    for made in read_conversations(source, Segmentation(True, 120, 225, 512), approximate_tokens, skipped):
        text = insert_summaries(made, dict.fromkeys(range(len(made.paragraphs)), "a note"))
        assert strip_summaries(text) in assistants
        count += 1
    assert count == 234
    assert [row["reason"] for row in skipped] == ["thought not closed"] * 4


def test_a_row_that_is_too_long_is_dropped_or_cut_after_a_summary(tokenizer):
    made = trace(1, texts(1, 6))
    summaries = {index: f"note {index}" for index in range(6)}
    whole = RowBuilder(tokenizer, 10_000, "drop")(made, summaries)
    _, end = delimiter_ids(tokenizer)
    limit = len(whole.input_ids) - 20
    with pytest.raises(Skip, match="too long"):
        RowBuilder(tokenizer, limit, "drop")(made, summaries)
    short = RowBuilder(tokenizer, limit, "cut")(made, summaries)
    assert short.was_cut
    assert len(short.input_ids) <= limit
    assert short.input_ids[-1] == end
    assert short.input_ids == whole.input_ids[: len(short.input_ids)]
    assert short.labels == whole.labels[: len(short.labels)]
    prompt = whole.labels.count(IGNORED)
    with pytest.raises(Skip, match="before the first summary"):
        RowBuilder(tokenizer, prompt + 5, "cut")(made, summaries)


PARTS = {
    "system prompt": lambda text: {"system": text},
    "question": lambda text: {"user": text},
    "answer": lambda text: {"paragraphs": ["One.", text]},
    "answer, before the thought": lambda text: {"before": f"{text}<|begin_of_thought|>\n\n"},
    "answer, after the thought": lambda text: {"after": f"<|end_of_thought|>{text}"},
    "summaries": lambda text: {},
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "token", ["<|end_of_turn|>", "<|begin_of_text|>", "<|pad|>", "<|assistant|>", BEGIN_SUMMARY, END_SUMMARY]
)
def test_control_tokens_in_any_part_of_a_row_are_named(tokenizer, part, token):
    made = replace(trace(1, ["One.", "Two."]), **PARTS[part](f"Say {token} now."))
    summaries = {0: "x", 1: f"Say{token}now." if part == "summaries" else "y"}
    with pytest.raises(Skip) as skip:
        RowBuilder(tokenizer, 10_000, "drop")(made, summaries)
    name = part.partition(",")[0]
    assert (skip.value.reason, skip.value.detail) == (f"control token in the {name}", token)


LLAMA2 = (
    "{{ bos_token }}[INST] {% if messages[0].role == 'system' %}<<SYS>>\n{{ messages[0].content }}\n<</SYS>>\n\n"
    "{{ messages[1].content }}{% else %}{{ messages[0].content }}{% endif %} [/INST]"
)


@pytest.mark.parametrize(
    ("template", "found", "harmless"),
    [
        (R1, ["<|User|>", "<|Assistant|>", "<|bos|>", "<think>", "</think>"], ["<|im_start|>", "[INST]", "a < b > c"]),
        (CHATML, ["<|im_start|>", "<|im_end|>"], ["<|User|>", "<div>", "$x <y$", "[A]"]),
        (LLAMA2, ["[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<|eos|>"], ["[THE]", "<SYS>", "<|im_end|>"]),
    ],
    ids=["r1", "chatml", "llama 2"],
)
def test_control_is_what_this_tokenizer_and_its_template_take_for_it(template, found, harmless):
    tokenizer = make_tokenizer(R1 if template is LLAMA2 else template)
    tokenizer.add_tokens(["<think>", "</think>"] if template is R1 else [], special_tokens=False)
    tokenizer.chat_template = template
    pattern = control_texts(tokenizer)
    assert all(pattern.search(f"in {text}.") for text in [*found, BEGIN_SUMMARY])
    assert not any(pattern.search(f"in {text}.") for text in harmless)


def test_the_delimiters_of_a_thought_are_no_fault_of_the_row():
    tokenizer = make_tokenizer(R1)
    tokenizer.add_tokens(["<think>", "</think>"], special_tokens=False)
    add_delimiters(tokenizer)
    made = replace(trace(1, ["One."]), before="<think>\n", after="</think>\n\nSo 2.")
    assert RowBuilder(tokenizer, 10_000, "drop")(made, {0: "x"}).text.startswith("<think>\nOne.")
    with pytest.raises(Skip, match="control token in the answer"):
        RowBuilder(tokenizer, 10_000, "drop")(replace(made, after="</think>\n\n<think>So 2."), {0: "x"})


def test_text_of_others_is_only_text_in_the_pages(configure, tmp_path, model):
    script = "</pre></style><script>alert(1)</script><!--"
    traces = [replace(trace(n, [f"{script} {n}", "-->"], split="train"), id=f"{script}{n}") for n in range(2)]
    traces[1] = replace(traces[1], user=f"{script} <|end_of_turn|>")
    prepared_run(tmp_path / "runs", traces)
    with serve(lambda call: completion("<img src=x onerror=alert(2)>")) as server:
        cfg = configure(server.url)
        summarize(cfg)
        build(cfg)
    page = (built(cfg) / "validation.html").read_text()
    assert "&lt;script&gt;" in page and "<script" not in page and "<img" not in page and "<!--" not in page


def test_what_build_drops_is_named_beside_the_set(configure, tmp_path, model):
    traces = [trace(n, texts(n, 2), split="train") for n in range(4)]
    traces[1] = replace(traces[1], user="What does <|end_of_turn|> mean?")
    traces[3] = replace(traces[3], user=traces[2].user, split="validation")
    prepared_run(tmp_path / "runs", traces)
    with serve() as server:
        cfg = configure(server.url)
        summarize(cfg)
        build(cfg)
    assert rows(built(cfg) / "dropped.jsonl") == [
        {"id": "t1", "reason": "control token in the question", "detail": "<|end_of_turn|>"},
        {"id": "t3", "reason": "problem in both splits", "detail": ""},
    ]
    assert manifest(built(cfg))["counts"]["dropped"] == {
        "control token in the question": 1,
        "problem in both splits": 1,
    }
    assert [row["id"] for row in rows(built(cfg) / "train.jsonl")] == ["t0", "t2"]


def test_n14_a_full_disk_or_quota_is_one_sentence(configure, tmp_path, model, monkeypatch):
    prepared_run(tmp_path / "runs", [trace(n, texts(n, 2), split="train") for n in range(4)])
    with serve() as server:
        cfg = configure(server.url)
        summarize(cfg)
    for number in (errno.ENOSPC, errno.EDQUOT):

        def full(*arguments, number=number):
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patch:
            patch.setattr(DatasetWriter, "add", full)
            with pytest.raises(UserError, match="No space left on the disk .* or set paths.runs"):
                build(cfg)
        gc.collect()  # the lock on the directory goes with the run that failed
    build(cfg)


def failing(call):
    return Answer(status=400, body={}) if "1.2 " in call.paragraph else echo(call)


@pytest.mark.parametrize(("missing", "kept"), [("drop", 3), ("leave", 4)])
def test_d01_a_paragraph_without_summary_never_makes_an_empty_pair(configure, tmp_path, model, missing, kept):
    prepared_run(tmp_path / "runs", [trace(n, texts(n, 4), split="train") for n in range(4)])
    with serve(failing) as server:
        cfg = configure(server.url, **{"build.missing": missing})
        summarize(cfg)
        build(cfg)
    written = rows(built(cfg) / "train.jsonl")
    assert len(written) == kept
    assert all(f"{BEGIN_SUMMARY} {END_SUMMARY}" not in row["assistant"] for row in written)
    assert all("step" in row["assistant"] for row in written)


def test_d11_rows_are_joined_by_id_and_mismatches_are_said(configure, tmp_path, model, capsys):
    prepared = prepared_run(tmp_path / "runs", [trace(n, texts(n, 3), split="train") for n in range(5)])
    with serve() as server:
        cfg = configure(server.url)
        summarize(cfg)
    path = next((tmp_path / "runs/summarize").glob("*/summaries.jsonl"))
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[::-1]) + "\n" + lines[0].replace('"trace": "t0"', '"trace": "unknown"') + "\n")
    traces = (prepared / "traces.jsonl").read_text().splitlines()
    (prepared / "traces.jsonl").write_text("\n".join(traces[:2] + traces[3:]) + "\n")
    build(cfg)
    written = rows(built(cfg) / "train.jsonl")
    assert [row["id"] for row in written] == ["t0", "t1", "t3", "t4"]
    for row in written:
        for index in range(3):
            assert f"{row['id'][1:]}.{index} of the reasoning goes on.{BEGIN_SUMMARY} note on" in row["assistant"]
    assert "4 summaries belong to no paragraph" in capsys.readouterr().out


def test_traces_that_were_not_summarised_are_refused(configure, tmp_path, model):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 3))])
    with serve() as server:
        cfg = configure(server.url)
        summarize(cfg)
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 3)), trace(1, texts(1, 3))])
    with pytest.raises(UserError, match="is not what build.summaries=.* was made from"):
        build(cfg)


def test_benchmark_rows_are_left_out_of_the_data(configure, model):
    from pathlib import Path

    with serve() as server:
        cfg = ledger_run(configure, server.url)
        prepare(cfg)
        prepared = next(Path(cfg.paths.runs).glob("prepare/*/traces.jsonl"))
        file = Path(cfg.paths.runs) / "benchmark.jsonl"
        first = next(iter(rows(prepared)))
        file.write_text(json.dumps({"id": "x", "system": "s", "user": first["user"], "answer": first["answer"]}) + "\n")
        cfg.build.benchmark_files.ledger = str(file)
        summarize(cfg)
        build(cfg)
    counts = manifest(built(cfg))["counts"]
    assert counts["dropped"] == {"benchmark problem: ledger (exact)": 1}
    assert first["id"] not in {row["id"] for row in rows(built(cfg) / "train.jsonl")}


def test_two_builds_are_the_same_to_the_byte(configure, model):
    with serve() as server:
        cfg = ledger_run(configure, server.url)
        prepare(cfg)
        summarize(cfg)
        build(cfg)
        outputs = manifest(built(cfg))["outputs"]
        (built(cfg) / "manifest.json").unlink()
        (built(cfg) / "train.jsonl").unlink()
        build(cfg)
    assert manifest(built(cfg))["outputs"] == outputs


@pytest.mark.parametrize("change", [{"build.over_length": "keep"}, {"build.missing": "ignore"}])
def test_unknown_options_are_named(configure, tmp_path, model, change):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 2))])
    with serve() as server:
        summarize(configure(server.url))
        with pytest.raises(UserError, match=next(iter(change))):
            build(configure(server.url, **change))
