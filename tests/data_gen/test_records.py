"""Public schemas (D16): both shapes give the same trace, an unknown one is named, unusable rows are counted."""

import json
import re

import pyarrow as pa
import pyarrow.parquet
import pytest

from data_gen.boxed import boxed_answer
from data_gen.conversations import read_conversation, read_conversations
from data_gen.lengths import approximate_tokens
from data_gen.records import Skip, cut_at_thought, read_turns, text_of
from data_gen.segmentation import Segmentation
from data_gen.sources import Drawn, Published
from zoomr.errors import UserError

RAW = Segmentation(merge=False, minimum=120, target=225, maximum=512)
ASSISTANT = (
    "<|begin_of_thought|>\n\nOne.\n\nTwo.\n\n<|end_of_thought|>\n\n"
    "<|begin_of_solution|>\n\nSo \\boxed{4}.\n\n<|end_of_solution|>"
)
CONVERSATIONS = {
    "system": "Think.",
    "conversations": [{"from": "user", "value": "2+2?"}, {"from": "assistant", "value": ASSISTANT}],
}
MESSAGES = {
    "messages": [
        {"role": "system", "content": "Think."},
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": ASSISTANT},
    ]
}


def read(row):
    return read_conversation(row, 0, RAW, approximate_tokens)


def test_d16_both_schemas_give_the_same_trace():
    assert read(CONVERSATIONS) == read(MESSAGES)
    trace = read(MESSAGES)
    assert (trace.system, trace.user, trace.paragraphs, trace.answer) == ("Think.", "2+2?", ["One.", "Two."], "4")
    assert trace.assistant == ASSISTANT


def test_d16_sharegpt_role_names_are_known():
    row = {"conversations": [{"from": "human", "value": "2+2?"}, {"from": "gpt", "value": ASSISTANT}]}
    assert read(row).user == "2+2?"


def test_d16_r1_style_thoughts_are_known():
    row = {"messages": [MESSAGES["messages"][1], {"role": "assistant", "content": "<think>\nA.\n\nB.\n</think>\n\n4"}]}
    trace = read(row)
    assert (trace.before, trace.paragraphs, trace.after) == ("<think>\n", ["A.", "B."], "</think>\n\n4")
    assert trace.separators == ["\n\n", "\n"]


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"text": "x"}, "row 7 has neither the field `conversations` nor `messages`"),
        ({"conversations": [{"from": "user"}]}, "row 7 has a turn in `conversations` without the field `value`"),
        ({"messages": [{"content": "x"}]}, "row 7 has a turn in `messages` without the field `role`"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "row 7 has the unknown role 'tool'"),
    ],
)
def test_d16_an_unknown_schema_is_named_with_its_row(row, named):
    with pytest.raises(UserError, match="dataset.path") as error:
        read_turns(row, 7)
    assert named in str(error.value)


def with_assistant(text):
    return {"conversations": [{"from": "user", "value": "2+2?"}, {"from": "assistant", "value": text}]}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"conversations": [{"from": "user", "value": "2+2?"}]}, "no assistant turn"),
        (with_assistant(None), "no assistant turn"),
        ({"messages": None}, "no user turn"),
        (with_assistant("4"), "thought not opened"),
        (with_assistant("<think>\nhm"), "thought not closed"),
        (with_assistant("<think>\n\n</think>4"), "empty thought"),
        ({"conversations": CONVERSATIONS["conversations"] * 2}, "more than one question"),
        (with_assistant("<think>\n\ud835 = 2</think>4"), "half of a surrogate pair"),
        (with_assistant(["<think>one</think>", {"type": "image_url", "image_url": "x"}]), "content that is not text"),
        (with_assistant({"text": "4"}), "content that is not text"),
        (with_assistant([{"type": "thinking", "text": "<think>x</think>4"}]), "no assistant turn"),
        (with_assistant(4), "content that is not text"),
        ({"messages": "What is 2+2?"}, "turns that are no list of objects"),
        ({"messages": [None, None]}, "turns that are no list of objects"),
        ({"messages": {"role": "user"}}, "turns that are no list of objects"),
        ({**CONVERSATIONS, "system": 3}, "content that is not text"),
    ],
)
def test_d16_n11_n12_unusable_rows_are_named_with_their_reason(row, reason):
    skipped = []
    traces = list(read_conversations([CONVERSATIONS, {**row, "id": 7}, MESSAGES], RAW, approximate_tokens, skipped))
    assert len(traces) == 1
    assert [(row["id"], row["reason"]) for row in skipped] == [("7", reason), ("row 2", "duplicate")]


def test_n12_the_parts_of_a_content_are_joined():
    parts = [{"type": "text", "text": ASSISTANT[:30]}, {"type": "text", "text": ASSISTANT[30:]}]
    assert read({"conversations": [{"from": "user", "value": ["2+", "2?"]}, {"from": "gpt", "value": parts}]}) == read(
        CONVERSATIONS | {"system": None}
    )
    assert text_of(["a", {"type": "thinking", "thinking": []}, {"type": "text", "text": "b"}, "c"]) == "abc"
    assert text_of(None) == text_of([]) == ""


@pytest.mark.parametrize(
    ("given", "answer"), [(7, "7"), (0, "0"), (1.5, "1.5"), ("7", "7"), ("", "4"), (None, "4"), (["7"], "4")]
)
def test_an_answer_of_another_type_is_text_or_the_boxed_one(given, answer):
    assert read({**CONVERSATIONS, "answer": given}).answer == answer


@pytest.mark.parametrize("split", ["test", "aops", 3, ["train"], None])
def test_a_split_that_is_none_of_ours_decides_nothing(split):
    assert read({**CONVERSATIONS, "split": split}).split is None
    assert read({**CONVERSATIONS, "split": "validation"}).split == "validation"


def test_n11_an_id_with_half_a_character_can_be_written():
    assert read({**CONVERSATIONS, "id": "a\ud835"}).id == "a\ufffd"


def test_the_turn_is_cut_without_loss():
    for text in (ASSISTANT, "<think>x</think>y", "pre<think>\n\n a \n\n</think>"):
        assert "".join(cut_at_thought(text)) == text


def test_ids_do_not_depend_on_the_order_of_rows():
    rows = [with_assistant(f"<think>{n}</think>") for n in range(5)]
    ids = [t.id for t in read_conversations(rows, RAW, approximate_tokens, [])]
    assert ids == [t.id for t in read_conversations(rows[::-1], RAW, approximate_tokens, [])][::-1]
    assert len(set(ids)) == 5


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"so \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"\boxed{1} then \boxed {2}", "2"),
        (r"\boxed{3} and \boxed{4", None),  # the thought went on: no credit for the earlier box
        (r"\boxed{3} and \boxed{4}", "3, 4"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        ("none", None),
    ],
)
def test_boxed_answers(text, answer):
    assert boxed_answer(text).text == answer


def test_d16_json_lines_and_parquet_give_the_same_rows(tmp_path):
    rows = [CONVERSATIONS, with_assistant("<think>x</think>") | {"system": None}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "a.json").write_text(json.dumps(rows))
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert list(Published(str(tmp_path / "a.jsonl")).rows()) == rows
    assert list(Published(str(tmp_path / "a.json")).rows()) == rows
    assert list(Published(str(tmp_path / "a.parquet")).rows()) == rows


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("missing.jsonl", None, "does not exist"),
        ("broken.jsonl", "{", "line 1 is not JSON"),
        ("strings.json", '["a", "b"]', "row 1 is no object"),
        ("broken.parquet", "PAR1", "is not a Parquet file"),
        ("notes.txt", "x", "must end in one of"),
    ],
)
def test_a_bad_file_is_named(tmp_path, name, content, sentence):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match="dataset.path=.*" + sentence):
        list(Published(str(path)).rows())


def test_the_hub_failing_names_the_option(monkeypatch):
    monkeypatch.setattr("datasets.load_dataset", lambda *a, **k: (_ for _ in ()).throw(ConnectionError("no network")))
    with pytest.raises(UserError, match="some/id could not be loaded .* at revision abc .*dataset.path="):
        list(Published("some/id", revision="abc").rows())


def test_d16_the_commit_that_was_read_is_kept(monkeypatch):
    class Data(list):
        class info:
            download_checksums = {f"hf://datasets/some/id@{'a1' * 20}/data/train.parquet": {}}

    monkeypatch.setattr("datasets.load_dataset", lambda path, subset, revision, split: Data([CONVERSATIONS]))
    source = Published("some/id", revision="main")
    assert list(source.rows()) == [CONVERSATIONS]
    assert source.commit == "a1" * 20


def test_ledger_rows_have_their_own_split():
    rows = list(Drawn("ledger", train=3, validation=2, lengths=(4, 5)).rows())
    assert [row["split"] for row in rows] == ["train"] * 3 + ["validation"] * 2
    assert all(len(read(row).paragraphs) in (5, 6) for row in rows)


def test_a_truncated_trace_is_skipped():
    with pytest.raises(Skip, match="not closed"):
        cut_at_thought("<|begin_of_thought|>\n\nand then")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"world": "storys"}, "dataset.source.world=storys must be one of ledger, stories."),
        ({"value": "first"}, "dataset.source.value=first must be one of last, anywhere."),
    ],
)
def test_a_world_that_there_is_not_is_refused_before_anything_is_drawn(changes, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)):
        Drawn(**{"world": "ledger", "train": 1, "validation": 0, "lengths": (4,)} | changes)


def test_other_rules_of_a_world_are_other_inputs():
    names = {world: set(Drawn(world, 1, 0, (4,)).inputs) for world in ("ledger", "stories")}
    assert names["ledger"] == {"world/world.py"}
    assert names["stories"] == {"world/drawing.py", "world/story.py", "world/wording.yaml"}
