"""Public row schemas -> one conversation -> a trace: the assistant turn cut at the thought's delimiters."""

import hashlib
from dataclasses import dataclass
from typing import Any

from zoomr.errors import UserError

THOUGHT_DELIMITERS = (("<|begin_of_thought|>", "<|end_of_thought|>"), ("<think>", "</think>"))
ROLES = {"system": "system", "user": "user", "human": "user", "assistant": "assistant", "gpt": "assistant"}


class Skip(Exception):
    """A row that cannot become a trace; the text is the reason under which it is counted."""


@dataclass(frozen=True)
class Conversation:
    """One question and the answer to it.

    Attributes
    ----------
    system : str or None
        The system prompt, None where the row has none.
    user, assistant : str
        The two turns.
    """

    system: str | None
    user: str
    assistant: str


def read_conversation(row: dict[str, Any], number: int) -> Conversation:
    """Read a row in either public schema: `system` + `conversations` (from, value), or `messages` (role, content).

    Raises
    ------
    UserError
        If the row has neither shape; names the row and the missing field.
    Skip
        If a turn is missing or there is more than one question.
    """
    if "conversations" in row:
        turns = _turns(row["conversations"], "conversations", "from", "value", number)
    elif "messages" in row:
        turns = _turns(row["messages"], "messages", "role", "content", number)
    else:
        raise UserError(
            f"dataset.path: row {number} has neither the field `conversations` nor `messages`; "
            f"its fields are {', '.join(sorted(row)) or 'none'}."
        )
    texts: dict[str, list[str]] = {"system": [], "user": [], "assistant": []}
    for role, text in turns:
        texts[role].append(text)
    for role in ("user", "assistant"):
        if not any(text.strip() for text in texts[role]):
            raise Skip(f"no {role} turn")
    if len(texts["user"]) > 1 or len(texts["assistant"]) > 1:
        raise Skip("more than one question")
    system = row.get("system") or (texts["system"][0] if texts["system"] else None)
    return Conversation(system, texts["user"][0], texts["assistant"][0])


def _turns(turns: Any, field: str, role_key: str, text_key: str, number: int) -> list[tuple[str, str]]:
    if turns is None:
        raise Skip("no user turn")
    found = []
    for turn in turns:
        for key in (role_key, text_key):
            if key not in turn:
                raise UserError(f"dataset.path: row {number} has a turn in `{field}` without the field `{key}`.")
        role = ROLES.get(turn[role_key])
        if role is None:
            raise UserError(
                f"dataset.path: row {number} has the unknown role {turn[role_key]!r} in `{field}.{role_key}`; "
                f"known are {', '.join(ROLES)}."
            )
        found.append((role, turn[text_key] or ""))
    return found


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


def trace_id(row: dict[str, Any], conversation: Conversation) -> str:
    """Return the row's own id, else a digest of its texts, so that ids do not depend on the order of the rows."""
    if row.get("id") is not None:
        return str(row["id"])
    texts = "\0".join((conversation.system or "", conversation.user, conversation.assistant))
    return hashlib.sha256(texts.encode()).hexdigest()[:16]
