"""The grading rule, the same for all methods.

1. A generation that did not end by itself is `truncated`, whatever it holds: no credit for a box that it went on to
   doubt.
2. Without a final answer it is `unparsed`. The final answer is the last box outside the summaries; boxes in one line
   that a comma, "and" or "or" joins are one list (data_gen/boxed.py). A box that names no letter where one is asked
   for, or has no digit where an integer is, is `unparsed` too.
3. The answer is compared with the gold, and each of these holds on both sides:
   - Fonts, spaces, delimiters, markdown and "the answer is" do not count (dress.py).
   - Numbers are compared exactly, whatever they are written as. A decimal stands for a fraction if it is its rounding
     to at least six digits (numbers.py).
   - A unit, a currency, a per cent sign, a modulus or a base that only one side names is dropped (10% is 10 and never
     0.1); named by both they must agree, and nothing is converted. 5 x is a product, and no unit; 5 hours and 30
     minutes are two quantities (units.py).
   - In bare lists and sets the order does not matter. Each member counts as often as it stands, but in a set and in a
     list of points once. A part of a list is not the list. In tuples, vectors and matrices the order matters; brackets
     tell an interval from a point unless the other side has none (structure.py, parts.py).
   - An interval and the inequality that means it are equal, and its end points count (unions.py).
   - x = 5 answers 5, and 5 answers x = 5. An answer may be an equation whose right side is the gold (m + n = 204), but
     a gold that is an equation is not answered by its right side (names.py, atoms.py).
   - Words are compared whole, without regard to case and article; of a choice the letter decides, in any case and font,
     alone, after "option" or before the text of the choice (choices.py).
   - The rest is left to the symbolic grader, for which a worded expression equals nothing.
   `integer` takes this rule for numbers in base ten; `letter` compares nothing but the letter.
4. What the symbolic grader cannot decide within its limits is `grader_error`, with the reason, and counts as not
   correct.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from eval.grading.answers import final_answer
from eval.grading.choices import choice_letter
from eval.grading.exact import exact_verdict, integer_verdict, letter_verdict
from eval.grading.pool import SymbolicPool

STATUSES = ("correct", "wrong", "unparsed", "truncated", "grader_error")
BATCH = 256


@dataclass(frozen=True)
class Case:
    """One generation to grade: the gold, the text, whether it ended by itself, and the kind of answer asked for."""

    gold: str
    text: str
    ended: bool = True
    kind: str = "math"


@dataclass(frozen=True)
class Grade:
    """The outcome: one of STATUSES, the answer that was read, and the reason where there is something to explain."""

    status: str
    answer: str | None = None
    reason: str = ""


def grade(cases: Iterable[Case], pool: SymbolicPool) -> Iterator[Grade]:
    """Grade generations, in order.

    Parameters
    ----------
    cases : iterable of Case
        The generations.
    pool : SymbolicPool
        Where expressions are compared.

    Yields
    ------
    Grade
        One for each case.
    """
    rest = iter(cases)
    while batch := list(islice(rest, BATCH)):
        grades = [_without_algebra(case) for case in batch]
        asked = [i for i, done in enumerate(grades) if done is None]
        answers = [final_answer(batch[i].text).text or "" for i in asked]
        verdicts = pool.verdicts((batch[i].gold, answer) for i, answer in zip(asked, answers, strict=True))
        for i, answer, verdict in zip(asked, answers, verdicts, strict=True):
            grades[i] = (
                Grade("grader_error", answer, verdict.reason)
                if verdict.equal is None
                else Grade("correct" if verdict.equal else "wrong", answer)
            )
        yield from (done for done in grades if done is not None)


def failing_golds(golds: Sequence[str], kind: str, pool: SymbolicPool) -> list[str]:
    """Golds that the rule does not accept as their own answer.

    Parameters
    ----------
    golds : sequence of str
        The golds of a benchmark.
    kind : str
        Kind of answer.
    pool : SymbolicPool
        Where expressions are compared.

    Returns
    -------
    list of str
        The golds that fail; empty when all is well.
    """
    boxed = [Case(gold, f"The answer is $\\boxed{{{gold}}}$.", kind=kind) for gold in golds]
    return [gold for gold, done in zip(golds, grade(boxed, pool), strict=True) if done.status != "correct"]


def _without_algebra(case: Case) -> Grade | None:
    answer = final_answer(case.text)
    if not case.ended:
        return Grade("truncated", answer.text)
    if answer.text is None:
        return Grade("unparsed", None, answer.reason)
    if case.kind == "letter" and choice_letter(answer.text) is None:
        return Grade("unparsed", answer.text, "no letter in the box")
    if case.kind == "integer" and not re.search(r"\d", answer.text):
        return Grade("unparsed", answer.text, "no number in the box")
    rule = {"integer": integer_verdict, "letter": letter_verdict, "math": exact_verdict}[case.kind]
    equal = rule(case.gold, answer.text)
    return None if equal is None else Grade("correct" if equal else "wrong", answer.text)
