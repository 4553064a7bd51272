"""The assistant turn with its summaries, and the token row that is trained on."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from data_gen.records import Skip
from data_gen.traces import Trace
from zoomr.prompts import render_row
from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY, delimiter_ids

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

IGNORED = -100
SUMMARY = re.compile(f"{re.escape(BEGIN_SUMMARY)} (.*?){re.escape(END_SUMMARY)}", re.S)


def insert_summaries(trace: Trace, summaries: Mapping[int, str]) -> str:
    """Return the assistant turn with each summary between the delimiters right after its paragraph.

    A space opens the summary, so that its first word is tokenised as in running text. Paragraphs without a summary stay
    as they are.

    Raises
    ------
    Skip
        If the source's text holds a delimiter already.
    """
    if BEGIN_SUMMARY in trace.assistant or END_SUMMARY in trace.assistant:
        raise Skip("delimiter in the source")
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
    input_ids : list of int
        Prompt, assistant turn, end of turn.
    labels : list of int
        The same, -100 in the prompt.
    was_cut : bool
        Whether the row ends at a summary because it was too long.
    """

    input_ids: list[int]
    labels: list[int]
    was_cut: bool


@dataclass(frozen=True)
class RowBuilder:
    """Renders assembled turns for a tokenizer.

    Attributes
    ----------
    tokenizer : PreTrainedTokenizerBase
        With the two delimiters as single tokens.
    max_length : int
        Longest row in tokens.
    over_length : str
        "drop" leaves longer rows out, "cut" ends them at the last complete summary that fits.
    """

    tokenizer: "PreTrainedTokenizerBase"
    max_length: int
    over_length: Literal["drop", "cut"]

    def __call__(self, trace: Trace, assistant: str) -> TrainingRow:
        """Render one row.

        Raises
        ------
        Skip
            If the row is too long, or the source's text holds a control token of the chat template.
        """
        ids, n_prompt = render_row(self.tokenizer, trace.system or "", trace.user, assistant)
        tokenizer = self.tokenizer
        control = {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, ids[-1]} - {None}
        if control & set(ids[n_prompt:-1]):
            raise Skip("control token in the source")
        was_cut = len(ids) > self.max_length
        if was_cut:
            ids = self._cut(ids, n_prompt)
        labels = [IGNORED] * n_prompt + ids[n_prompt:]
        return TrainingRow(ids, labels, was_cut)

    def _cut(self, ids: list[int], n_prompt: int) -> list[int]:
        if self.over_length == "drop":
            raise Skip("too long")
        _, end = delimiter_ids(self.tokenizer)
        fitting = [position for position in range(n_prompt, self.max_length) if ids[position] == end]
        if not fitting:
            raise Skip("too long before the first summary")
        # No end of turn follows, since the reasoning does not end here.
        return ids[: fitting[-1] + 1]
