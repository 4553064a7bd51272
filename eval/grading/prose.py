"""Sentences that are compared whole, since no answer was marked in them."""

import re

MOST_WORDS = 5  # an answer with more is a sentence
_FORMULA = re.compile(r"(?<!\\)\$+[^$]*(?<!\\)\$+|\\\(.*?\\\)|\\\[.*?\\\]", re.DOTALL)
_BESIDE_FORMULA = re.compile(r"and|or|percent(?:age)?|pct|degrees|dollars|[a-z]*meters|inches|feet|units|square")
_WORD = re.compile(r"(?<!\\)\b[A-Za-z]{2,}\b")


def is_prose(text: str) -> bool:
    """Whether a text is a sentence, and not an answer alone: it has lines, many words, or words around its formulas."""
    outside, formulas = _FORMULA.subn(" ", text)
    words = _WORD.findall(outside)
    around = formulas > 0 and not all(_BESIDE_FORMULA.fullmatch(word) for word in words)
    return "\n" in text.strip() or len(words) > MOST_WORDS or around
