"""The ledger world: right sums, long thoughts, look-ups into the past, and a tokenizer that loses nothing."""

import hashlib
import json
import random
import re

import pytest

from data_gen.ledger import LEDGER, draw, problems, rows, summarize_paragraph
from data_gen.ledger.tokens import ledger_tokenizer
from data_gen.solution import solution
from zoomr.loading import add_delimiters

LENGTHS = list(range(4, 25))


@pytest.fixture
def tokenizer():
    return ledger_tokenizer()


@pytest.mark.parametrize("length", [2, 3, 4, 9, 16, 65])
def test_values_are_the_sums_of_their_recipes(length):
    problem = draw(random.Random(length), length)
    values, codes = {}, {}
    *lines, last = re.search(r"Ledger: (.*)\.$", problem.question).group(1).split("; ")
    for line in lines:
        addend, name, code, start = re.fullmatch(r"([A-Z]+)=(\d\d) \1 for (\w+): (\w+) above (\w+)", line).groups()[1:]
        values[name] = (values.get(start, 0) + int(addend)) % 100
        codes[name] = code
    assert len(set(codes.values())) == length
    asked, code = re.fullmatch(r"[A-Z]+=\? value of (\w+): (\w+)", last).groups()
    assert codes[asked] == code
    assert problem.answer == f"{values[asked]:02d}"
    assert rf"\boxed{{{problem.answer}}}" in problem.response
    for left, result in re.findall(r"^([\d+]+)=(\d\d)\.$", problem.response, re.MULTILINE):
        assert sum(map(int, left.split("+"))) == int(result)
    checks = re.findall(r"^(\d\d)-([\d-]+)=(\d)\.$", problem.response, re.MULTILINE)
    assert len(checks) == 2 * (length - 1)
    for total, others, result in checks:
        assert int(total) - sum(map(int, others.split("-"))) == int(result)
    for label, paragraph, entry in zip(problem.labels, problem.paragraphs, problem.entries, strict=False):
        found = f"{entry.name}: {codes[entry.name]}#{values[entry.name]:02d}"
        assert paragraph.endswith(f"So {label} for {found} it is.")


def test_a_step_looks_back_over_at_least_one_paragraph_where_it_can():
    for seed in range(200):
        problem = draw(random.Random(seed), 12)
        for index, parent in list(enumerate(problem.dependencies))[2:]:
            assert parent is not None
            assert parent < index - 1
            found = problem.entries[parent]
            assert f"See {found.name}: {found.code}#{found.value:02d} it is." in problem.paragraphs[index]


def test_a_value_is_found_in_the_thoughts_alone():
    for _, problem in problems("test", 100, [8]):
        assert "#" not in problem.question
        assert all(f"{entry.code}#" in problem.response for entry in problem.entries)


def test_splits_never_share_a_problem_and_are_reproducible():
    questions = {
        split: [problem.question for _, problem in problems(split, 400, LENGTHS)]
        for split in ("train", "validation", "test")
    }
    everything = [question for split in questions.values() for question in split]
    assert len(set(everything)) == len(everything)
    assert questions["test"] == [problem.question for _, problem in problems("test", 400, LENGTHS)]
    assert questions["test"] != [problem.question for _, problem in problems("test", 400, LENGTHS, seed=1)]


@pytest.mark.parametrize(("seed", "digest"), [(0, "2a2865a232555400"), (3, "c3aa4143b8815a6c")])
def test_ledgers_of_a_seed_are_those_that_were_published(seed, digest):
    texts = json.dumps([list(rows(split, 50, LENGTHS, seed)) for split in ("train", "validation", "test")])
    assert hashlib.sha256(texts.encode()).hexdigest()[:16] == digest


def words_after_values(value):
    """For each found value, how many words, digits and signs of its paragraph follow."""
    for _, problem in problems("validation", 100, LENGTHS, value=value):
        for paragraph, entry in zip(problem.paragraphs, problem.entries, strict=False):
            fact = f"{entry.name}: {entry.code}#{entry.value:02d} it is."
            assert paragraph.count(fact) == 1
            yield len(re.findall(r"[A-Za-z]+|\d|\S", paragraph.partition(fact)[2]))


def test_a_value_stands_last_or_at_a_place_of_its_own():
    assert set(words_after_values("last")) == {0}
    after = list(words_after_values("anywhere"))
    assert 0.15 < after.count(0) / len(after) < 0.35
    assert sum(words >= 8 for words in after) > 0.45 * len(after)


def test_where_a_value_stands_changes_nothing_else():
    pairs = zip(problems("test", 50, LENGTHS), problems("test", 50, LENGTHS, value="anywhere"), strict=True)
    for (_, last), (_, anywhere) in pairs:
        assert last.question == anywhere.question
        assert last.dependencies == anywhere.dependencies
        for one, other in zip(last.paragraphs, anywhere.paragraphs, strict=True):
            assert set(one.splitlines()) <= {*other.splitlines(), other.splitlines()[0]}
            assert summarize_paragraph(one) == summarize_paragraph(other)


def test_both_columns_are_summed_before_the_value_is_said():
    for _, problem in problems("test", 50, LENGTHS, value="anywhere"):
        for paragraph, parent in zip(problem.paragraphs, problem.dependencies[:-1], strict=False):
            sums = re.findall(r"^[\d+]+=\d\d\.$", paragraph.partition("\nSo ")[0], re.MULTILINE)
            assert len(sums) == (0 if parent is None else 2)


def test_rows_have_the_public_schema():
    row = next(rows("train", 1, [6]))
    assert [turn["from"] for turn in row["conversations"]] == ["user", "assistant"]
    answer = row["conversations"][1]["value"]
    pattern = (
        r"<\|begin_of_thought\|>\n\n.*\n\n<\|end_of_thought\|>\n\n<\|begin_of_solution\|>\n\n.*<\|end_of_solution\|>"
    )
    assert re.fullmatch(pattern, answer, re.DOTALL)


@pytest.mark.parametrize("length", [12, 16, 60])
def test_thoughts_are_at_least_four_times_as_long_as_the_prompt(tokenizer, length):
    add_delimiters(tokenizer)
    found = solution(LEDGER, draw(random.Random(length), length), tokenizer)
    assert len(found.continuation) >= 4 * len(found.prompt)


def test_summaries_open_the_fact_and_leave_its_value_to_the_paragraph():
    for _, problem in problems("train", 20, LENGTHS):
        for paragraph, entry in zip(problem.paragraphs, problem.entries, strict=False):
            start = "zero" if entry.parent is None else problem.entries[entry.parent].name
            assert summarize_paragraph(paragraph) == f"{entry.name}: {entry.code} above {start}"
            assert f"{entry.value:02d}" in paragraph
    with pytest.raises(ValueError, match="not a ledger paragraph"):
        summarize_paragraph("Let me think.")


def test_text_survives_the_tokenizer_byte_for_byte(tokenizer):
    for row in (*rows("train", 100, [*LENGTHS, 65]), *rows("train", 30, LENGTHS, value="anywhere")):
        for text in (row["system"], *(turn["value"] for turn in row["conversations"])):
            ids = tokenizer(text, add_special_tokens=False).input_ids
            assert tokenizer.unk_token_id not in ids
            assert tokenizer.decode(ids) == text


def test_a_look_up_ends_like_a_sentence(tokenizer):
    pieces = tokenizer.tokenize(" See ada: ke#74 it is.")
    assert pieces == [" See", " ada:", " ke", "#", "7", "4", " it", " is", "."]
