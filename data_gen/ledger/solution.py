"""A ledger's solution with summaries, in tokens, and where in it the look-ups are."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from data_gen.assemble import insert_summaries
from data_gen.ledger.teacher import summarize_paragraph
from data_gen.ledger.world import SYSTEM, Problem
from data_gen.traces import Trace
from zoomr.prompts import render_row

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

OPENING = " See"
TO_DIGITS = 3  # a look-up's name, code and sign come before its digits


@dataclass(frozen=True)
class LookUp:
    """One look-up of a solution.

    Attributes
    ----------
    name : int
        Index in the continuation of the token that names what is looked up.
    paragraph, needs : int
        The paragraph it stands in, and the one that it needs.
    """

    name: int
    paragraph: int
    needs: int

    @property
    def digits(self) -> range:
        """Indices of the two digits."""
        return range(self.name + TO_DIGITS, self.name + TO_DIGITS + 2)


@dataclass(frozen=True)
class Solution:
    """Prompt and continuation in tokens, and the look-ups of the continuation in their order."""

    prompt: list[int]
    continuation: list[int]
    look_ups: list[LookUp]


def solution(problem: Problem, tokenizer: "PreTrainedTokenizerBase") -> Solution:
    """Return the solution that a perfect model would write.

    Parameters
    ----------
    problem : Problem
    tokenizer : PreTrainedTokenizerBase
        The ledger's, with the summaries' delimiters.
    """
    paragraphs = problem.paragraphs
    before, _, after = problem.response.partition("\n\n".join(paragraphs))
    separators = ["\n\n"] * (len(paragraphs) - 1) + [""]
    trace = Trace("", SYSTEM, problem.question, before, paragraphs, separators, after, problem.answer, None)
    text = insert_summaries(trace, {n: summarize_paragraph(paragraph) for n, paragraph in enumerate(paragraphs)})
    ids, prompt = render_row(tokenizer, SYSTEM, problem.question, text)
    tokens = tokenizer.convert_ids_to_tokens(ids[prompt:])
    names = [index + 1 for index, token in enumerate(tokens) if token == OPENING]
    needed = [(paragraph, needs) for paragraph, needs in enumerate(problem.dependencies) if needs is not None]
    look_ups = [LookUp(name, *pair) for name, pair in zip(names, needed, strict=True)]
    return Solution(ids[:prompt], ids[prompt:], look_ups)
