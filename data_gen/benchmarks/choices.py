"""Multiple choice: the choices are shuffled once, with a seed of their own, and the answer is a letter."""

import random
from dataclasses import dataclass
from typing import Any

from data_gen.benchmarks.problem import Problem
from data_gen.benchmarks.rows import field
from data_gen.benchmarks.table import Table

LETTERS = "ABCD"


@dataclass(frozen=True, kw_only=True)
class ChoiceTable(Table):
    """Questions with one right and three wrong choices (GPQA); ``{problem}`` is a question with its lettered choices.

    Attributes
    ----------
    question, right : str
        Fields of a row.
    wrong : list of str
        Fields of the three wrong choices.
    shuffle_seed : int
        Seed of the order of the choices; a question's order depends on it and on the question's id alone.
    """

    question: str
    right: str
    wrong: list[str]
    shuffle_seed: int = 0
    answer: str = "letter"

    def problem_of(self, row: dict[str, Any], number: int) -> Problem:
        """See `Table.problem_of`."""
        name = field(row, self.id, number)
        choices = [field(row, key, number).strip() for key in (self.right, *self.wrong)]
        order = random.Random(f"{self.shuffle_seed} {name}").sample(range(len(choices)), len(choices))
        lines = [f"({letter}) {choices[place]}" for letter, place in zip(LETTERS, order, strict=True)]
        text = "\n".join([field(row, self.question, number).strip(), "", *lines])
        return Problem(name, self.prompt.replace("{problem}", text), LETTERS[order.index(0)])
