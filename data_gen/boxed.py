"""The boxed answer of a text: the content of its last box, or of its last boxes where they make a list."""

import re
from dataclasses import dataclass

LONGEST_ANSWER = 2000  # characters; golds of the benchmarks have fewer than 200
LONGEST_GAP = 100  # characters between two boxes of a list
MOST_BOXES = 32
_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])")
_MARKUP = re.compile(r"\\[()\[\],;:!> ]|\\q?quad(?![a-z])|\$|~|\*\*|\\text\s*\{([^{}]*)\}")
_NAME = r"\\?[A-Za-z]+(?:_\{?\w+\}?)?(?:\(\w+\))?"
_FILLER = r"also|either|the (?:other|second|third)(?: (?:one|solution|root|value))?|is|are"
_JOINED = re.compile(
    rf"(?:[,;]? ?\b(?:and|or|as well as)\b|[,;&])(?: (?:{_FILLER})\b)*(?: ?{_NAME} ?(?:=|\\in))?", re.IGNORECASE
)
_RESTATED = re.compile(rf"\b(?:{_FILLER})\b")
_UNIT = re.compile(r"^(?:[\w²³^]+ ?){1,3}(?=,| (?:and|or)\b)")


@dataclass(frozen=True)
class Answer:
    """The final answer of a text, or the reason why there is none."""

    text: str | None
    reason: str = ""


def boxed_answer(text: str) -> Answer:
    r"""Read the final answer: the content of the last ``\boxed``.

    Boxes that stand side by side in a line, or that a comma, "and" or "or" joins, make one list; a unit behind a box
    and a name before the next do not part them. An empty or unterminated last box means that there is no answer, even
    when an earlier box is complete.

    Parameters
    ----------
    text : str
        A text in which answers are boxed.

    Returns
    -------
    Answer
        Its text without the box, or None and the reason.
    """
    starts = _last_starts(text)
    if not starts:
        return Answer(None, "no \\boxed")
    box = _content(text, starts[-1])
    if box is None:
        return Answer(None, "unterminated \\boxed")
    if not box[0].strip():
        return Answer(None, "empty \\boxed")
    answer = ", ".join(part.strip() for part in _list_that_ends_in(text, starts, box[0]))
    if len(answer) > LONGEST_ANSWER:
        return Answer(None, f"answer longer than {LONGEST_ANSWER} characters")
    return Answer(answer)


def _list_that_ends_in(text: str, starts: list[int], last: str) -> list[str]:
    """Contents of the last box and of those before it that belong to the same list, in order."""
    parts, begin = [last], starts[-1]
    for start in reversed(starts[:-1]):
        earlier = _content(text, start)
        if earlier is None or earlier[1] > begin:
            break
        gap = _plain(text[earlier[1] : begin])
        if gap is None or (gap and not _JOINED.fullmatch(gap)):
            break
        if earlier[0] != parts[0] or (gap and not _RESTATED.search(gap)):  # 2 and 2 are two, 2 and also 2 is one
            parts.insert(0, earlier[0])
        begin = start
    return parts


def _plain(gap: str) -> str | None:
    """Words between two boxes without markup and unit; None where the gap is no part of one line."""
    if len(gap) > LONGEST_GAP or "\n" in gap:
        return None
    words = " ".join(_MARKUP.sub(lambda match: f" {match[1] or ''} ", gap).split())
    return words if not words or _JOINED.fullmatch(words) else _UNIT.sub("", words, count=1).strip() or None


def _last_starts(text: str) -> list[int]:
    """Positions of the last boxes, in order; found from the end, so that a long text costs one pass."""
    starts: list[int] = []
    end = len(text)
    while len(starts) < MOST_BOXES and (at := max(text.rfind("\\boxed", 0, end), text.rfind("\\fbox", 0, end))) >= 0:
        if _BOX.match(text, at):
            starts.insert(0, at)
        end = at
    return starts


def _content(text: str, start: int) -> tuple[str, int] | None:
    """Content and end of the box at ``start``; None when its braces never close."""
    match = _BOX.match(text, start)
    assert match is not None
    at = match.end()
    while at < len(text) and text[at] == " ":
        at += 1
    if at == len(text) or text[at] != "{":
        word = re.compile(r"[^\s$]*").match(text, at)
        assert word is not None
        return (word.group().rstrip(".,"), word.end()) if word.group() else None
    depth = 0
    for brace in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, at):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0 and brace.group() == "}":
            return text[at + 1 : brace.start()], brace.end()
    return None
