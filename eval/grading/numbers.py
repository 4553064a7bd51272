"""Exact rational numbers in the ways that people and models write them."""

import re
from fractions import Fraction

LONGEST_NUMBER = 200  # digits; longer numbers are compared as strings
ENOUGH_DIGITS = 6  # significant digits from which on a rounded decimal stands for a fraction
FULL_PRECISION = 15  # digits from which on a decimal is a float's print, whose last digit is not always rounded
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:(?:,| )\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"[+-]? ?(?:\d+(?:\.\d*)?|\.\d+)")
_REPEATING = re.compile(r"([+-]?)(\d*)\.(\d*)\\(?:overline|bar|dot)(?: *\{(\d+)\}| ?(\d))")
_SCIENTIFIC = re.compile(
    r"([+-]?\d+(?:\.\d*)?)(?:e| ?(?:\\times|\\cdot|\*) ?10 ?\^ ?)\{? ?([+-]?\d{1,3}) ?\}?", re.IGNORECASE
)
_SIGNED = r"\{ *([+-]? *\d+(?:\.\d+)?) *\}"
_FRACTION = re.compile(rf"([+-]?) *(\d*) *\{{?\\frac *(?:{_SIGNED}|(\d)) *(?:{_SIGNED}|(\d))\}}?")
_RATIO = re.compile(r"([+-]?) *(?:(\d+) +)?\(?([+-]?\d+)\)? ?/ ?(\d+)")


def read_rational(text: str) -> Fraction | None:
    r"""Read an exact rational number of a plain text without unit.

    Returns
    -------
    Fraction or None
        The value of ``1,000.5``, ``-\frac{3}{4}``, ``3/4``, ``2\frac{1}{2}``, ``0.\overline{3}`` or
        ``1.2 \times 10^{-3}``; None when the text is anything else.
    """
    if len(text) > LONGEST_NUMBER:
        return None
    while text.startswith("-(") and text.endswith(")"):
        inner = read_rational(text[2:-1])
        return None if inner is None else -inner
    if _THOUSANDS.fullmatch(text):
        text = re.sub(r"[, ]", "", text)
    if _DECIMAL.fullmatch(text):
        return Fraction(text.replace(" ", ""))
    if match := _SCIENTIFIC.fullmatch(text):
        return Fraction(match[1]) * Fraction(10) ** int(match[2])
    if match := _RATIO.fullmatch(text):
        return _mixed(match[1], match[2], match[3], match[4])
    if match := _FRACTION.fullmatch(text):
        return _mixed(match[1], match[2], match[3] or match[4], match[5] or match[6])
    if match := _REPEATING.fullmatch(text):
        fixed, period = match[3], match[4] or match[5]
        tail = Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(fixed))
        value = Fraction(f"{match[2] or 0}.{fixed or 0}") + tail
        return -value if match[1] == "-" else value
    return None


def is_grouped(text: str) -> bool:
    """Whether a plain text may be one number whose thousands are set apart."""
    return bool(_THOUSANDS.fullmatch(text))


def same_number(left: str, right: str) -> bool | None:
    """Compare two plain texts as numbers.

    Returns
    -------
    bool or None
        Whether they are equal, None when one of them is not a number. The comparison is exact; only a decimal of
        ENOUGH_DIGITS significant digits stands for the fraction that it is the rounding of.
    """
    ours, theirs = read_rational(left), read_rational(right)
    if ours is None or theirs is None:
        return None
    return ours == theirs or _is_rounding(left, ours, right, theirs) or _is_rounding(right, theirs, left, ours)


def _is_rounding(decimal: str, rounded: Fraction, other: str, value: Fraction) -> bool:
    if "." not in decimal or not _DECIMAL.fullmatch(decimal) or _DECIMAL.fullmatch(other) or rounded == 0:
        return False
    digits = decimal.lstrip("+-0. ").replace(".", "")
    unit = Fraction(1, 10 ** len(decimal.partition(".")[2]))
    most = unit if len(digits) >= FULL_PRECISION else unit / 2
    return len(digits) >= ENOUGH_DIGITS and abs(rounded - value) <= most


def _mixed(sign: str, whole: str | None, above: str, below: str) -> Fraction | None:
    above, below = above.replace(" ", ""), below.replace(" ", "")
    if Fraction(below) == 0 or (whole and above[0] in "+-"):
        return None
    value = int(whole or 0) + Fraction(above) / Fraction(below)
    return -value if sign == "-" else value
