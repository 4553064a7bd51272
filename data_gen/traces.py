"""A trace: a conversation whose thought is cut into paragraphs; the assistant turn can be rebuilt exactly."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from data_gen.boxed import boxed_answer
from data_gen.records import Skip, cut_at_thought, read_conversation, trace_id
from data_gen.segmentation import Segmentation


@dataclass(frozen=True)
class Trace:
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

    def row(self) -> dict[str, Any]:
        """The trace as a JSON-like row."""
        return asdict(self)


def read_trace(row: dict[str, Any], number: int, segmentation: Segmentation, count: Callable[[str], int]) -> Trace:
    """Make a trace of a source row.

    Raises
    ------
    Skip
        If the row has no complete thought.
    UserError
        If the row's schema is unknown.
    """
    conversation = read_conversation(row, number)
    before, thought, after = cut_at_thought(conversation.assistant)
    paragraphs, separators = segmentation(thought, count)
    white_space = after[: len(after) - len(after.lstrip())]
    separators[-1] = white_space
    answer = row.get("answer") or boxed_answer(after).text
    return Trace(
        id=trace_id(row, conversation),
        system=conversation.system,
        user=conversation.user,
        before=before,
        paragraphs=paragraphs,
        separators=separators,
        after=after[len(white_space) :],
        answer=answer,
        split=row.get("split"),
    )


def read_traces(
    rows: Iterable[dict[str, Any]], segmentation: Segmentation, count: Callable[[str], int], skipped: Counter[str]
) -> Iterator[Trace]:
    """Make traces of source rows; rows that cannot become one are counted in `skipped` by reason."""
    seen: set[str] = set()
    for number, row in enumerate(rows):
        try:
            trace = read_trace(row, number, segmentation, count)
            if trace.id in seen:
                raise Skip("duplicate")
        except Skip as reason:
            skipped[str(reason)] += 1
            continue
        seen.add(trace.id)
        yield trace
