"""Public row schemas -> the turns of a question and its answer, which is cut at the thought's delimiters."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from zoomr.errors import UserError

THOUGHT_DELIMITERS = (("<|begin_of_thought|>", "<|end_of_thought|>"), ("<think>", "</think>"))
ROLES = {"system": "system", "user": "user", "human": "user", "assistant": "assistant", "gpt": "assistant"}
HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # half of a surrogate pair: valid JSON may hold it, UTF-8 cannot


class Skip(Exception):
    """A row that cannot become a training row.

    Attributes
    ----------
    reason, detail : str
        What it is counted under, and what is said of this row beside it.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail

    def row(self, row_id: str) -> dict[str, str]:
        """Return the row of a file that names what was left out."""
        return {"id": row_id, "reason": self.reason, "detail": self.detail}


class Turns(NamedTuple):
    """One question and the answer to it; `system` is None where the row has no system prompt."""

    system: str | None
    user: str
    assistant: str


def read_turns(row: Mapping[str, Any], number: int) -> Turns:
    """Read a row in either public schema: `system` + `conversations` (from, value), or `messages` (role, content).

    Raises
    ------
    UserError
        If the row has neither shape; names the row and the missing field.
    Skip
        If a turn is missing or is no text, or there is more than one question.
    """
    if "conversations" in row:
        turns = _turns(row["conversations"], "conversations", "from", "value", number)
    elif "messages" in row:
        turns = _turns(row["messages"], "messages", "role", "content", number)
    else:
        raise UserError(
            f"dataset.path: row {number} has neither the field `conversations` nor `messages`; "
            f"its fields are {', '.join(map(str, sorted(row))) or 'none'}."
        )
    texts: dict[str, list[str]] = {"system": [], "user": [], "assistant": []}
    try:
        system = text_of(row.get("system"))
        for role, content in turns:
            texts[role].append(text_of(content))
    except ValueError as error:
        raise Skip("content that is not text") from error
    for role in ("user", "assistant"):
        if not any(text.strip() for text in texts[role]):
            raise Skip(f"no {role} turn")
    if len(texts["user"]) > 1 or len(texts["assistant"]) > 1:
        raise Skip("more than one question")
    found = Turns(system or next(iter(texts["system"]), None), texts["user"][0], texts["assistant"][0])
    if any(HALF_CHARACTER.search(text) for text in found if text):
        raise Skip("half of a surrogate pair")
    return found


def _turns(turns: Any, field: str, role_key: str, text_key: str, number: int) -> list[tuple[str, Any]]:
    if turns is None:
        raise Skip("no user turn")
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        raise Skip("turns that are no list of objects")
    found = []
    for turn in turns:
        for key in (role_key, text_key):
            if key not in turn:
                raise UserError(f"dataset.path: row {number} has a turn in `{field}` without the field `{key}`.")
        role = ROLES.get(str(turn[role_key]))
        if role is None:
            raise UserError(
                f"dataset.path: row {number} has the unknown role {turn[role_key]!r} in `{field}.{role_key}`; "
                f"known are {', '.join(ROLES)}."
            )
        found.append((role, turn[text_key]))
    return found


def text_of(content: Any) -> str:
    """Return a message's text: its text parts joined where it is a list of typed parts, empty for None.

    Raises
    ------
    ValueError
        If there is something else than text, and thoughts beside it, in the content.
    """
    texts = []
    for part in content if isinstance(content, list) else [content]:
        match part:
            case str(text) | {"type": "text" | "input_text" | "output_text", "text": str(text)}:
                texts.append(text)
            case None | {"type": "thinking" | "reasoning"}:
                pass
            case _:
                raise ValueError("the message has a part that is no text")
    return "".join(texts)


def cut_at_thought(assistant: str) -> tuple[str, str, str]:
    """Cut an assistant turn into what precedes the thought's text, the text without outer white space, and the rest.

    Returns
    -------
    tuple of str
        before, thought, after; their concatenation is the turn.

    Raises
    ------
    Skip
        If the thought is not opened, not closed, or empty.
    """
    for begin, end in THOUGHT_DELIMITERS:
        if begin in assistant:
            start = assistant.index(begin) + len(begin)
            stop = assistant.find(end, start)
            if stop < 0:
                raise Skip("thought not closed")
            thought = assistant[start:stop]
            if not thought.strip():
                raise Skip("empty thought")
            start += len(thought) - len(thought.lstrip())
            stop -= len(thought) - len(thought.rstrip())
            return assistant[:start], assistant[start:stop], assistant[stop:]
    raise Skip("thought not opened")
