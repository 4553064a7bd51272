"""One reader of JSON Lines for the stages' own files and for those that people bring (N12, N17, N19)."""

import json

import pytest

from pipeline import iterate_rows, read_rows, write_rows
from zoomr.errors import UserError

ROWS = [{"text": "one\u2028two\u0085three\u2029four\x0bfive", "n": 1}, {"text": "\ud835", "n": None}]


def given(path):
    return list(iterate_rows(path, "dataset.path"))


def test_rows_come_back_as_they_were(tmp_path):
    assert write_rows(tmp_path / "a.jsonl", ROWS) == 2
    assert read_rows(tmp_path / "a.jsonl") == given(tmp_path / "a.jsonl") == ROWS


RAW = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS[:1] * 2)


@pytest.mark.parametrize(
    "content",
    [
        RAW.encode(),
        RAW.encode() + b"\n",
        b"\xef\xbb\xbf" + RAW.encode(),
        RAW.replace("\n", "\r\n\r\n").encode(),
        json.dumps(ROWS[:1] * 2).encode(),
        b"\xef\xbb\xbf \n" + json.dumps(ROWS[:1] * 2, indent=2, ensure_ascii=False).encode(),
    ],
    ids=["no end", "end", "byte order mark", "crlf and blank lines", "array", "indented array"],
)
def test_n17_n19_every_dress_of_a_given_file_is_read(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    assert given(tmp_path / "a.json") == ROWS[:1] * 2


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"a": "é"}\n'.encode("latin-1"), "line 1 is not UTF-8 (byte 0xe9)"),
        ('{"a": 1}\n'.encode("utf-16"), "line 1 is not UTF-8"),
        (b'{"a": 1}\n{"a": \n', "line 2 is not JSON"),
        (b'{"a": 1}\n\nnull\n', "line 3 is no object with fields but null"),
        (b'{"a": 1}\n"text"\n', 'line 2 is no object with fields but "text"'),
        (b'{"a": 1}\n[{"a": 1}]\n', "line 2 is no object"),
        (b'["a", "b"]\n', 'row 1 is no object with fields but "a"'),
        (b'[{"a": 1}, 7]', "row 2 is no object with fields but 7"),
        (b'[{"a": 1},', "a.jsonl is not JSON"),
        (b'{"a": ' + b"[" * 100_000 + b"\n", "line 1 is not JSON"),
        (b'{"a": ' + b"1" * 5000 + b"}\n", "line 1 is not JSON"),
        (b"PAR1\x15\x00\x15\xff", "line 1 is not"),
    ],
)
def test_n12_n17_n19_another_file_is_refused_in_one_sentence(tmp_path, content, sentence):
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(UserError, match="^dataset.path=") as error:
        given(tmp_path / "a.jsonl")
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match="^dataset.path=.* does not exist"):
        given(tmp_path / "none.jsonl")
    with pytest.raises(UserError, match="^dataset.path=.* cannot be read: Is a directory"):
        given(tmp_path)


def test_the_half_line_of_a_killed_stage_counts_as_not_there(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\n{"a": 2}')
    assert read_rows(tmp_path / "a.jsonl") == [{"a": 1}]
    assert given(tmp_path / "a.jsonl") == [{"a": 1}, {"a": 2}]
