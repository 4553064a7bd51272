"""Inequalities in one unknown, written as the intervals that they mean."""

import re

_UNKNOWN = r"(?:[a-zA-Z](?:_?\w)?|\\[a-z]+|[a-z]\([a-z]\))"
_SIGN = r"\\le(?![a-z])|\\ge(?![a-z])|<|>"
_BETWEEN = re.compile(rf"([^<>=]+?) ?({_SIGN}) ?({_UNKNOWN}) ?({_SIGN}) ?([^<>=]+)")
_BELOW = re.compile(rf"({_UNKNOWN}) ?({_SIGN}) ?([^<>=]+)")
_ABOVE = re.compile(rf"([^<>=]+?) ?({_SIGN}) ?({_UNKNOWN})")
_FLIPPED = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le"}
_BUILDER = re.compile(rf"\\\{{ ?{_UNKNOWN}(?: ?\\in ?\\mathbb\{{?R\}}?)? ?(?:\\mid|\||:) ?(.*)\\\}}")


def interval(text: str) -> str | None:
    r"""Write an inequality as an interval.

    Parameters
    ----------
    text : str
        A plain text: ``a < x \le b``, ``x < b`` or ``a < x``, in any direction, or the set of the x for which one
        holds.

    Returns
    -------
    str or None
        Such as ``(a, b]`` or ``(-\infty, b)``; None when the text is no such inequality.
    """
    if match := _BUILDER.fullmatch(text):
        text = match[1].strip()
    if match := _BETWEEN.fullmatch(text):
        low, first, _, second, high = match.groups()
        if first in ("<", "\\le") and second in ("<", "\\le"):
            return f"{_open(first)}{low}, {high}{_close(second)}"
        if first in (">", "\\ge") and second in (">", "\\ge"):
            return f"{_open(second)}{high}, {low}{_close(first)}"
        return None
    if match := _BELOW.fullmatch(text):
        sign, bound = match[2], match[3]
    elif match := _ABOVE.fullmatch(text):
        sign, bound = _FLIPPED[match[2]], match[1]
    else:
        return None
    return f"(-\\infty, {bound}{_close(sign)}" if sign in ("<", "\\le") else f"{_open(sign)}{bound}, \\infty)"


def _open(sign: str) -> str:
    return "(" if sign in "<>" else "["


def _close(sign: str) -> str:
    return ")" if sign in "<>" else "]"
