"""Texts read with regard to their brackets, of whatever kind: half-open intervals mix them."""

import re


def closes_at_end(text: str) -> bool:
    """Whether the bracket that opens a text is the one that closes at its end."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if depth == 0:
            return at == len(text) - 1
    return False


def cut(text: str, separator: re.Pattern[str]) -> list[str]:
    """Cut at separators outside all brackets."""
    depth, begin, at, parts = 0, 0, 0, []
    while at < len(text):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        match = separator.match(text, at) if depth == 0 else None
        if match and match.end() > at:
            parts.append(text[begin:at].strip())
            begin = at = match.end()
        else:
            at += 1
    return [*parts, text[begin:].strip()]
