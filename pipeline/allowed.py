"""Kinds of values that a setting may have: how to tell one, and how to say it."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Allowed:
    """Values that a setting may have: how to say it, and how to tell."""

    words: str
    admits: Callable[[Any], bool]

    def __or__(self, other: "Allowed") -> "Allowed":
        return Allowed(f"{self.words} or {other.words}", lambda value: self.admits(value) or other.admits(value))


def whole(least: int) -> Allowed:
    """Whole numbers from `least` on."""
    return Allowed(f"a whole number of at least {least}", lambda value: type(value) is int and value >= least)


def number(low: float, high: float = math.inf, above: bool = False) -> Allowed:
    """Finite numbers from `low`, or above it, to `high`."""

    def admits(value: Any) -> bool:
        real = type(value) in (int, float) and math.isfinite(value)
        return real and (low < value if above else low <= value) and value <= high

    words = f"a number {'above' if above else 'of at least'} {low:g}"
    return Allowed(words + ("" if high == math.inf else f" and at most {high:g}"), admits)


def one_of(*names: str) -> Allowed:
    """One of some names."""
    return Allowed(f"one of {', '.join(names)}", lambda value: value in names)


def several(each: Allowed) -> Allowed:
    """Lists of at least one value."""
    return Allowed(
        f"a list of values, each {each.words}",
        lambda value: isinstance(value, list) and value != [] and all(map(each.admits, value)),
    )


def form(words: str, pattern: str) -> Allowed:
    """Texts of a form."""
    return Allowed(words, lambda value: type(value) is str and re.fullmatch(pattern, value) is not None)


COUNT, FLAG = whole(1), Allowed("true or false", lambda value: type(value) is bool)
SHARE, ABOVE_ZERO = number(0, 1), number(0, above=True)
POSITIVE_SHARE = number(0, 1, above=True)
TEXT = Allowed("a text", lambda value: type(value) is str)
NULL = Allowed("null", lambda value: value is None)
RHYTHM = Allowed(
    "a whole number of steps or a share of them between 0 and 1",
    lambda value: COUNT.admits(value) or (type(value) is float and 0 < value < 1),
)
BUDGET = (
    Allowed("a whole number of tokens", COUNT.admits)
    | Allowed("a share above 0 and at most 1", lambda value: type(value) is float and POSITIVE_SHARE.admits(value))
    | form("bytes such as 64MB", r"\d*\.?\d+\s*[KMG]i?B")
    | one_of("match")
)
DTYPE = one_of("float32", "bfloat16", "float16") | NULL
DEVICE = form("cpu, cuda, cuda:1, mps", r"cpu|mps|cuda(:\d+)?") | NULL
STATISTIC = one_of("peak", "mean")
NONE_OR_SEVERAL = Allowed("a list of texts", lambda value: value == [] or several(TEXT).admits(value))
