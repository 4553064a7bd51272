"""Where the answer is read from. E12-E15, and the sizes that a hostile text may have."""

import json
import random
import time

import pytest

from eval.grading.answers import final_answer, strip_summaries
from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{7}", "7"),
        (r"first \boxed{1}, no: \boxed{\frac{1}{3}}.", r"\frac{1}{3}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed {7}", "7"),
        (r"$\boxed 7$", "7"),
        (r"\fbox{7}", "7"),
        (r"\boxed{1} and \boxed{2}", "1, 2"),
        (r"$\boxed{1}$, $\boxed{2}$ or $\boxed{3}$", "1, 2, 3"),
        (r"is \boxed{12} square units, and the other is also \boxed{12}", "12"),
        ("\\boxed{5} minutes.\n\nCheck and \\boxed{6}", "6"),
        (r"\boxed{2} and \boxed{2}", "2, 2"),
        (r"\boxed{2} \boxed{2}", "2"),
        (r"$x = \boxed{1}$ as well as $x = \boxed{2}$", "1, 2"),
        (r"\(\boxed{1}\) \text{ and } \(\boxed{2}\)", "1, 2"),
        (r"**\boxed{1}**, **\boxed{2}**, and **\boxed{3}**", "1, 2, 3"),
        (r"\boxed{1} papers and \boxed{2} bins", "1, 2"),
        (r"\boxed{1} and the other solution is \boxed{2}", "1, 2"),
        (r"\boxed{5}, the answer is \boxed{6}", "6"),
        (r"\boxed{1} and, wait, \boxed{2}", "2"),
        (r"\boxed{\frac12} = \boxed{0.5}", "0.5"),
        (r"\boxed{7}</answer></s>", "7"),
        (r"\boxedtext{7} \boxed{8}", "8"),
    ],
)
def test_last_box_outside_summaries_decides(text, answer):
    assert final_answer(text).text == answer


@pytest.mark.parametrize("text", [r"\boxed{7} but wait \boxed{", r"\boxed{3} then \boxed{7", r"\boxed{7} \boxed{}"])
def test_e13_no_credit_for_a_box_before_an_unfinished_one(text):
    assert final_answer(text).text is None
    assert "boxed" in final_answer(text).reason


def test_e14_survives_a_json_round_trip():
    text = r"so \boxed{\frac{1}{3}}"
    assert final_answer(json.loads(json.dumps(text))) == final_answer(text)


def test_e15_last_occurrence_wins_whatever_its_form():
    assert final_answer(r"\boxed 5 ... \boxed{6}").text == "6"
    assert final_answer(r"\boxed{6} ... \boxed 5").text == "5"


def test_e15_no_text_raises():
    rng = random.Random(0)
    pieces = ["\\boxed", "{", "}", "\\", "$", "x", " ", "\n", "\\fbox", "\\{", BEGIN_SUMMARY, END_SUMMARY, "and", ","]
    for _ in range(1000):
        final_answer("".join(rng.choices(pieces, k=rng.randrange(40))))


def test_boxes_in_summaries_do_not_count():
    text = f"Work. {BEGIN_SUMMARY} \\boxed{{1}}{END_SUMMARY} \\boxed{{2}} {BEGIN_SUMMARY} \\boxed{{3}}{END_SUMMARY}"
    assert final_answer(text).text == "2"
    assert strip_summaries(f"a{BEGIN_SUMMARY}b{END_SUMMARY}c{END_SUMMARY}d") == "a\n\nc\n\nd"


@pytest.mark.parametrize("gap", ["", ", ", " and ", "\n\n"])
def test_boxes_on_the_two_sides_of_a_summary_are_no_list(gap):
    summary = f"{BEGIN_SUMMARY} so far{END_SUMMARY}"
    assert final_answer(f"\\boxed{{1}}{gap}{summary}\\boxed{{2}}").text == "2"
    assert final_answer(f"\\boxed{{1}}{summary}{gap}\\boxed{{2}}").text == "2"


def test_an_unclosed_summary_ends_at_a_blank_line():
    assert final_answer(f"{BEGIN_SUMMARY} so far \\boxed{{1}}\n\nThus \\boxed{{2}}").text == "2"
    assert final_answer(f"Thus \\boxed{{2}} {BEGIN_SUMMARY} \\boxed{{1}}").text == "2"


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000_000 + r"\boxed{7}",
        r"\boxed{" * 200_000,
        r"\boxed{" * 100_000 + "}" * 100_000,
        r"\boxed{" + "9" * 1_000_000 + "}",
        BEGIN_SUMMARY * 100_000 + r"\boxed{7}",
        (BEGIN_SUMMARY + END_SUMMARY) * 100_000 + r"\boxed{7}",
    ],
    ids=["10 MB", "never closed", "nested", "million digits", "open summaries", "empty summaries"],
)
def test_a_hostile_text_costs_little(text):
    begin = time.perf_counter()
    final_answer(text)
    assert time.perf_counter() - begin < 5
