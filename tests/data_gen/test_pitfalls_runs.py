"""Pitfalls D01-D18 that concern a whole run: concurrency, resuming, failures, joins."""

import gc
import os
import threading
from pathlib import Path

import pytest

from data_gen.by_trace import ByTrace
from data_gen.lengths import approximate_tokens
from data_gen.summarize import _reader, summarize
from data_gen.teacher import answer
from tests.data_gen.conftest import manifest, prepared_run, rows, summarize_run, texts, trace
from tests.data_gen.scripted_server import Answer, completion, echo, serve
from zoomr.errors import UserError


def slow(seconds):
    def script(call):
        answer = echo(call)
        return Answer(body=answer.body, delay=seconds)

    return script


def test_d04_the_client_keeps_its_concurrency(configure, tmp_path):
    prepared_run(tmp_path / "runs", [trace(n, texts(n, 10)) for n in range(6)])
    with serve(slow(0.02)) as server:
        summarize(configure(server.url, **{"teacher.concurrency": 4}))
    assert server.most_in_flight == 4
    assert len(server.calls) == 60


def test_d04_one_failed_call_harms_no_other(configure, tmp_path):
    prepared_run(tmp_path / "runs", [trace(n, texts(n, 10)) for n in range(4)])
    bad = {"1.3", "3.0"}
    with serve(lambda c: Answer(status=400, body={}) if c.paragraph.split()[1] in bad else echo(c)) as server:
        cfg = configure(server.url)
        summarize(cfg)
    assert len(server.calls) == 40
    failed = {(row["trace"], row["paragraph"]) for row in rows(summarize_run(cfg) / "failures.jsonl")}
    assert failed == {("t1", 3), ("t3", 0)}


def test_d05_d06_two_runs_in_one_process_and_one_in_another_thread(configure, tmp_path):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 10))])
    with serve() as server:
        summarize(configure(server.url))
        summarize(configure(server.url, **{"teacher.model": "another"}))
        thread = threading.Thread(target=summarize, args=(configure(server.url, **{"teacher.model": "third"}),))
        thread.start()
        thread.join()
    assert len(server.calls) == 30
    stored = [row for path in (tmp_path / "runs/summarize").glob("*/replies.jsonl") for row in rows(path)]
    assert len(stored) == 30
    assert all(row["tries"] == [] for row in stored)


def test_changed_settings_never_mix(configure, tmp_path):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 3))])
    changes = [
        {},
        {"teacher.model": "another"},
        {"teacher.sampling.temperature": 0.7},
        {"teacher.answer": "json"},
        {"summarize.context": "none"},
        {"summarize.context": "previous"},
        {"summarize.context": "previous", "summarize.previous": 1},
        {"summarize.summary_tokens": 30},
    ]
    with serve(lambda c: completion('{"results": "x"}')) as server:
        for change in changes:
            summarize(configure(server.url, **change))
        summarize(configure(server.url, **{"teacher.concurrency": 3, "teacher.deadline": 9}))
    assert len(server.calls) == 3 * len(changes)
    ids = [row["id"] for path in (tmp_path / "runs/summarize").glob("*/replies.jsonl") for row in rows(path)]
    # What comes before the first two paragraphs is the same for two paragraphs back and for one.
    assert len(set(ids)) == 3 * len(changes) - 2


def test_d12_d13_a_second_run_sends_what_failed_and_nothing_else(configure, tmp_path):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 6))])

    def script(call):
        if call.paragraph.split()[1] in ("0.1", "0.4"):
            return Answer(status=402 if "0.4" in call.paragraph else 400, body={"error": {"message": "no"}})
        return echo(call)

    strict = {"summarize.failed_share": 0.0}
    with serve(script) as server:
        cfg = configure(server.url, **strict)
        with pytest.raises(UserError, match="2 of 6 paragraphs have no summary .*summarize.failed_share"):
            summarize(cfg)
    directory = summarize_run(cfg)
    failures = rows(directory / "failures.jsonl")
    assert [(row["paragraph"], row["status"], row["spent"]["requests"]) for row in failures] == [
        (1, 400, 1),
        (4, 402, 1),
    ]
    assert manifest(directory)["ended"] is None
    gc.collect()  # the lock on the directory goes with the run that failed
    with serve() as server:
        summarize(configure(server.url, **strict))
    assert sorted(call.paragraph.split()[1] for call in server.calls) == ["0.1", "0.4"]
    assert rows(directory / "failures.jsonl") == []
    assert [row["paragraph"] for row in rows(directory / "summaries.jsonl")] == list(range(6))


def test_d12_a_finished_run_with_failures_goes_on_when_fewer_are_allowed(configure, tmp_path):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 6))])
    with serve(lambda c: Answer(status=400, body={}) if "0.2 " in c.paragraph else echo(c)) as server:
        summarize(configure(server.url))
        summarize(configure(server.url))
    assert len(server.calls) == 6
    with serve() as server:
        summarize(configure(server.url, **{"summarize.failed_share": 0.0}))
    assert len(server.calls) == 1


def test_d11_stored_replies_without_a_paragraph_are_counted_and_left_out(configure, tmp_path, capsys):
    prepared = prepared_run(tmp_path / "runs", [trace(n, texts(n, 3)) for n in range(4)])
    strict = {"summarize.failed_share": 0.0}
    with serve(lambda call: Answer(status=400, body={}) if "3.2 " in call.paragraph else echo(call)) as server:
        cfg = configure(server.url, **strict)
        with pytest.raises(UserError, match="1 of 12"):
            summarize(cfg)
    gc.collect()
    lines = (prepared / "traces.jsonl").read_text().splitlines()
    (prepared / "traces.jsonl").write_text("\n".join(lines[1:]) + "\n")
    with serve() as server:
        summarize(configure(server.url, **strict))
    assert len(server.calls) == 1
    assert {row["trace"] for row in rows(summarize_run(cfg) / "summaries.jsonl")} == {"t1", "t2", "t3"}
    assert "warning: 3 stored replies belong to no paragraph" in capsys.readouterr().out


def test_d11_rows_are_found_by_their_trace_in_any_order(tmp_path):
    lines = [f'{{"trace": "t{t}", "paragraph": {p}, "summary": "é{t}.{p}"}}\n' for t in range(3) for p in range(3)]
    (tmp_path / "summaries.jsonl").write_text("".join(lines[::-1]))
    found = ByTrace(tmp_path / "summaries.jsonl")
    for number in range(3):
        assert [row["summary"] for row in found.of(f"t{number}")] == [f"é{number}.{p}" for p in (2, 1, 0)]
    assert list(found.of("t7")) == []
    assert len(found) == 9


def test_summaries_are_read_anew_from_what_was_answered(configure, tmp_path, monkeypatch):
    prepared_run(tmp_path / "runs", [trace(n, texts(n, 5)) for n in range(2)])

    def script(call):
        return completion("again 0.1") if call.attempt else echo(call)

    def stricter(*arguments):
        summary = usual(*arguments)
        if summary == "note on step 0.1 of":
            raise answer.Rejected("blank")
        return summary.upper()

    usual = answer.summary_of
    with serve(script) as server:
        cfg = configure(server.url)
        summarize(cfg)
        first = rows(summarize_run(cfg) / "summaries.jsonl")
        assert [row["summary"] for row in first[:2]] == ["note on step 0.0 of", "note on step 0.1 of"]
        monkeypatch.setattr("data_gen.teacher.answer.summary_of", stricter)
        monkeypatch.setattr("data_gen.teacher.client.summary_of", stricter)
        summarize(cfg)  # finished, and nothing says that the code has changed
        assert rows(summarize_run(cfg) / "summaries.jsonl") == first
        monkeypatch.setattr("data_gen.summarize._reader", lambda: "other code")
        summarize(cfg)
    again = [row["summary"] for row in rows(summarize_run(cfg) / "summaries.jsonl")]
    assert again[:3] == ["NOTE ON STEP 0.0 OF", "AGAIN 0.1", "NOTE ON STEP 0.2 OF"]
    # What is a summary no more is asked for again, and nothing else.
    assert [call.paragraph.split()[1] for call in server.calls[10:]] == ["0.1"]


def test_edited_code_makes_another_reader(tmp_path, monkeypatch):
    before = _reader()
    assert before == _reader()
    edited = tmp_path / "answer.py"
    edited.write_bytes(Path(answer.__file__).read_bytes() + b"# edited\n")
    monkeypatch.setattr(answer, "__file__", str(edited))
    assert _reader() != before


def test_what_was_spent_is_a_lower_bound_over_all_attempts(configure, tmp_path):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 5))])
    bad = {"0.1 ": completion(""), "0.3 ": Answer(status=400, body={})}
    with serve(lambda call: bad.get(call.paragraph[5:9], echo(call))) as server:
        cfg = configure(server.url, **{"summarize.patience.answers": 2})
        summarize(cfg)
    spent = manifest(summarize_run(cfg))["counts"]["spent_at_least"]
    assert spent == {"requests": len(server.calls), "prompt_tokens": 500, "completion_tokens": 25}
    assert len(server.calls) == 6


def test_a_full_disk_stops_the_stage_in_one_sentence_and_keeps_whole_rows(configure, tmp_path, monkeypatch):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 300))])
    synced = os.fsync

    def full_after_some(descriptor):
        if sum(path.stat().st_size for path in (tmp_path / "runs").glob("summarize/*/replies.jsonl")) > 40_000:
            raise OSError(28, "No space left on device")
        synced(descriptor)

    with serve(slow(0.01)) as server:
        cfg = configure(server.url, **{"teacher.concurrency": 4})
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full_after_some)
            with pytest.raises(UserError, match="No space left"):
                summarize(cfg)
        gc.collect()
        kept = len(rows(summarize_run(cfg) / "replies.jsonl"))
        assert 0 < kept < 300
        summarize(cfg)
    assert len(rows(summarize_run(cfg) / "summaries.jsonl")) == 300


def test_requests_a_minute_are_kept(configure, tmp_path):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 12))])
    with serve() as server:
        summarize(configure(server.url, **{"teacher.requests_per_minute": 1200}))
    times = sorted(call.time for call in server.calls)
    assert times[-1] - times[0] >= 11 * 0.05 * 0.9


def test_tokens_a_minute_are_kept(configure, tmp_path, monkeypatch):
    monkeypatch.setattr("data_gen.teacher.client.TOKEN_WINDOW", 0.5)
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 8))])
    with serve() as server:
        summarize(configure(server.url, **{"teacher.tokens_per_minute": 60_000}))
    # 1,000 tokens a second, 500 at once; a request has some 230.
    tokens = [sum(approximate_tokens(m["content"]) for m in call.body["messages"]) for call in server.calls]
    times = sorted(call.time for call in server.calls)
    assert (sum(tokens) - 500 - max(tokens)) / 1000 < times[-1] - times[0] < 4


def test_dry_run_sends_nothing_and_prints_the_estimate(configure, tmp_path, capsys):
    prepared_run(tmp_path / "runs", [trace(n, texts(n, 10)) for n in range(10)])
    changes = {
        "summarize.dry_run": True,
        "teacher.input_price": 1.0,
        "teacher.output_price": 2.0,
        "teacher.requests_per_minute": 60,
    }
    with serve() as server:
        summarize(configure(server.url, **changes))
        assert server.calls == []
    text = capsys.readouterr().out
    assert "100 requests" in text
    assert "1,600 answer tokens" in text
    assert "0:01:40 h" in text
    assert "$" in text


def test_the_live_line_says_how_it_goes(configure, tmp_path, capsys):
    prepared_run(tmp_path / "runs", [trace(n, texts(n, 10)) for n in range(4)])
    changes = {"teacher.input_price": 1000.0, "teacher.output_price": 2000.0}
    with serve(
        lambda c: Answer(status=500, body={}) if c.attempt == 0 and "1.1 " in c.paragraph else echo(c)
    ) as server:
        summarize(configure(server.url, **changes))
    line = capsys.readouterr().err
    assert "40/40" in line
    assert "req/s" in line and "tok/s" in line
    assert "0 in flight, 1 retries, 0 failed" in line
    # 40 answers of 100 and 5 tokens at $1,000 and $2,000 a million.
    assert "$4.40 of about $4.40" in line


def test_limit_takes_the_first_traces(configure, tmp_path):
    prepared_run(tmp_path / "runs", [trace(n, texts(n, 10)) for n in range(10)])
    with serve() as server:
        cfg = configure(server.url, limit=2)
        summarize(cfg)
    assert {row["trace"] for row in rows(summarize_run(cfg) / "summaries.jsonl")} == {"t0", "t1"}


KEY = "sk-very-secret-0123456789"


def test_a_key_is_sent_and_written_nowhere(configure, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TEST_TEACHER_KEY", KEY)
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 4))])

    def script(call):
        if "0.2 " in call.paragraph:
            return Answer(status=400, body={"error": {"message": f"the key {KEY} may not do this"}})
        return echo(call)

    with serve(script) as server:
        summarize(configure(server.url, **{"teacher.api_key_env": "TEST_TEACHER_KEY"}))
    assert all(call.headers["authorization"] == f"Bearer {KEY}" for call in server.calls)
    with serve(lambda call: Answer(status=401, body={"error": {"message": f"bad key {KEY}"}})) as server:
        changes = {"teacher.api_key_env": "TEST_TEACHER_KEY", "teacher.model": "other"}
        with pytest.raises(UserError) as error:
            summarize(configure(server.url, **changes))
    printed = capsys.readouterr()
    files = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY not in printed.out + printed.err + files + repr(error.value)


@pytest.mark.parametrize(
    "change",
    [
        {"teacher.api_key_env": KEY},
        {"teacher.base_url": f"http://user:{KEY}@host/v1"},
        {"teacher.base_url": f"http://host/v1?key={KEY}"},
    ],
)
def test_a_key_in_the_wrong_place_is_refused_without_repeating_it(configure, tmp_path, change):
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 4))])
    with pytest.raises(Exception, match="teacher\\.(api_key_env|base_url)") as error:
        summarize(configure("http://host/v1", **change))
    assert KEY not in str(error.value)
    assert not (tmp_path / "runs/summarize").exists()


def test_an_environment_variable_without_a_key_is_named(configure, tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 4))])
    with serve() as server, pytest.raises(UserError, match="NO_SUCH_KEY"):
        summarize(configure(server.url, **{"teacher.api_key_env": "NO_SUCH_KEY"}))


def test_traces_that_are_missing_name_the_setting_and_the_command(configure):
    with pytest.raises(UserError, match="summarize.traces=.*`python -m data_gen.prepare`"):
        summarize(configure("http://host/v1"))
