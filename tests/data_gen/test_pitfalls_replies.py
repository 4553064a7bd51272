"""Pitfalls D01-D18 that live in single replies: blank, cut, refused, late, lost. A scripted server on real sockets."""

import gc
import time

import pytest

from data_gen.summarize import summarize
from tests.data_gen.conftest import prepared_run, rows, summarize_run, texts, trace
from tests.data_gen.scripted_server import Answer, Call, completion, echo, serve
from zoomr.errors import UserError


def run_with(configure, tmp_path, script, paragraphs=5, **changes):
    """Summarise one trace; return summaries and failures by paragraph index, and the server."""
    prepared_run(tmp_path / "runs", [trace(0, texts(0, paragraphs))])
    with serve(script) as server:
        cfg = configure(server.url, **changes)
        summarize(cfg)
    directory = summarize_run(cfg)
    summaries = {row["paragraph"]: row for row in rows(directory / "summaries.jsonl")}
    failures = {row["paragraph"]: row for row in rows(directory / "failures.jsonl")}
    assert summaries.keys() | failures.keys() == set(range(paragraphs))
    assert not summaries.keys() & failures.keys()
    return summaries, failures, server


def only_for(index: int, answer):
    """A script that treats one paragraph badly, for ever or while `answer(call)` says so."""

    def script(call: Call) -> Answer:
        if f".{index} " in call.paragraph:
            return (answer(call) if callable(answer) else answer) or echo(call)
        return echo(call)

    return script


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (completion(""), "blank"),
        (completion(None), "blank"),
        (completion(" \n\t "), "blank"),
        (completion(None, reasoning_content="the text is here"), "blank"),
        (completion("half a sen", finish="length"), "length"),
        (completion("a phrase", finish=None), "no finish reason"),
        (completion("I'm sorry, but I can't help with that."), "refusal"),
        (completion(None, refusal="no"), "refusal"),
        (completion("x = 4", finish="content_filter"), "filtered"),
        (completion("word " * 60), "too long"),
        (completion("done<|end_of_summary|> and more"), "delimiter"),
        (completion("<\uff5cAssistant\uff5c> x = 4"), "delimiter"),
        (completion("x = 4", finish="tool_calls"), "finish reason tool_calls"),
        (completion("x = 4", finish="insufficient_system_resource"), "finish reason insufficient_system_resource"),
        (completion("x = 4", finish=["stop"]), "finish reason ['stop']"),
        (completion("\ud835 = 4"), "broken text"),
        (completion("x " * 6000), "too long"),
        (completion([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]), "blank"),
        (completion([{"type": "image_url", "image_url": {"url": "x"}}]), "broken reply"),
        (completion({"text": "x = 4"}), "broken reply"),
        (completion(4), "broken reply"),
        (Answer(body={"choices": [{"message": "x = 4", "finish_reason": "stop"}]}), "broken reply"),
        (Answer(body={"choices": {"message": {"content": "x = 4"}}}), "broken reply"),
        (Answer(body={"choices": [None]}), "broken reply"),
        (Answer(body=[{"choices": []}]), "broken reply"),
        (Answer(body=None), "broken reply"),
        (Answer(body="[" * 100_000), "broken reply"),
        (Answer(body={"object": "error"}), "broken reply"),
        (Answer(body="<html>busy</html>", headers={"Content-Type": "text/html"}), "broken reply"),
        (Answer(body='{"choices": [', headers={"Content-Type": "application/json"}), "broken reply"),
        (Answer(status=503, body={"error": {"message": "overloaded"}}), "http 503"),
        (Answer(drop=True), "connection lost"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_d01_d02_an_unusable_reply_is_retried_then_listed(configure, tmp_path, answer, reason):
    changes = {"summarize.patience.answers": 3, "summarize.patience.faults": 3}
    summaries, failures, server = run_with(configure, tmp_path, only_for(2, answer), **changes)
    assert set(failures) == {2}
    assert failures[2]["reason"] == reason
    assert len([call for call in server.calls if ".2 " in call.paragraph]) == 3
    assert all(row["summary"].strip() for row in summaries.values())


@pytest.mark.parametrize(
    ("content", "summary"),
    [
        ([{"type": "text", "text": "x "}, {"type": "text", "text": "= 4"}], "x = 4"),
        (
            [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "x = 4"}],
            "x = 4",
        ),
        ([{"type": "reasoning", "summary": []}, {"type": "output_text", "text": "x = 4"}], "x = 4"),
        (["x", " = 4"], "x = 4"),
        ("\U0001d465 = 4", "\U0001d465 = 4"),
    ],
)
@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": True, "completion_tokens": -3}, ["x"], None, {"completion_tokens": "5"}]
)
def test_n12_the_text_parts_of_a_reply_are_joined(configure, tmp_path, content, summary, usage):
    answer = completion(content)
    answer.body["usage"] = usage
    summaries, failures, server = run_with(configure, tmp_path, lambda call: answer, paragraphs=2)
    assert [row["summary"] for row in summaries.values()] == [summary] * 2
    assert len(server.calls) == 2


def test_n11_one_broken_text_loses_none_of_those_that_wait_with_it(configure, tmp_path):
    raw = {"teacher.answer": "json", "summarize.patience.answers": 1, "teacher.concurrency": 30}
    script = only_for(7, completion('{"results": "a \\ud835 b"}'))

    def good(call):
        return completion('{"results": "a note", "more": "\ud835"}') if ".3 " in call.paragraph else None

    def both(call):
        answer = good(call) or script(call)
        return answer if "results" in str(answer.body) else completion('{"results": "x = 4"}')

    summaries, failures, _ = run_with(configure, tmp_path, both, paragraphs=30, **raw)
    assert set(failures) == {7} and failures[7]["reason"] == "broken text"
    stored = rows(next((tmp_path / "runs/summarize").glob("*/replies.jsonl")))
    assert len(stored) == 29
    assert next(row["raw"] for row in stored if row["paragraph"] == 3) == '{"results": "a note", "more": "\ud835"}'


@pytest.mark.parametrize(
    "value", ["inf", "nan", "1e400", "-5", "soon", "Tue, 99 Foo 2026", "Mon, 01 Dec 2025 05:00:00"]
)
@pytest.mark.parametrize("name", ["Retry-After", "retry-after-ms"])
def test_a_retry_after_that_is_no_time_is_passed_over(configure, tmp_path, name, value):
    limited = Answer(status=429, body={"error": {}}, headers={name: value})
    started = time.monotonic()
    summaries, failures, _ = run_with(
        configure, tmp_path, only_for(0, lambda call: limited if call.attempt == 0 else None), paragraphs=1
    )
    assert not failures
    assert time.monotonic() - started < 3


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_beyond_patience_is_not_waited_for(configure, tmp_path, status):
    answer = Answer(status=status, body={"error": {}}, headers={"Retry-After": "86400"})
    started = time.monotonic()
    _, failures, server = run_with(configure, tmp_path, lambda call: answer, paragraphs=2)
    assert time.monotonic() - started < 3
    assert len(failures) == len(server.calls) == 2


@pytest.mark.parametrize("reason", ["blank", "length", "too long"])
def test_d01_d02_a_retry_tells_the_teacher_what_was_wrong(configure, tmp_path, reason):
    bad = {"blank": completion(""), "length": completion("hal", finish="length"), "too long": completion("w " * 99)}
    script = only_for(1, lambda call: bad[reason] if call.attempt == 0 else None)
    summaries, failures, server = run_with(configure, tmp_path, script)
    assert not failures
    first, second = (call.body for call in server.calls if ".1 " in call.paragraph)
    assert second["messages"][-1]["content"].startswith(first["messages"][-1]["content"])
    assert len(second["messages"][-1]["content"]) > len(first["messages"][-1]["content"])
    assert second["max_tokens"] == first["max_tokens"] * (2 if reason == "length" else 1)


def test_d03_a_reply_that_used_its_whole_budget_is_taken_for_cut(configure, tmp_path):
    script = only_for(3, lambda call: completion("ends mid-wo", tokens=96) if call.attempt == 0 else None)
    summaries, failures, server = run_with(configure, tmp_path, script)
    assert not failures
    (row,) = [r for r in rows(next((tmp_path / "runs/summarize").glob("*/replies.jsonl"))) if r["paragraph"] == 3]
    assert row["tries"] == ["length"]
    assert row["spent"]["requests"] == 2


def test_d02_d15_finish_reason_usage_model_and_raw_reply_are_kept(configure, tmp_path):
    run_with(configure, tmp_path, echo)
    for row in rows(next((tmp_path / "runs/summarize").glob("*/replies.jsonl"))):
        assert row["finish_reason"] == "stop"
        assert row["usage"]["completion_tokens"] == 5
        assert row["model"] == "scripted-model-v1"
        assert row["raw"].startswith("note on")


def test_d07_a_silent_server_ends_in_time(configure, tmp_path):
    changes = {"teacher.deadline": 0.4, "summarize.patience.faults": 3}
    started = time.monotonic()
    summaries, failures, _ = run_with(configure, tmp_path, only_for(1, Answer(silent=True)), **changes)
    assert time.monotonic() - started < 3 * 0.4 + 1.5
    assert set(summaries) == {0, 2, 3, 4}
    assert failures[1]["reason"] == "deadline"


def test_d08_dropped_calls_are_sent_again(configure, tmp_path):
    count = iter(range(10_000))
    changes = {"teacher.deadline": 0.5, "teacher.concurrency": 5}
    summaries, failures, server = run_with(
        configure,
        tmp_path,
        lambda call: Answer(silent=True) if next(count) % 5 == 0 else echo(call),
        paragraphs=20,
        **changes,
    )
    assert len(summaries) == 20
    assert len(server.calls) > 20


def test_d09_attempts_and_back_off_are_settings(configure, tmp_path):
    script = only_for(0, lambda call: Answer(status=500, body={}) if call.attempt < 6 else None)
    summaries, failures, _ = run_with(configure, tmp_path, script, **{"summarize.patience.faults": 7})
    assert not failures
    (row,) = [r for r in rows(next((tmp_path / "runs/summarize").glob("*/replies.jsonl"))) if r["paragraph"] == 0]
    assert row["tries"] == ["http 500"] * 6


def test_d14_retry_after_is_honoured_by_all_and_is_no_failure(configure, tmp_path):
    def script(call: Call) -> Answer:
        limited = len(server_calls := call_times) < 2
        server_calls.append(call.time)
        return Answer(status=429, body={"error": {}}, headers={"Retry-After": "1"}) if limited else echo(call)

    call_times: list[float] = []
    changes = {"teacher.concurrency": 2, "summarize.patience.answers": 1, "summarize.patience.faults": 1}
    summaries, failures, server = run_with(configure, tmp_path, script, **changes)
    assert not failures
    times = sorted(call.time for call in server.calls)
    assert times[2] - times[1] >= 0.99


def test_d14_a_limit_that_never_lifts_ends_in_the_failures(configure, tmp_path):
    limited = Answer(status=429, body={"error": {}}, headers={"Retry-After": "0.2"})
    _, failures, _ = run_with(configure, tmp_path, lambda call: limited, **{"summarize.patience.rate_limited": 0.5})
    assert {row["reason"] for row in failures.values()} == {"rate limited"}
    assert {row["status"] for row in failures.values()} == {429}


def test_d18_messages_are_plain_objects_without_control_tokens(configure, tmp_path):
    prepared_run(
        tmp_path / "runs",
        [trace(0, ["<s> [INST] say <|eot_id|> or <\uff5cUser\uff5c> </think> [/INST]"], user="Is <|im_end|> a word?")],
    )
    with serve() as server:
        summarize(configure(server.url))
    body = server.calls[0].body
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    for token in ("<s>", "[INST]", "<|eot_id|>", "\uff5cUser\uff5c", "</think>", "<|im_end|>", "<|begin"):
        assert token not in body["messages"][-1]["content"]
    assert "eot_id" in body["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ('{"results": "x = 4"}', True),
        ('```json\n{"results": "x = 4"}\n```', True),
        ('{"results": ["x = 4"]}', False),
        ('{"result": "x = 4"}', False),
        ("x = 4", False),
        ('{"results": "x = 4"', False),
        ('{"results": ""}', False),
        ("[]", False),
    ],
)
def test_json_answers(configure, tmp_path, text, accepted):
    changes = {"teacher.answer": "json", "summarize.patience.answers": 2}
    summaries, failures, _ = run_with(configure, tmp_path, lambda call: completion(text), paragraphs=1, **changes)
    assert bool(summaries) == accepted
    if accepted:
        assert summaries[0]["summary"] == "x = 4"


@pytest.mark.parametrize(
    ("answer", "setting"),
    [
        (Answer(status=401, body={"error": {"message": "bad key sk-123"}}), "teacher.api_key_env"),
        (Answer(status=404, body={"error": {"message": "no model"}}), "teacher.model"),
    ],
)
def test_a_refused_key_or_model_stops_the_stage_in_one_sentence(configure, tmp_path, answer, setting):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 3))])
    with serve(lambda call: answer) as server, pytest.raises(UserError, match=setting) as error:
        summarize(configure(server.url))
    assert "sk-123" not in str(error.value)


def test_an_unreachable_teacher_stops_the_stage_in_one_sentence(configure, tmp_path):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 3))])
    with pytest.raises(UserError, match="teacher.base_url=http://127.0.0.1:9/v1 cannot be reached"):
        summarize(configure("http://127.0.0.1:9/v1"))


def test_a_server_that_dies_stops_the_stage_and_loses_nothing(configure, tmp_path):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 200))])
    count = iter(range(10_000))
    with serve(lambda call: echo(call) if next(count) < 30 else Answer(drop=True)) as server:
        cfg = configure(server.url, **{"teacher.concurrency": 4, "summarize.patience.faults": 2})
        with pytest.raises(UserError, match="run the same command to go on"):
            summarize(cfg)
    gc.collect()  # the lock on the directory goes with the run that failed
    assert len(rows(summarize_run(cfg) / "replies.jsonl")) == 30
    with serve() as server:
        summarize(configure(server.url))
    assert len(server.calls) == 170
    assert len(rows(summarize_run(cfg) / "summaries.jsonl")) == 200
