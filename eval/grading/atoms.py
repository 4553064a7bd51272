"""Equality of two answers that have no parts: names and values, quantities, words, expressions."""

import re

from eval.grading.equality import Algebra, compact
from eval.grading.names import assignment, last_side, without_rounding
from eval.grading.numbers import same_number
from eval.grading.units import read_quantity

_WORDS = re.compile(r"[A-Za-z][A-Za-z'-]*(?: [A-Za-z][A-Za-z'-]*)*")
_ARTICLE = re.compile(r"^(?:an?|the) (?=\w{3})")
_RATIO = re.compile(r"\d+(?: ?: ?\d+)+")
_UNKNOWN = re.compile(r"\\?(?!y$)[a-z]+(?:_\w)?")  # y is left out: a function is written y = and f(x) =
_SYMBOL = re.compile(r"(?<![\\A-Za-z])[A-Za-z]")


def compare_atoms(ours: str, theirs: str, algebra: Algebra) -> bool | None:
    """Compare two plain texts without parts: their values where they name one, else as they stand.

    A gold that is an equation (2x + z = 1) is not answered by its right side; an answer may be one (m + n = 5).
    """
    ours, theirs = without_rounding(ours), without_rounding(theirs)
    left, right = assignment(ours), assignment(theirs)
    if left and right and left[0] != right[0] and _UNKNOWN.fullmatch(left[0]) and _UNKNOWN.fullmatch(right[0]):
        return False
    equation, answered = last_side(ours), last_side(theirs)
    if left and (right or answered is None):
        ours, equation = left[1], None
    if right and equation is None:
        theirs, answered = right[1], None
    if equation is None and answered is not None and not left:
        theirs = answered
    elif equation is not None and answered is None:
        if _SYMBOL.search(ours):
            return False
        ours = equation
    return _quantities(ours, theirs, algebra)


def _quantities(ours: str, theirs: str, algebra: Algebra) -> bool | None:
    gold, answer = read_quantity(ours), read_quantity(theirs)
    if not gold.agrees(answer):
        return False
    if (gold.base or 10) != (answer.base or 10):
        digits = (compact(side.text if side.base else text) for side, text in ((gold, ours), (answer, theirs)))
        return len({text.lower() for text in digits}) == 1
    equal = same_number(gold.text, answer.text)
    if equal is not None:
        return equal
    return True if compact(gold.text) == compact(answer.text) else _wordings(gold.text, answer.text, algebra)


def _wordings(ours: str, theirs: str, algebra: Algebra) -> bool | None:
    ours, theirs = (re.sub(r"(?<=\d) to (?=\d)", ":", text) for text in (ours, theirs))
    if _RATIO.fullmatch(ours) and _RATIO.fullmatch(theirs):
        return compact(ours) == compact(theirs)
    if ours.lower() == theirs.lower() and re.fullmatch("[A-Za-z]{2,}", ours):
        return True
    if _WORDS.fullmatch(ours) and _WORDS.fullmatch(theirs) and max(len(ours), len(theirs)) > 3:
        return _ARTICLE.sub("", ours.lower()) == _ARTICLE.sub("", theirs.lower())
    glued = re.fullmatch(r"([\d.]+)([A-Za-z])", theirs)
    if glued and same_number(ours, glued[1]) and read_quantity(f"{glued[1]} {glued[2]}").unit:
        return True  # 5m answers 5; as a gold it is five times m
    return algebra(ours, theirs)
