"""Solutions with summaries, and their look-ups."""

import random

import pytest

from data_gen.assemble import strip_summaries
from data_gen.ledger import draw
from data_gen.ledger.solution import solution
from data_gen.ledger.tokens import ledger_tokenizer
from zoomr.loading import add_delimiters
from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY


@pytest.fixture(scope="module")
def tokenizer():
    made = ledger_tokenizer()
    add_delimiters(made)
    return made


@pytest.mark.parametrize("length", [2, 5, 12, 40])
def test_look_ups_name_what_they_need_and_end_in_its_value(tokenizer, length):
    problem = draw(random.Random(length), length)
    found = solution(problem, tokenizer)
    assert [look_up.needs for look_up in found.look_ups] == [n for n in problem.dependencies if n is not None]
    for look_up in found.look_ups:
        needed = problem.entries[look_up.needs]
        assert tokenizer.decode(found.continuation[look_up.name]) == f" {needed.name}:"
        assert tokenizer.decode([found.continuation[digit] for digit in look_up.digits]) == f"{needed.value:02d}"
        summaries = found.continuation[: look_up.name].count(tokenizer.convert_tokens_to_ids(END_SUMMARY))
        assert summaries == look_up.paragraph


def test_without_its_summaries_it_is_the_response(tokenizer):
    problem = draw(random.Random(3), 6)
    found = solution(problem, tokenizer)
    text = tokenizer.decode(found.continuation)
    assert text.count(BEGIN_SUMMARY) == len(problem.paragraphs)
    assert strip_summaries(text) == problem.response + tokenizer.eos_token
