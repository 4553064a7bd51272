"""Stories: right sums by an independent reading, thoughts that split exactly, summaries without values."""

import random
import re
from itertools import product
from string import Formatter

import pytest

from data_gen.conversations import read_conversation
from data_gen.lengths import approximate_tokens
from data_gen.segmentation import Segmentation
from data_gen.stories import STORIES, draw, summarize_paragraph
from data_gen.stories.drawing import QUESTIONS, RELATIONS
from data_gen.stories.teacher import RULES
from data_gen.stories.wording import WORDING

LENGTHS = [4, 5, 6, 8, 10, 12]
BLANK_LINES = Segmentation(merge=False, minimum=120, target=225, maximum=512)


def stories(count, lengths=LENGTHS, split="train", value="anywhere"):
    return [story for _, story in STORIES.problems(split, count, lengths, value=value)]


# What each fact says, read from its English: the new number in terms of those known, written by hand.
READINGS = [
    (r"(\w+) \w+ (\d+) large \w+ and (\d+) small ones", lambda k, a, m, n: (a, m + n)),
    (r"First (\w+) \w+ (\d+) \w+, and then (\d+) more", lambda k, a, m, n: (a, m + n)),
    (r"(\w+) \w+ (\d+) old \w+ and also (\d+) new ones", lambda k, a, m, n: (a, m + n)),
    (r"(\w+) \w+ (\d+) more than twice as many \w+ as (\w+)", lambda k, a, n, b: (a, 2 * k[b] + n)),
    (r"Double (\w+)'s \w+ and take away (\d+), and there is (\w+)'s number", lambda k, b, n, a: (a, 2 * k[b] - n)),
    (r"(\w+) \w+ (\d+) more \w+ than (\w+)", lambda k, a, n, b: (a, k[b] + n)),
    (r"Compared with (\w+), (\w+) \w+ (\d+) \w+ more", lambda k, b, a, n: (a, k[b] + n)),
    (r"(\w+)'s \w+ outnumber (\w+)'s by (\d+)", lambda k, a, b, n: (a, k[b] + n)),
    (r"(\w+) beats (\w+) by (\d+) \w+", lambda k, a, b, n: (a, k[b] + n)),
    (r"(\w+) would need (\d+) more \w+ to match (\w+)", lambda k, b, n, a: (a, k[b] + n)),
    (r"(\w+) \w+ what (\w+) \w+ and (\d+) \w+ besides", lambda k, a, b, n: (a, k[b] + n)),
    (r"(\w+) \w+ (\d+) fewer \w+ than (\w+)", lambda k, a, n, b: (a, k[b] - n)),
    (r"(\w+) is (\d+) \w+ behind (\w+)", lambda k, a, n, b: (a, k[b] - n)),
    (r"(\w+) \w+ \w+ too, but (\d+) fewer than (\w+)", lambda k, a, n, b: (a, k[b] - n)),
    (r"(\w+)'s \w+ outnumber those of (\w+) by (\d+)", lambda k, b, a, n: (a, k[b] - n)),
    (r"If (\w+) \w+ (\d+) more \w+, it would be as many as (\w+)", lambda k, a, n, b: (a, k[b] - n)),
    (r"(\w+) \w+ double the \w+ of (\w+)", lambda k, a, b: (a, 2 * k[b])),
    (r"(\w+) \w+ only half as many \w+ as (\w+)", lambda k, b, a: (a, 2 * k[b])),
    (r"(\w+) \w+ half as many \w+ as (\w+)", lambda k, a, b: (a, k[b] // 2)),
    (r"(\w+) \w+ as many \w+ as (\w+) and (\w+) together", lambda k, a, b, c: (a, k[b] + k[c])),
    (r"(\w+)'s \w+ are as many as those of (\w+) plus those of (\w+)", lambda k, a, b, c: (a, k[b] + k[c])),
    (r"How many \w+ \w+ (\w+) \w+", lambda k, a: (None, k[a])),
    (r"What is (\w+)'s number of \w+", lambda k, a: (None, k[a])),
    (r"How many \w+ \w+ (\w+) and (\w+) \w+ together", lambda k, a, b: (None, k[a] + k[b])),
    (r"How many more \w+ \w+ (\w+) \w+ than (\w+)", lambda k, a, b: (None, k[a] - k[b])),
]  # fmt: skip
TWICE = re.compile(r"(\w+) \w+ twice as many \w+ as (\w+)[.]")


def read(question):
    """What everybody has, and the answer: a reader of its own, which knows nothing of the generator."""
    known = {}
    for sentence in re.findall(r"[^.?]+[.?]", re.sub(r"\(\d+\) ", "", question.split("}. ", 1)[1])):
        if both := TWICE.fullmatch(sentence.strip()):
            one, two = both.groups()
            known |= {two: known[one] // 2} if one in known else {one: 2 * known[two]}
            continue
        for pattern, meaning in READINGS:
            if match := re.fullmatch(pattern + "[.?]", sentence.strip()):
                values = [int(group) if group.isdigit() else group for group in match.groups()]
                who, number = meaning(known, *values)
                if who is None:
                    return known, number
                known[who] = number
                break
    raise AssertionError(question)


@pytest.mark.parametrize("value", ["last", "anywhere"])
def test_the_answer_and_every_number_follow_from_the_text(value):
    for story in stories(150, value=value):
        known, answer = read(story.question)
        assert story.answer == str(answer)
        assert known == {fact.slots["A"]: fact.slots["a"] for fact in story.facts}
        assert story.response.endswith(rf"\boxed{{{answer}}}" + story.response.rpartition("}")[2])
        for left, sign, right, total in re.findall(r"(\d+) ([+-]) (\d+) = (\d+)", story.response):
            assert int(left) + int(right) * (1 if sign == "+" else -1) == int(total)


def test_every_phrasing_of_every_kind_is_drawn():
    said = {id(step.phrasing) for story in stories(400) for step in (*story.facts, story.asked)}
    written = [p for kinds in ("relations", "questions") for kind in WORDING[kinds].values() for p in kind["phrasings"]]
    assert {id(phrasing) for phrasing in written} == said
    assert WORDING["relations"].keys() == RELATIONS.keys() and WORDING["questions"].keys() == QUESTIONS.keys()


def test_paragraphs_are_recovered_exactly_at_blank_lines():
    for number, row in enumerate(STORIES.rows("train", 50, LENGTHS, value="anywhere")):
        trace = read_conversation(row, number, BLANK_LINES, approximate_tokens)
        story = stories(number + 1)[-1]
        assert trace.paragraphs == story.paragraphs
        assert trace.assistant == story.response
        assert trace.answer == story.answer


def test_a_number_is_found_in_the_thoughts_alone_and_read_again_where_the_look_up_says():
    for story in stories(100):
        for look_up in story.look_ups:
            number = story.paragraphs[look_up.paragraph][look_up.start : look_up.stop]
            assert re.search(rf"\b{number}\b", story.paragraphs[look_up.needs])
        for fact in story.facts:
            sentence = fact.phrasing["fact"]
            assert {name for _, name, _, _ in Formatter().parse(sentence)}.isdisjoint({"a", "b", "c", "d"})


def test_a_number_is_not_needed_right_after_it_was_found_where_there_is_a_choice():
    for story in stories(100, [10]):
        for index, fact in list(enumerate(story.facts))[2:]:
            assert all(operand < index - 1 for operand in fact.operands)


def words_after_values(value):
    """How many words follow the last place where a paragraph that is looked up says its value."""
    counts = []
    for story in stories(100, value=value):
        for look_up in story.look_ups:
            number = story.paragraphs[look_up.paragraph][look_up.start : look_up.stop]
            counts.append(len(re.split(rf"\b{number}\b", story.paragraphs[look_up.needs])[-1].split()))
    return counts


def test_a_value_ends_its_paragraph_or_stands_well_before_the_end():
    # At most `which is Ann's number.` or the like comes after it.
    assert max(words_after_values("last")) <= 6
    far = [words for words in words_after_values("anywhere") if words > 6]
    assert min(far) >= 9
    assert 0.35 < len(far) / len(words_after_values("anywhere")) < 0.65


def test_where_a_value_stands_changes_nothing_else():
    for last, anywhere in zip(stories(50, value="last"), stories(50, value="anywhere"), strict=True):
        assert (last.question, last.answer, last.dependencies) == (
            anywhere.question, anywhere.answer, anywhere.dependencies
        )  # fmt: skip
        assert all(a.startswith(b) for a, b in zip(anywhere.paragraphs, last.paragraphs, strict=True))


def test_summaries_name_the_person_and_leave_the_number_out():
    for story in stories(200):
        summaries = [summarize_paragraph(paragraph) for paragraph in story.paragraphs]
        assert not any(re.search(r"\d", summary) for summary in summaries)
        found = [f"{fact.slots['A']}'s number, " for fact in story.facts]
        assert [s[: s.index(", ") + 2] for s in summaries if re.match(r"\w+'s number, (?!to compare)", s)] == found


def test_the_rule_reads_a_paragraph_in_one_way_alone():
    for story in stories(200):
        for paragraph in story.paragraphs:
            assert (
                len({summary for pattern, summary in RULES if pattern.match(re.sub(r"^\(\d+\) ", "", paragraph))}) == 1
            )
    with pytest.raises(ValueError, match="not a paragraph of a story"):
        summarize_paragraph("Let me think.")


def test_splits_never_share_a_problem_and_are_reproducible():
    splits = ("train", "validation", "test")
    questions = {split: [story.question for story in stories(300, split=split)] for split in splits}
    everything = [question for split in questions.values() for question in split]
    assert len(set(everything)) == len(everything)
    assert questions["test"] == [story.question for story in stories(300, split="test")]
    again = [story.question for _, story in STORIES.problems("test", 300, LENGTHS, seed=1)]
    assert not set(again) & set(questions["test"])


@pytest.mark.parametrize("length", [2, 3, 36, 42])
def test_stories_are_short_and_long(length):
    story = draw(random.Random(length), length)
    assert read(story.question)[1] == int(story.answer)
    assert length < len(story.paragraphs) <= 1.5 * length + 2


def test_wording_is_varied():
    facts = sum(len(relation["phrasings"]) for relation in WORDING["relations"].values())
    assert facts >= 20
    assert len(list(product(WORDING["recalls"], WORDING["scenes"]))) >= 50
