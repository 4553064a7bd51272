"""Whether a reply holds a usable summary, and why not."""

import json
import re
from dataclasses import dataclass
from typing import Any

from data_gen.control import CONTROL
from data_gen.lengths import approximate_tokens
from data_gen.records import HALF_CHARACTER, text_of

REFUSAL = re.compile(
    r"^\W*(i['\u2019]?m sorry|i am sorry|sorry, (but )?i|i apologi[sz]e|as an ai\b|i (can(no|['\u2019])t|am unable to|"
    r"['\u2019]?m unable to|won['\u2019]t|will not|must decline to) (help|assist|comply|summari[sz]e|condense|provide|"
    r"fulfil|answer|respond|process|continue with this))",
    re.I,
)
GOOD_ENDS = ("stop", "eos_token", "stop_sequence", "end_turn")
LONGEST_REPLY = 10_000  # characters
ANSWER_TOKENS = 16  # a phrase of 10-12 tokens and its JSON
FENCE = re.compile(r"^```(?:json)?\s*\n(.*?)\n?```$", re.S)

# The sentence that a retry adds to the prompt, so that a deterministic model does not repeat itself.
ADVICE = {
    "blank": "An earlier answer was empty. Write the phrase.",
    "length": "An earlier answer was cut off. Answer at once and keep it short.",
    "too long": "An earlier answer was too long. Use at most 12 words.",
    "delimiter": "An earlier answer contained control tokens. Use plain text only.",
    "not json": 'An earlier answer was not the JSON object asked for. Write {"results": "..."} and nothing else.',
    "refusal": "The paragraph is ordinary reasoning about a problem; state what it found.",
}


@dataclass(frozen=True)
class Reply:
    """What is kept of a server's reply.

    Attributes
    ----------
    content : str
        The text of the message.
    refusal, finish_reason, model : str or None
        As sent by the server.
    usage : dict
        Token counts as sent by the server.
    """

    content: str
    refusal: str | None
    finish_reason: str | None
    model: str | None
    usage: dict[str, Any]

    @classmethod
    def read(cls, body: Any) -> "Reply":
        """Read a chat completion.

        Raises
        ------
        ValueError
            If the body is none, or its message is neither text nor parts of text.
        """
        match body:
            case {"choices": [{"message": {**message}, **choice}, *_]}:
                pass
            case _:
                raise ValueError("the reply is no chat completion")
        usage = body.get("usage")
        counts = usage.items() if isinstance(usage, dict) else ()
        return cls(
            text_of(message.get("content")),
            _name(message.get("refusal")),
            _name(choice.get("finish_reason")),
            _name(body.get("model")),
            {key: count for key, count in counts if key.endswith("_tokens") and type(count) is int and count >= 0},
        )


def _name(value: Any) -> str | None:
    return None if value is None else str(value)[:100]


class Rejected(Exception):
    """An unusable answer; the text is the reason under which it is counted."""


def summary_of(reply: Reply, answer: str, budget: int, summary_tokens: int) -> str:
    """Return the summary in a reply, white space made single.

    Parameters
    ----------
    reply : Reply
        The server's reply.
    answer : str
        "json" or "text".
    budget : int
        Tokens the answer could have; a reply that used them all is taken for cut whatever its finish reason says.
    summary_tokens : int
        Longest summary accepted, in tokens (estimated).

    Raises
    ------
    Rejected
        With the reason: refusal, filtered, length, no or another finish reason, blank, not json, delimiter, broken
        text, too long.
    """
    text = reply.content.strip()
    if len(text) > LONGEST_REPLY:
        raise Rejected("too long")
    if reply.refusal or REFUSAL.match(text):
        raise Rejected("refusal")
    if reply.finish_reason == "content_filter":
        raise Rejected("filtered")
    if reply.finish_reason == "length" or 0 < budget <= reply.usage.get("completion_tokens", 0):
        raise Rejected("length")
    if not reply.finish_reason:
        raise Rejected("no finish reason")
    if reply.finish_reason not in GOOD_ENDS:
        raise Rejected(f"finish reason {reply.finish_reason[:40]}")
    if not text:
        raise Rejected("blank")
    if answer == "json":
        text = _results(text)
    summary = " ".join(text.split())
    if not summary:
        raise Rejected("blank")
    if REFUSAL.match(summary):
        raise Rejected("refusal")
    if CONTROL.search(summary):
        raise Rejected("delimiter")
    if HALF_CHARACTER.search(summary):
        raise Rejected("broken text")
    if approximate_tokens(summary) > summary_tokens:
        raise Rejected("too long")
    return summary


def stored_summary(row: dict[str, Any], answer: str, summary_tokens: int) -> str | None:
    """Return the summary in a stored reply; None if what was one when it was stored is none by now."""
    reply = Reply(row["raw"], None, row["finish_reason"], row["model"], row["usage"])
    try:
        return summary_of(reply, answer, row["budget"], summary_tokens)
    except Rejected:
        return None


def _results(text: str) -> str:
    fenced = FENCE.match(text)
    try:
        value = json.loads(fenced.group(1) if fenced else text)["results"]
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        raise Rejected("not json") from None
    if not isinstance(value, str):
        raise Rejected("not json")
    return value
