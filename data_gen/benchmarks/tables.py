"""Benchmarks whose problems are the rows of a table, on the hub or in a file."""

import random
from dataclasses import dataclass
from typing import Any

from data_gen.benchmarks.problem import Problem, check
from data_gen.benchmarks.rows import field
from data_gen.hub import load_from_hub
from pipeline import iterate_rows

LETTERS = "ABCD"


@dataclass(frozen=True, kw_only=True)
class Table:
    """What tables share; a kind of table says how it reads a row.

    Attributes
    ----------
    name, answer : str
        Name of the benchmark, and kind of answer.
    id : str
        Field of a row; empty numbers the rows.
    prompt : str
        What the user says; ``{problem}`` stands for the problem.
    count : int or None
        Number of problems it must have.
    samples : int
        Samples a problem where generation is sampled.
    path : str or None
        A JSON Lines file; None takes the data set from the hub.
    hub, subset, revision, split : str
        Where the data set lies on the hub.
    """

    name: str
    answer: str
    id: str
    prompt: str
    hub: str
    revision: str
    split: str
    subset: str | None = None
    count: int | None = None
    path: str | None = None
    samples: int = 1

    def load(self) -> list[Problem]:
        """Return the problems in file order; refuses a copy of the wrong size."""
        if self.path is not None:
            rows = iterate_rows(self.path, "benchmark.path")
        else:
            rows = load_from_hub("benchmark", self.hub, self.revision, self.split, self.subset)
        problems = []
        for number, row in enumerate(rows, start=1):
            name = field(row, self.id, number) if self.id else f"{self.name}-{number:04d}"
            problem, gold = self.read(row, name, number)
            problems.append(Problem(name, self.prompt.replace("{problem}", problem.strip()), gold.strip()))
        check(problems, self.name, self.count, self.answer)
        return problems

    def read(self, row: dict[str, Any], name: str, number: int) -> tuple[str, str]:
        """Return the problem and the gold answer of a row, given the problem's id and the row's number from 1 on."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class MathTable(Table):
    """Problems with a mathematical answer, integer or math: MATH500, AIME, GSM8K.

    Attributes
    ----------
    problem, gold : str
        Fields of a row.
    gold_after : str
        The gold is what follows the last occurrence of this mark; empty takes the field whole.
    """

    problem: str
    gold: str
    gold_after: str = ""

    def read(self, row: dict[str, Any], name: str, number: int) -> tuple[str, str]:
        """Return the problem and the gold answer of a row."""
        gold = field(row, self.gold, number)
        return field(row, self.problem, number), gold.rpartition(self.gold_after)[2] if self.gold_after else gold


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

    def read(self, row: dict[str, Any], name: str, number: int) -> tuple[str, str]:
        """Return the question with its lettered choices, and the letter of the right one."""
        choices = [field(row, key, number).strip() for key in (self.right, *self.wrong)]
        order = random.Random(f"{self.shuffle_seed} {name}").sample(range(len(choices)), len(choices))
        lines = [f"({letter}) {choices[place]}" for letter, place in zip(LETTERS, order, strict=True)]
        return "\n".join([field(row, self.question, number).strip(), "", *lines]), LETTERS[order.index(0)]
