"""Rows that would teach something else are refused before the first step, by name."""

import pytest
from datasets import Dataset

from tests.train.conftest import make_rows
from train.preflight import GREEN, check_rows, describe, legible
from zoomr.errors import UserError
from zoomr.loading import DELIMITERS


@pytest.fixture
def rows(workshop):
    return make_rows(workshop.tokenizer, range(3))


def check(rows, workshop, max_length=1000):
    return check_rows(Dataset.from_list(rows), workshop.tokenizer, max_length)


def test_facts_are_counted(rows, workshop):
    facts = check(rows, workshop)
    assert facts.rows == facts.ended == 3
    assert facts.tokens == sum(len(row["input_ids"]) for row in rows)
    assert facts.supervised == sum(label != -100 for row in rows for label in row["labels"])
    assert facts.summaries == 4 + 5 + 6
    assert facts.counts()["supervised_share"] == pytest.approx(facts.supervised / facts.tokens, abs=1e-4)
    assert "about 5 steps" in describe(facts, {"max_steps": None, "epochs": 3, "batch_size": 1, "accumulation": 2}, 1)


def test_t09_a_row_that_supervises_nothing_stops_the_run(rows, workshop):
    rows[1]["labels"] = [-100] * len(rows[1]["labels"])
    with pytest.raises(UserError, match="row-1 has no supervised token"):
        check(rows, workshop)


def test_t10_a_prompt_token_in_the_labels_stops_the_run(rows, workshop):
    rows[2]["labels"][0] = rows[2]["input_ids"][0]
    with pytest.raises(UserError, match="row-2 supervises other tokens than its own"):
        check(rows, workshop)


def test_t14_a_row_over_the_limit_stops_the_run(rows, workshop):
    longest = max(len(row["input_ids"]) for row in rows)
    assert check(rows, workshop, longest).longest == longest
    with pytest.raises(UserError, match=f"tokens, more than sft.max_length={longest - 1}"):
        check(rows, workshop, longest - 1)


@pytest.mark.parametrize("which", [0, 1])
def test_t24_unbalanced_delimiters_stop_the_run(rows, workshop, which):
    token = workshop.tokenizer.convert_tokens_to_ids(DELIMITERS[which])
    place = rows[0]["input_ids"].index(token)
    for column in ("input_ids", "labels"):
        del rows[0][column][place]
    with pytest.raises(UserError, match="row-0 has summaries whose delimiters are not balanced"):
        check(rows, workshop)


def test_t06_t08_rows_without_their_end_of_turn_stop_the_run(rows, workshop):
    for row in rows[:2]:
        del row["input_ids"][-1], row["labels"][-1]
    assert check(rows, workshop).ended == 1
    with pytest.raises(UserError, match="no row supervises the token that ends a turn"):
        check(rows[:2], workshop)


def test_t22_rows_of_another_tokenizer_have_no_summaries(rows, workshop):
    for row in rows:
        row["input_ids"] = [token % 300 for token in row["input_ids"]]
        row["labels"] = row["labels"][: row["labels"].count(-100)] + row["input_ids"][row["labels"].count(-100) :]
    with pytest.raises(UserError, match="holds no summaries"):
        check(rows, workshop)


def test_a_row_is_shown_as_a_person_reads_it(rows, workshop):
    text = legible(rows[0], workshop.tokenizer)
    assert (
        text.index("Question 0?") < text.index(GREEN) < text.index("<|begin_of_thought|>") < text.index(DELIMITERS[0])
    )
    assert text.endswith("'<|eos|>'")
    brief = legible(rows[0], workshop.tokenizer, edge=20, colour=False)
    assert "characters ..." in brief
    assert "\x1b" not in brief
