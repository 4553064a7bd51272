"""The assistant turn with its summaries, and the token row that is trained on."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from data_gen.control import control_texts
from data_gen.conversations import Conversation
from data_gen.records import THOUGHT_DELIMITERS, Skip
from zoomr.prompts import render_row
from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY, delimiter_ids

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

IGNORED = -100
SUMMARY = re.compile(f"{re.escape(BEGIN_SUMMARY)} (.*?){re.escape(END_SUMMARY)}", re.S)


def insert_summaries(trace: Conversation, summaries: Mapping[int, str]) -> str:
    """Return the assistant turn with each summary between the delimiters right after its paragraph.

    A space opens the summary, so that its first word is tokenised as in running text. Paragraphs without a summary stay
    as they are.
    """
    thought = ""
    for index, (paragraph, separator) in enumerate(zip(trace.paragraphs, trace.separators, strict=True)):
        inserted = f"{BEGIN_SUMMARY} {summaries[index]}{END_SUMMARY}" if index in summaries else ""
        thought += paragraph + inserted + separator
    return trace.before + thought + trace.after


def strip_summaries(text: str) -> str:
    """Return a text without its summaries: the inverse of `insert_summaries`."""
    return SUMMARY.sub("", text)


@dataclass(frozen=True)
class TrainingRow:
    """What is trained on.

    Attributes
    ----------
    text : str
        The assistant turn with its summaries, uncut.
    input_ids : list of int
        Prompt, assistant turn, end of turn.
    labels : list of int
        The same, -100 in the prompt.
    was_cut : bool
        Whether the row ends at a summary because it was too long.
    """

    text: str
    input_ids: list[int]
    labels: list[int]
    was_cut: bool


class RowBuilder:
    """Makes rows for a tokenizer.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        With the two delimiters as single tokens.
    max_length : int
        Longest row in tokens.
    over_length : str
        "drop" leaves longer rows out, "cut" ends them at the last complete summary that fits.
    missing : str
        "drop" leaves out what has a paragraph without summary, "leave" what has no summary at all.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        max_length: int,
        over_length: Literal["drop", "cut"],
        missing: Literal["drop", "leave"] = "drop",
    ) -> None:
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.over_length = over_length
        self.missing = missing
        self._control = control_texts(tokenizer)

    def __call__(self, trace: Conversation, summaries: Mapping[int, str]) -> TrainingRow:
        """Make one row.

        Raises
        ------
        Skip
            If a summary is missing, a text holds what the model takes for control, or the row is too long.
        """
        if not summaries or (len(summaries) < len(trace.paragraphs) and self.missing == "drop"):
            raise Skip("summary missing", f"{len(summaries)} of {len(trace.paragraphs)} paragraphs have one")
        self._refuse_control(trace, summaries)
        text = insert_summaries(trace, summaries)
        if strip_summaries(text) != trace.assistant:
            raise Skip("text changed by the summaries")
        ids, n_prompt = render_row(self.tokenizer, trace.system or "", trace.user, text)
        was_cut = len(ids) > self.max_length
        if was_cut:
            ids = self._cut(ids, n_prompt)
        return TrainingRow(text, ids, [IGNORED] * n_prompt + ids[n_prompt:], was_cut)

    def _refuse_control(self, trace: Conversation, summaries: Mapping[int, str]) -> None:
        before, after = trace.before.rstrip(), trace.after
        for begin, end in THOUGHT_DELIMITERS:  # which a model may have as tokens
            before, after = before.removesuffix(begin), after.removeprefix(end)
        parts = {
            "system prompt": trace.system or "",
            "question": trace.user,
            "answer": "\n".join([before, *trace.paragraphs, after]),
            "summaries": "\n".join(summaries.values()),
        }
        for name, text in parts.items():
            if found := self._control.search(text):
                raise Skip(f"control token in the {name}", found.group())

    def _cut(self, ids: list[int], n_prompt: int) -> list[int]:
        if self.over_length == "drop":
            raise Skip("too long", f"{len(ids)} tokens")
        _, end = delimiter_ids(self.tokenizer)
        fitting = [position for position in range(n_prompt, self.max_length) if ids[position] == end]
        if not fitting:
            raise Skip("too long before the first summary", f"{len(ids)} tokens")
        # No end of turn follows, since the reasoning does not end here.
        return ids[: fitting[-1] + 1]
