"""The grading rule, the same for all methods.

1. A generation that did not end by itself is `truncated`, whatever it holds: no credit for a box that it went on to
   doubt.
2. Without a final answer (see answers.py) it is `unparsed`.
3. The answer is compared with the gold by the kind of the benchmark: `integer`, `letter`, or `math`, where exact rules
   come before the symbolic grader. Policy: units, degree, dollar and per cent signs are dropped (10% is 10 and never
   0.1); the end points of an interval count; a part of a list is not the list; the order of an unordered list does not
   matter.
4. What the symbolic grader cannot decide within its limits is `grader_error`, with the reason, and counts as not
   correct.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from eval.grading.answers import final_answer
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
        verdicts = pool.verdicts([(batch[i].gold, final_answer(batch[i].text).text or "") for i in asked])
        for i, verdict in zip(asked, verdicts, strict=True):
            answer = final_answer(batch[i].text).text
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
    rule = {"integer": integer_verdict, "letter": letter_verdict, "math": exact_verdict}[case.kind]
    equal = rule(case.gold, answer.text)
    return None if equal is None else Grade("correct" if equal else "wrong", answer.text)
