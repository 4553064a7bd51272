r"""Thought -> paragraphs: cut at blank lines, never inside mathematics, code or a table; short ones are merged.

The paper does not print its rule; its figures 5 and 6 show paragraphs of 130-250 tokens that span several blank lines,
and its memory example takes 250 tokens for one (paper.md 3.18).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

BLANK_LINES = re.compile(r"[ \t\r]*\n(?:[ \t\r]*\n)+")
LINE_BREAK = re.compile(r"[ \t\r]*\n")
SENTENCE_END = re.compile(r"(?<=[.!?])[ \t]+(?=\S)")
PROTECTED = (
    re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^[ \t]*(?P=fence)[ \t]*$", re.M | re.S),
    re.compile(r"\\begin\{(?P<name>[A-Za-z]+\*?)\}.*?\\end\{(?P=name)\}", re.S),
    re.compile(r"(?<!\\)\\\[(?:(?!(?<!\\)\\\[).)*?(?<!\\)\\\]", re.S),
)
DISPLAY_MATH = re.compile(r"\$\$.*?\$\$", re.S)
Parts = tuple[list[str], list[str]]


@dataclass(frozen=True)
class Segmentation:
    """How a thought is cut into paragraphs.

    Attributes
    ----------
    merge : bool
        Whether short pieces are merged; False leaves every blank line a boundary.
    minimum, target, maximum : int
        Tokens of a paragraph: pieces are joined until `minimum` is reached and for as long as that brings the length
        closer to `target`; none is joined beyond `maximum`, and a longer piece is cut at line breaks, then sentences.
    """

    merge: bool
    minimum: int
    target: int
    maximum: int

    def __call__(self, thought: str, count: Callable[[str], int]) -> Parts:
        """Cut a thought that has no outer white space.

        Parameters
        ----------
        thought : str
            Text between the thought's delimiters.
        count : callable
            Number of tokens of a text.

        Returns
        -------
        tuple of list of str
            Paragraphs, and what follows each; joined in turn they are the thought, byte for byte.
        """
        pieces, separators = cut(thought, BLANK_LINES)
        if not self.merge:
            return pieces, separators
        return self._join(*self._cut_long(pieces, separators, count), count)

    def _cut_long(self, pieces: list[str], separators: list[str], count: Callable[[str], int]) -> Parts:
        for pattern in (LINE_BREAK, SENTENCE_END):
            shorter: Parts = ([], [])
            for piece, separator in zip(pieces, separators, strict=True):
                parts, between = cut(piece, pattern) if count(piece) > self.maximum else ([piece], [""])
                shorter[0].extend(parts)
                shorter[1].extend([*between[:-1], separator])
            pieces, separators = shorter
        return pieces, separators

    def _join(self, pieces: list[str], separators: list[str], count: Callable[[str], int]) -> Parts:
        lengths = [count(piece) for piece in pieces]
        groups: list[list[int]] = []
        total = 0
        for index, length in enumerate(lengths):
            closer = abs(total + length - self.target) < abs(total - self.target)
            if groups and total + length <= self.maximum and (total < self.minimum or closer):
                groups[-1].append(index)
                total += length
            else:
                groups.append([index])
                total = length
        if len(groups) > 1 and total < self.minimum:
            before = sum(lengths[index] for index in groups[-2])
            if before + total <= self.maximum:
                groups[-2:] = [groups[-2] + groups[-1]]
        return (
            ["".join(_interleave(pieces, separators, group)) for group in groups],
            [separators[group[-1]] for group in groups],
        )


def _interleave(pieces: Sequence[str], separators: Sequence[str], group: Sequence[int]) -> list[str]:
    texts = [pieces[group[0]]]
    for previous, index in zip(group, group[1:], strict=False):
        texts += [separators[previous], pieces[index]]
    return texts


def protected_spans(text: str) -> list[tuple[int, int]]:
    """Spans of code fences, LaTeX environments and display mathematics; what is never closed protects nothing."""
    spans = [match.span() for pattern in PROTECTED for match in pattern.finditer(text)]
    if text.count("$$") % 2 == 0:
        spans += [match.span() for match in DISPLAY_MATH.finditer(text)]
    return sorted(spans)


def cut(text: str, pattern: re.Pattern[str]) -> Parts:
    """Cut a text at the pattern's matches that lie neither in a protected span nor between two rows of a table."""
    spans = protected_spans(text)
    pieces, separators = [], []
    start = 0
    for match in pattern.finditer(text):
        if match.start() == start or match.end() == len(text):
            continue
        if any(first < match.start() < last for first, last in spans) or _in_table(text, match.start(), match.end()):
            continue
        pieces.append(text[start : match.start()])
        separators.append(match.group())
        start = match.end()
    return [*pieces, text[start:]], [*separators, ""]


def _in_table(text: str, before: int, after: int) -> bool:
    above = text[text.rfind("\n", 0, before) + 1 : before].strip()
    below = text[after:].split("\n", 1)[0].strip()
    return above.startswith("|") and below.startswith("|")
