"""Solutions with summaries in both worlds, and their look-ups in tokens."""

import random

import pytest

from data_gen.assemble import strip_summaries
from data_gen.ledger.tokens import ledger_tokenizer
from data_gen.solution import solution
from data_gen.world import LookUp
from data_gen.worlds import WORLDS
from tests.byte_tokens import byte_tokenizer
from zoomr.loading import add_delimiters
from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY, boundary_table

CASES = [(name, value) for name in WORLDS for value in ("last", "anywhere")]


@pytest.fixture(scope="module", params=[ledger_tokenizer, byte_tokenizer], ids=["words", "bytes"])
def tokenizer(request):
    made = request.param()
    add_delimiters(made)
    return made


def solved(tokenizer, name, value, length=9):
    world = WORLDS[name]
    if name == "stories" and tokenizer.unk_token:
        pytest.skip("the ledger's tokenizer knows the ledger's words alone")
    problem = world.draw(random.Random(length), length, value)
    return problem, solution(world, problem, tokenizer)


@pytest.mark.parametrize(("name", "value"), CASES)
def test_look_ups_read_the_value_that_the_needed_paragraph_found(tokenizer, name, value):
    problem, found = solved(tokenizer, name, value)
    assert len(found.look_ups) == len(problem.look_ups) >= 9
    end = tokenizer.convert_tokens_to_ids(END_SUMMARY)
    for look_up, reading in zip(problem.look_ups, found.look_ups, strict=True):
        text = problem.paragraphs[look_up.paragraph][look_up.start : look_up.stop]
        answer = [found.continuation[index] for index in reading.answer]
        assert tokenizer.decode(answer) == text
        assert text in problem.paragraphs[look_up.needs]
        assert (reading.paragraph, reading.needs) == (look_up.paragraph, look_up.needs)
        assert found.continuation[: reading.position].count(end) == look_up.paragraph


@pytest.mark.parametrize(("name", "value"), CASES)
def test_a_look_up_is_decided_at_the_last_boundary_before_its_value(tokenizer, name, value):
    _, found = solved(tokenizer, name, value)
    boundaries = boundary_table(tokenizer)
    for reading in found.look_ups:
        assert found.continuation[reading.position] in boundaries
        between = found.continuation[reading.position + 1 : reading.answer.start]
        assert not boundaries.intersection(between)


def test_in_a_ledger_that_boundary_is_the_name(tokenizer):
    problem, found = solved(tokenizer, "ledger", "last")
    for reading in found.look_ups:
        name = f" {problem.entries[reading.needs].name}:"
        assert tokenizer.decode(found.continuation[: reading.position + 1]).endswith(name)


@pytest.mark.parametrize(("name", "value"), CASES)
def test_without_its_summaries_it_is_the_response(tokenizer, name, value):
    problem, found = solved(tokenizer, name, value)
    text = tokenizer.decode(found.continuation)
    assert text.count(BEGIN_SUMMARY) == len(problem.paragraphs)
    assert strip_summaries(text) == problem.response + tokenizer.eos_token


@pytest.mark.parametrize("name", WORLDS)
def test_dependencies_are_the_look_ups_by_paragraph(name):
    problem = WORLDS[name].draw(random.Random(1), 8, "last")
    by_paragraph = {look_up.paragraph: look_up.needs for look_up in problem.look_ups}
    assert len(by_paragraph) == len(problem.look_ups)
    assert problem.dependencies == tuple(by_paragraph.get(index) for index in range(len(problem.paragraphs)))
    assert all(isinstance(look_up, LookUp) and look_up.needs < look_up.paragraph for look_up in problem.look_ups)
