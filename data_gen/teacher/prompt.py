"""What is sent for a paragraph, and the fingerprint of everything that shapes the answer."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, Literal

import yaml

from data_gen.control import neutral
from data_gen.conversations import Conversation
from data_gen.teacher.settings import Teacher
from zoomr.errors import UserError

# Parts of a prompt file, and what is filled into each.
FILLED = {"user": {"context", "paragraph"}, "problem": {"text"}, "previous": {"text"}}
PARTS = ("system", "json", "text", *FILLED)


@dataclass(frozen=True)
class Request:
    """One paragraph to be summarised.

    Attributes
    ----------
    id : str
        `<trace id>#<paragraph index>:<fingerprint>`.
    trace : str
        The trace's id.
    paragraph : int
        Index in the trace.
    messages : list of dict
        The chat messages.
    """

    id: str
    trace: str
    paragraph: int
    messages: list[dict[str, str]]


@dataclass(frozen=True)
class Prompt:
    """The wording, filled in for each paragraph.

    Attributes
    ----------
    parts : dict of str to str
        The texts of the prompt file.
    context : str
        "problem", "none" or "previous": what the teacher sees beside the paragraph.
    previous : int
        Number of earlier paragraphs for "previous".
    """

    parts: dict[str, str]
    context: Literal["problem", "none", "previous"]
    previous: int

    @classmethod
    def load(cls, path: str | Path, context: Literal["problem", "none", "previous"], previous: int) -> "Prompt":
        """Read the prompt file.

        Raises
        ------
        UserError
            If the file is missing or lacks a part, or `context` is unknown.
        """
        if context not in ("problem", "none", "previous"):
            raise UserError(f"summarize.context={context} must be problem, none or previous.")
        try:
            parts = yaml.safe_load(Path(path).read_bytes())
        except OSError as error:
            raise UserError(f"summarize.prompt={path} cannot be read: {error.strerror}.") from error
        except (ValueError, yaml.YAMLError) as error:
            raise UserError(f"summarize.prompt={path} is not YAML.") from error
        for part in PARTS:
            text = parts.get(part) if isinstance(parts, dict) else None
            if not isinstance(text, str):
                raise UserError(f"summarize.prompt={path} has no text under `{part}`.")
            names = FILLED.get(part)
            if names and not (Template(text).is_valid() and names.issuperset(Template(text).get_identifiers())):
                known = " and ".join(f"${name}" for name in sorted(names))
                raise UserError(f"summarize.prompt={path}: of `{part}` {known} are filled in; $ itself is written $$.")
        return cls({part: parts[part] for part in PARTS}, context, previous)

    def messages(self, trace: Conversation, index: int, answer: str) -> list[dict[str, str]]:
        """Return the chat messages for one paragraph of a trace."""
        context = self._context(trace, index)
        if context:
            context = Template(self.parts[self.context]).substitute(text=neutral(context))
        user = Template(self.parts["user"]).substitute(context=context, paragraph=neutral(trace.paragraphs[index]))
        return [
            {"role": "system", "content": self.parts["system"]},
            {"role": "user", "content": f"{user}\n{self.parts[answer]}".strip()},
        ]

    def _context(self, trace: Conversation, index: int) -> str:
        if self.context == "problem":
            return trace.user
        first = max(0, index - self.previous) if self.context == "previous" else index
        return "\n\n".join(trace.paragraphs[first:index])

    def ids(self, trace: Conversation, identity: dict[str, Any]) -> Iterator[str]:
        """Yield the request ids of a trace: `<trace id>#<paragraph index>:<fingerprint>`.

        The fingerprint covers the teacher, the wording, the context and the paragraph. The messages follow from these,
        and are not built for what has a reply already.
        """
        wording = {
            part: self.parts[part]
            for part in ("system", "user", self.context, identity["answer"])
            if part in self.parts
        }
        base = hashlib.sha256(json.dumps({**identity, "wording": wording}, sort_keys=True).encode())
        for index, paragraph in enumerate(trace.paragraphs):
            digest = base.copy()
            digest.update(f"{self._context(trace, index)}\0{paragraph}".encode())
            yield f"{trace.id}#{index}:{digest.hexdigest()[:16]}"


def teacher_identity(teacher: Teacher, summary_tokens: int) -> dict[str, Any]:
    """What shapes an answer beside the messages; an endpoint may move, but one started here is another model."""
    return {
        "model": teacher.model,
        "serve": list(teacher.serve or ()) if teacher.base_url is None else None,
        "sampling": dict(teacher.sampling),
        "answer": teacher.answer,
        "summary_tokens": summary_tokens,
    }
