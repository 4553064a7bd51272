"""The append log: what is in it is whole, whatever ended the writer."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from pipeline import AppendLog
from zoomr.errors import UserError


def test_rows_come_back_in_order_and_keys_know_them(tmp_path):
    with AppendLog(tmp_path / "deep" / "log.jsonl") as log:
        log.append({"id": "b", "text": "line\nbreak and \u2028 too"})
        log.append({"id": "a", "text": "ä"})
    with AppendLog(tmp_path / "deep" / "log.jsonl") as log:
        assert [row["id"] for row in log.rows()] == ["b", "a"]
        assert log.keys() == {"a", "b"}


@pytest.mark.parametrize("tail", [b'{"id": "x"', b"{", b'{"id": "long", "text": "' + b"y" * 200_000])
def test_d10_a_half_written_line_is_cut_off_and_redone(tmp_path, tail):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"id": "a"}\n' + tail)
    with AppendLog(path) as log:
        assert log.keys() == {"a"}
        log.append({"id": "x"})
    assert path.read_bytes() == b'{"id": "a"}\n{"id": "x"}\n'


def test_a_file_that_is_one_half_line_becomes_empty(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"id": ')
    with AppendLog(path) as log:
        assert log.keys() == set()
    assert path.read_bytes() == b""


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_n14_a_full_disk_or_quota_is_one_sentence_and_loses_nothing(tmp_path, monkeypatch, number):
    path = tmp_path / "log.jsonl"
    with AppendLog(path) as log:
        log.append({"id": "a"})

        class FullFile:
            def write(self, data):
                os.write(log_file.fileno(), data[:5])
                raise OSError(number, os.strerror(number))

            def __getattr__(self, name):
                return getattr(log_file, name)

        log_file = log._file
        monkeypatch.setattr(log, "_file", FullFile())
        with pytest.raises(UserError, match="No space left on the disk.*paths.runs"):
            log.append({"id": "b"})
        monkeypatch.setattr(log, "_file", log_file)
        assert path.read_bytes() == b'{"id": "a"}\n'
        log.append({"id": "b"})
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["a", "b"]


def test_n11_half_a_surrogate_pair_is_kept_as_json_writes_it(tmp_path):
    with AppendLog(tmp_path / "log.jsonl") as log:
        log.extend([{"id": "a", "text": "x\ud835y"}, {"id": "b", "text": "ä𝔸"}])
        assert [row["text"] for row in log.rows()] == ["x\ud835y", "ä𝔸"]
    assert (tmp_path / "log.jsonl").read_text().splitlines()[1] == '{"id": "b", "text": "ä𝔸"}'


def test_d10_kill_at_any_moment_leaves_whole_rows_without_gaps(tmp_path):
    path = tmp_path / "log.jsonl"
    writer = (
        "import sys; from pipeline import AppendLog\n"
        "log = AppendLog(sys.argv[1]); done = log.keys()\n"
        "for i in range(10**6):\n"
        "    if str(i) not in done: log.append({'id': str(i), 'text': 'x' * (i % 5000)})\n"
    )
    for moment in (0.0, 0.1, 0.3):  # seconds after it began to write
        process = subprocess.Popen([sys.executable, "-c", writer, str(path)])
        before = path.stat().st_size if path.exists() else 0
        deadline = time.monotonic() + 60
        while not path.exists() or path.stat().st_size == before:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
    with AppendLog(path) as log:
        numbers = [int(row["id"]) for row in log.rows()]
    assert len(numbers) > 0
    assert numbers == list(range(len(numbers)))
