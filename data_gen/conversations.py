"""A question and its answer, whose thought is cut into paragraphs; the assistant turn can be rebuilt exactly."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from data_gen.boxed import boxed_answer
from data_gen.records import HALF_CHARACTER, Skip, Turns, cut_at_thought, read_turns
from data_gen.segmentation import Segmentation

SPLITS = ("train", "validation")


@dataclass(frozen=True)
class Conversation:
    """One row of traces.jsonl.

    Attributes
    ----------
    id : str
        Stable id of the row.
    system : str or None
        System prompt.
    user : str
        The question, as the model is asked.
    before : str
        The assistant turn up to the thought's first character.
    paragraphs, separators : list of str
        The thought's paragraphs and what follows each.
    after : str
        The end-of-thought delimiter and the rest of the turn.
    answer : str or None
        The boxed answer.
    split : str or None
        "train" or "validation" where the source decides, else None.
    """

    id: str
    system: str | None
    user: str
    before: str
    paragraphs: list[str]
    separators: list[str]
    after: str
    answer: str | None
    split: str | None

    @property
    def assistant(self) -> str:
        """The assistant turn, byte for byte as in the source."""
        thought = "".join(p + s for p, s in zip(self.paragraphs, self.separators, strict=True))
        return self.before + thought + self.after


def read_conversation(
    row: dict[str, Any], number: int, segmentation: Segmentation, count: Callable[[str], int]
) -> Conversation:
    """Cut a source row into paragraphs.

    Raises
    ------
    Skip
        If the row has no complete thought, or something else than text where text belongs.
    UserError
        If the row's schema is unknown.
    """
    turns = read_turns(row, number)
    before, thought, after = cut_at_thought(turns.assistant)
    paragraphs, separators = segmentation(thought, count)
    white_space = after[: len(after) - len(after.lstrip())]
    separators[-1] = white_space
    answer = row.get("answer")
    return Conversation(
        id=own_id(row) or _digest(turns),
        system=turns.system,
        user=turns.user,
        before=before,
        paragraphs=paragraphs,
        separators=separators,
        after=after[len(white_space) :],
        answer=str(answer) if isinstance(answer, str | int | float) and answer != "" else boxed_answer(after).text,
        split=row["split"] if row.get("split") in SPLITS else None,
    )


def read_conversations(
    rows: Iterable[dict[str, Any]],
    segmentation: Segmentation,
    count: Callable[[str], int],
    skipped: list[dict[str, str]],
) -> Iterator[Conversation]:
    """Cut source rows; of those that cannot be, `skipped` gets the id and the reason."""
    seen: set[str] = set()
    for number, row in enumerate(rows):
        try:
            conversation = read_conversation(row, number, segmentation, count)
            if conversation.id in seen:
                raise Skip("duplicate")
        except Skip as reason:
            skipped.append(reason.row(own_id(row) or f"row {number}"))
            continue
        seen.add(conversation.id)
        yield conversation


def own_id(row: dict[str, Any]) -> str | None:
    """Return the id that a row brings."""
    return None if row.get("id") is None else HALF_CHARACTER.sub("\ufffd", str(row["id"]))


def _digest(turns: Turns) -> str:
    """An id made of the texts, so that it does not depend on the order of the rows."""
    return hashlib.sha256("\0".join(text or "" for text in turns).encode()).hexdigest()[:16]
