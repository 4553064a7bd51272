"""A benchmark whose problems are the rows of a table, on the hub or in a file."""

from dataclasses import dataclass
from typing import Any

from data_gen.benchmarks.problem import Problem, check
from data_gen.benchmarks.rows import read_rows


@dataclass(frozen=True, kw_only=True)
class Table:
    """What tables share; a kind of table says how it reads a row.

    Attributes
    ----------
    name, answer : str
        Name of the benchmark, and kind of answer.
    id : str
        Field of a row.
    prompt : str
        What the user says; ``{problem}`` stands for the problem.
    count : int or None
        Number of problems it must have.
    samples : int
        Samples a problem where generation is sampled.
    path, hub, subset, revision, split
        See ``read_rows``.
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
        rows = read_rows(self.path, self.hub, self.subset, self.revision, self.split)
        problems = [self.problem_of(row, number) for number, row in enumerate(rows, start=1)]
        check(problems, self.name, self.count, self.answer)
        return problems

    def problem_of(self, row: dict[str, Any], number: int) -> Problem:
        """The problem that a row holds; ``number`` is the row's, from 1 on."""
        raise NotImplementedError
