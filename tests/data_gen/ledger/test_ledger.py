"""The ledger world: right sums, long thoughts, look-ups into the past, and a tokenizer that loses nothing."""

import random
import re

import pytest

from data_gen.ledger import draw, problems, rows, summarize_paragraph
from data_gen.ledger.tokens import ledger_tokenizer
from zoomr.prompts import render_row

LENGTHS = list(range(4, 17))


@pytest.fixture(scope="module")
def tokenizer():
    return ledger_tokenizer()


@pytest.mark.parametrize("length", [2, 3, 4, 9, 16, 20])
def test_values_are_the_sums_of_their_recipes(length):
    problem = draw(random.Random(length), length)
    values = {}
    for line in re.search(r"Ledger: (.*)\. What", problem.question).group(1).split("; "):
        _, name, addend, start = re.fullmatch(r"([A-T]) (\w+)=(\d{3}) above (\w+)", line).groups()
        values[name] = (values.get(start, 0) + int(addend)) % 1000
    asked = re.search(r"What is (\w+)\?", problem.question).group(1)
    assert problem.answer == f"{values[asked]:03d}"
    assert rf"\boxed{{{problem.answer}}}" in problem.response
    for left, result in re.findall(r"^([\d+]+)=(\d\d)\.$", problem.response, re.MULTILINE):
        assert sum(map(int, left.split("+"))) == int(result)
    for paragraph, entry in zip(problem.paragraphs, problem.entries, strict=False):
        assert paragraph.endswith(f"So {entry.name}:{values[entry.name]:03d}.")


def test_a_step_looks_back_over_at_least_one_paragraph_where_it_can():
    for seed in range(200):
        problem = draw(random.Random(seed), 12)
        for index, parent in list(enumerate(problem.dependencies))[2:]:
            assert parent is not None
            assert parent < index - 1
            name = problem.entries[parent].name
            assert f"Recall {name}: {name}:{problem.entries[parent].value:03d}." in problem.paragraphs[index]


def test_a_value_is_found_in_the_thoughts_alone():
    for _, problem in problems("test", 100, [8]):
        derived = [f"{entry.value:03d}" for entry in problem.entries if entry.parent is not None]
        given = re.findall(r"\d{3}", problem.question)
        assert sum(value in given for value in derived) <= 1


def test_splits_never_share_a_problem_and_are_reproducible():
    questions = {
        split: [problem.question for _, problem in problems(split, 400, LENGTHS)]
        for split in ("train", "validation", "test")
    }
    everything = [question for split in questions.values() for question in split]
    assert len(set(everything)) == len(everything)
    assert questions["test"] == [problem.question for _, problem in problems("test", 400, LENGTHS)]
    assert questions["test"] != [problem.question for _, problem in problems("test", 400, LENGTHS, seed=1)]


def test_rows_have_the_public_schema():
    row = next(rows("train", 1, [6]))
    assert [turn["from"] for turn in row["conversations"]] == ["user", "assistant"]
    answer = row["conversations"][1]["value"]
    pattern = (
        r"<\|begin_of_thought\|>\n\n.*\n\n<\|end_of_thought\|>\n\n<\|begin_of_solution\|>\n\n.*<\|end_of_solution\|>"
    )
    assert re.fullmatch(pattern, answer, re.DOTALL)


@pytest.mark.parametrize("length", [8, 12, 16])
def test_thoughts_are_at_least_four_times_as_long_as_the_prompt(tokenizer, length):
    row = next(rows("test", 1, [length]))
    user, assistant = (turn["value"] for turn in row["conversations"])
    ids, prompt = render_row(tokenizer, row["system"], user, assistant)
    assert len(ids) - prompt >= 4 * prompt


def test_summaries_open_the_fact_and_leave_the_rest():
    for _, problem in problems("train", 20, LENGTHS):
        for paragraph, entry in zip(problem.paragraphs, problem.entries, strict=False):
            assert summarize_paragraph(paragraph) == f"{entry.name}:{entry.value // 100}"
    with pytest.raises(ValueError, match="not a ledger paragraph"):
        summarize_paragraph("Let me think.")


def test_text_survives_the_tokenizer_byte_for_byte(tokenizer):
    for row in rows("train", 100, [*LENGTHS, 20]):
        for text in (row["system"], *(turn["value"] for turn in row["conversations"])):
            ids = tokenizer(text, add_special_tokens=False).input_ids
            assert tokenizer.unk_token_id not in ids
            assert tokenizer.decode(ids) == text


def test_a_look_up_ends_like_a_sentence(tokenizer):
    assert tokenizer.tokenize(" Recall ada: ada:374.") == [" Recall", " ada:", " ada:", "3", "7", "4", "."]
