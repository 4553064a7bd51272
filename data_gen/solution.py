"""A problem's solution with summaries, in tokens, and where in it the look-ups are."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from data_gen.assemble import insert_summaries
from data_gen.conversations import Conversation
from data_gen.world import Problem, World
from zoomr.prompts import end_of_turn, render_prompt
from zoomr.summaries.segments import boundary_table

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Reading:
    """A look-up in tokens.

    Attributes
    ----------
    position : int
        Index in the continuation of the last boundary token before the value: the refresh that has to find it.
    answer : range
        Indices in the continuation of the value's tokens.
    paragraph, needs : int
        The paragraph it stands in, and the one that it needs.
    """

    position: int
    answer: range
    paragraph: int
    needs: int


@dataclass(frozen=True)
class Solution:
    """Prompt and continuation in tokens, and the look-ups of the continuation in their order."""

    prompt: list[int]
    continuation: list[int]
    look_ups: list[Reading]


def solution(world: World, problem: Problem, tokenizer: "PreTrainedTokenizerBase") -> Solution:
    """Return the solution that a perfect model would write.

    Parameters
    ----------
    world : World
    problem : Problem
        Of that world.
    tokenizer : PreTrainedTokenizerBase
        A fast one, with the summaries' delimiters.
    """
    text = insert_summaries(_conversation(problem), dict(enumerate(map(world.summarize, problem.paragraphs))))
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
    starts, stops = [start for start, _ in offsets], [stop for _, stop in offsets]
    boundaries = boundary_table(tokenizer)
    readings, place, paragraph = [], 0, -1
    for look_up in problem.look_ups:
        while paragraph < look_up.paragraph:
            paragraph += 1
            place = text.index(problem.paragraphs[paragraph], place)
        answer = range(_covering(stops, place + look_up.start), bisect_left(starts, place + look_up.stop))
        position = next(index for index in range(answer.start - 1, -1, -1) if ids[index] in boundaries)
        readings.append(Reading(position, answer, look_up.paragraph, look_up.needs))
    return Solution(render_prompt(tokenizer, world.system, problem.question), [*ids, end_of_turn(tokenizer)], readings)


def _covering(stops: list[int], character: int) -> int:
    """Index of the token that a character is in."""
    return bisect_left(stops, character + 1)


def _conversation(problem: Problem) -> Conversation:
    paragraphs = problem.paragraphs
    before, _, after = problem.response.partition("\n\n".join(paragraphs))
    separators = ["\n\n"] * (len(paragraphs) - 1) + [""]
    return Conversation("", None, problem.question, before, paragraphs, separators, after, problem.answer, None)
