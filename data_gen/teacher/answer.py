"""Whether a reply holds a usable summary, and why not."""

import json
import re
from dataclasses import dataclass
from typing import Any

from data_gen.lengths import approximate_tokens
from data_gen.teacher.prompt import CONTROL

REFUSAL = re.compile(
    r"^\W*(i['\u2019]?m sorry|i am sorry|sorry, (but )?i|i apologi[sz]e|as an ai\b|i (can(no|['\u2019])t|am unable to|"
    r"['\u2019]?m unable to|won['\u2019]t|will not|must decline to) (help|assist|comply|summari[sz]e|condense|provide|"
    r"fulfil|answer|respond|process|continue with this))",
    re.I,
)
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
    content, refusal, finish_reason, model : str or None
        As sent by the server.
    usage : dict
        Token counts as sent by the server.
    """

    content: str | None
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
            If the body has no choice.
        """
        try:
            choice = body["choices"][0]
            message = choice["message"]
        except (TypeError, KeyError, IndexError) as error:
            raise ValueError("the reply is no chat completion") from error
        usage = body.get("usage") or {}
        counts = {key: value for key, value in usage.items() if key.endswith("_tokens") and isinstance(value, int)}
        return cls(
            message.get("content"), message.get("refusal"), choice.get("finish_reason"), body.get("model"), counts
        )


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
        With the reason: refusal, filtered, length, no finish reason, blank, not json, delimiter, too long.
    """
    text = (reply.content or "").strip()
    if reply.refusal or REFUSAL.match(text):
        raise Rejected("refusal")
    if reply.finish_reason == "content_filter":
        raise Rejected("filtered")
    if reply.finish_reason == "length" or 0 < budget <= reply.usage.get("completion_tokens", 0):
        raise Rejected("length")
    if not reply.finish_reason:
        raise Rejected("no finish reason")
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
    if approximate_tokens(summary) > summary_tokens:
        raise Rejected("too long")
    return summary


def _results(text: str) -> str:
    fenced = FENCE.match(text)
    try:
        value = json.loads(fenced.group(1) if fenced else text)["results"]
    except (ValueError, TypeError, KeyError, IndexError):
        raise Rejected("not json") from None
    if not isinstance(value, str):
        raise Rejected("not json")
    return value
