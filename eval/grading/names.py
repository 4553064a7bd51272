"""Values that an answer gives a name to: x = 5, f(x) = 2x, m + n = 204."""

import re

from eval.grading.brackets import cut

_NAME = re.compile(
    r"\\?[A-Za-z]+'?(?: ?_ ?(?:\w|\{[^{}]*\}))?(?: ?\([\w, +-]*\))?"  # x, x_1, \theta, f(x)
    r"|\([^()=]*\)|\|[^|=]*\|"  # (x, y), |A|
    r"|(?:\\angle|\\triangle|[A-Za-z ]+) ?[A-Za-z]*"  # \angle ABC, area of the square
    r"|[^=<>\d]*:[^=<>]*|\\frac\{[A-Z]+\}\{[A-Z]+\}"  # AB:CD
)
_CHAIN = re.compile(r"(?<![<>!:\\])=|\\equiv(?![a-z])|\\approx(?![a-z])")
_APPROX = re.compile(r"\\approx(?![a-z])")


def is_name(text: str) -> bool:
    """Whether a plain text is what a value is given to, and no expression."""
    return bool(_NAME.fullmatch(text))


def assignment(text: str) -> tuple[str, str] | None:
    """Name and value of ``x = 5``, also written ``5 = x``; None for anything else, an equation included."""
    sides = cut(text, _CHAIN)
    if len(sides) < 2 or not all(sides[1:]):
        return None
    if is_name(sides[0]) or not sides[0]:
        return sides[0], sides[-1]
    return (sides[-1], sides[0]) if len(sides) == 2 and re.fullmatch(r"\\?[a-zA-Z]", sides[1]) else None


def last_side(text: str) -> str | None:
    """What stands behind the last sign of equality; None where there is none, or a comparison as well."""
    sides = cut(text, _CHAIN)
    return sides[-1] if len(sides) > 1 and not re.search(r"[<>]|\\[lgn]e(?![a-z])", text) else None


def without_rounding(text: str) -> str:
    """Drop the decimals that follow an exact value: a half, about 0.5."""
    exact = cut(text, _APPROX)[0]
    return text if not exact or is_name(exact) else exact


def in_order_of_names(members: list[str]) -> list[str]:
    """Values of assignments in the order of their names; other members as they are."""
    named = [assignment(member) for member in members]
    pairs = [pair for pair in named if pair is not None]
    if len(pairs) < len(members) or len({name for name, _ in pairs}) < len(members):
        return members
    return [value for _, value in sorted(pairs)]
