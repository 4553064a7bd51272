"""Where the answer stands in a generation: the last box outside the summaries, and nothing else."""

import re
from dataclasses import dataclass

from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY

LONGEST_ANSWER = 2000  # characters; golds of the benchmarks have fewer than 200
MOST_BOXES = 32
_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])")
_MARKUP = re.compile(r"\\[()\[\],;.!]|\\q?quad|\$|\\text\s*\{([^{}]*)\}")
_LIST_GAP = re.compile(r"(?:\w+ )?(?:and|or)?(?: ?\w+(?:_\{?\w+\}?)? =)?", re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """The final answer of a generation, or the reason why there is none."""

    text: str | None
    reason: str = ""


def strip_summaries(text: str) -> str:
    """Remove the summaries and their delimiters.

    Parameters
    ----------
    text : str
        A generation with its delimiters kept.

    Returns
    -------
    str
        The paragraphs alone. A summary that is never closed ends at the next blank line or at the end of the text, so
        that it cannot hide an answer that follows.
    """
    kept, at = [], 0
    closed = True
    while (begin := text.find(BEGIN_SUMMARY, at)) >= 0:
        kept.append(text[at:begin])
        end = text.find(END_SUMMARY, begin) if closed else -1
        closed = end >= 0
        if closed:
            at = end + len(END_SUMMARY)
        else:
            blank = text.find("\n\n", begin)
            at = blank if blank >= 0 else len(text)
    kept.append(text[at:])
    return "".join(kept).replace(END_SUMMARY, "")


def final_answer(text: str) -> Answer:
    r"""Read the final answer: the content of the last ``\boxed`` outside the summaries.

    Boxes that nothing but a comma, "and" or "or" separates make one list. An empty or unterminated last box means that
    there is no answer, even when an earlier box is complete.

    Parameters
    ----------
    text : str
        A generation, summaries included.

    Returns
    -------
    Answer
        Its text without the box, or None and the reason.
    """
    body = strip_summaries(text)
    starts = _last_starts(body)
    if not starts:
        return Answer(None, "no \\boxed")
    box = _content(body, starts[-1])
    if box is None:
        return Answer(None, "unterminated \\boxed")
    parts, begin = [box[0]], starts[-1]
    for start in reversed(starts[:-1]):
        earlier = _content(body, start)
        if earlier is None or earlier[1] > begin or not _is_list_gap(body[earlier[1] : begin]):
            break
        parts.insert(0, earlier[0])
        begin = start
    if len(parts) > 1 and len(set(parts)) == 1:
        parts = parts[:1]
    answer = ", ".join(part.strip() for part in parts)
    if not box[0].strip():
        return Answer(None, "empty \\boxed")
    if len(answer) > LONGEST_ANSWER:
        return Answer(None, f"answer longer than {LONGEST_ANSWER} characters")
    return Answer(answer)


def _last_starts(body: str) -> list[int]:
    """Positions of the last boxes, in order; found from the end, so that a long text costs one pass."""
    starts: list[int] = []
    end = len(body)
    while len(starts) < MOST_BOXES and (at := max(body.rfind("\\boxed", 0, end), body.rfind("\\fbox", 0, end))) >= 0:
        if _BOX.match(body, at):
            starts.insert(0, at)
        end = at
    return starts


def _content(body: str, start: int) -> tuple[str, int] | None:
    """Content and end of the box at ``start``; None when its braces never close."""
    match = _BOX.match(body, start)
    assert match is not None
    at = match.end()
    while at < len(body) and body[at] == " ":
        at += 1
    if at == len(body) or body[at] != "{":
        word = re.compile(r"[^\s$]*").match(body, at)
        assert word is not None
        return (word.group().rstrip(".,"), word.end()) if word.group() else None
    depth = 0
    for brace in re.compile(r"\\.|[{}]", re.DOTALL).finditer(body, at):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0 and brace.group() == "}":
            return body[at + 1 : brace.start()], brace.end()
    return None


def _is_list_gap(gap: str) -> bool:
    if len(gap) > 60 or "\n" in gap:
        return False
    words = " ".join(_MARKUP.sub(r" \1 ", gap).replace(",", " ").replace(";", " ").split())
    return bool(_LIST_GAP.fullmatch(words)) and (not words or "," in gap or bool(re.search(r"\b(and|or)\b", words)))
