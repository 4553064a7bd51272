"""Verdicts that need no algebra: rationals, letters, words and equal strings. They are exact and come first."""

import re
from fractions import Fraction

_NOTHING = re.compile(r"\\left|\\right|\\!\s*|\\[,;: ]|\\displaystyle|\\limits|\$|\\[()\[\]]")
_STYLE = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mbox|operatorname)\s*\{([^{}]*)\}")
_PERCENT = re.compile(r"\s*(?:\\?%|percentage|percent|pct)$")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:(?:,|\{,\}| )\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)")
_FRACTION = re.compile(r"([+-]?)\s*(\d*)\s*\\frac(?:\{\s*([+-]?\d+)\s*\}|(\d))\s*(?:\{\s*([+-]?\d+)\s*\}|(\d))")
_RATIO = re.compile(r"([+-]?\d+)\s*/\s*(\d+)")
_LETTER = re.compile(r"\(?([A-Z])\)?")
_LETTER_FIRST = re.compile(r"(?:\(([A-Z])\)|([A-Z])(?:[.:)]|$))\s*.*")
_ASSIGNMENT = re.compile(r"^\\?[A-Za-z]+(?:_\{?\w+\}?)?(?:\(\w+\))?\s*=\s*")
_WORDS = re.compile(r"[A-Za-z][a-z]+(?: [A-Za-z][a-z]*)*")
LONGEST_NUMBER = 200  # digits; longer numbers are compared as strings


def normal_form(text: str) -> str:
    """Drop what LaTeX adds to an expression without changing its meaning.

    Parameters
    ----------
    text : str
        An expression, with or without math delimiters.

    Returns
    -------
    str
        The expression without delimiters, spacing commands, sizing and font commands, closing full stop, degree and
        dollar sign.
    """
    text = text.strip()
    text = text.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac").replace("\\$", "")
    text = re.sub(r"\^\{?\\circ\}?", "", text)
    text = re.sub(r"([_^])\{(\w)\}", r"\1\2", text)
    text = _STYLE.sub(r"\1", _NOTHING.sub("", text))
    return re.sub(r"\s+", " ", text).strip().rstrip(".").strip()


def rational(text: str) -> Fraction | None:
    r"""Read an exact rational number.

    Parameters
    ----------
    text : str
        An expression such as ``1,000.5``, ``-\frac{3}{4}``, ``3/4``, ``2\frac{1}{2}`` or ``28\%``.

    Returns
    -------
    Fraction or None
        Its value; None when it is anything else. A per cent sign is dropped, not divided by: the benchmarks write the
        number of per cent as the answer.
    """
    text = _PERCENT.sub("", normal_form(text)).strip()
    if len(text) > LONGEST_NUMBER:
        return None
    if _THOUSANDS.fullmatch(text):
        text = re.sub(r"[^\d.+-]", "", text)
    if _DECIMAL.fullmatch(text):
        return Fraction(text)
    if match := _RATIO.fullmatch(text):
        return Fraction(int(match[1]), int(match[2])) if int(match[2]) else None
    if match := _FRACTION.fullmatch(text):
        sign, whole, above, below = match[1], match[2], match[3] or match[4], match[5] or match[6]
        if int(below) == 0:
            return None
        value = int(whole or 0) + Fraction(int(above), int(below))
        return -value if sign == "-" else value
    return None


def exact_verdict(gold: str, answer: str) -> bool | None:
    """Decide without algebra where that is possible.

    Parameters
    ----------
    gold, answer : str
        Two expressions.

    Returns
    -------
    bool or None
        Equal or not; None leaves the pair to the symbolic grader. Two rationals are compared exactly, so that no
        numeric tolerance can make tiny ones equal; a lettered choice by its letter; words without regard to case.
    """
    ours, theirs = normal_form(gold), normal_form(answer)
    if ours.replace(" ", "") == theirs.replace(" ", ""):
        return True
    if "=" not in ours and _ASSIGNMENT.sub("", theirs).replace(" ", "") == ours.replace(" ", ""):
        return True
    left, right = rational(gold), rational(answer)
    if left is not None and right is not None:
        return left == right
    if letter := _LETTER.fullmatch(ours):
        chosen = _LETTER_FIRST.fullmatch(theirs)
        return chosen is not None and letter[1] in chosen.groups()
    if _WORDS.fullmatch(ours) and _WORDS.fullmatch(theirs):
        return ours.lower() == theirs.lower()
    return None


def integer_verdict(gold: str, answer: str) -> bool:
    """AIME and ledger: the answer is an integer, leading zeros allowed (``016`` is 16).

    Parameters
    ----------
    gold, answer : str
        The gold integer and the answer of the model; ``n = 16`` counts as 16.

    Returns
    -------
    bool
        Whether the answer is that integer, and that integer alone.
    """
    value = rational(_ASSIGNMENT.sub("", normal_form(answer)))
    return value is not None and value == rational(gold)


def letter_verdict(gold: str, answer: str) -> bool:
    """GPQA: the answer is one of the letters A to D, alone or before the text of the choice.

    Parameters
    ----------
    gold, answer : str
        The gold letter and the answer of the model.

    Returns
    -------
    bool
        Whether the letters agree.
    """
    chosen = _LETTER_FIRST.fullmatch(normal_form(answer))
    return chosen is not None and gold in chosen.groups()
