"""Multiple choice: the choices are shuffled once, with a seed of their own, and the answer is a letter."""

import random
from dataclasses import dataclass

from eval.benchmarks.problem import Problem, check
from eval.benchmarks.rows import field, read_rows

LETTERS = "ABCD"


@dataclass(frozen=True)
class ChoiceTable:
    """Questions with one right and three wrong choices (GPQA).

    Attributes
    ----------
    name : str
        Name of the benchmark.
    question, right, id : str
        Fields of a row.
    wrong : list of str
        Fields of the three wrong choices.
    prompt : str
        What the user says; ``{problem}`` stands for the question with its lettered choices.
    shuffle_seed : int
        Seed of the order of the choices; a question's order depends on it and on the question's id alone.
    count : int or None
        Number of questions it must have.
    samples : int
        Samples a problem where generation is sampled.
    path, hub, subset, revision, split
        See ``read_rows``.
    """

    name: str
    question: str
    right: str
    wrong: list[str]
    id: str
    prompt: str
    hub: str
    revision: str
    split: str
    subset: str | None = None
    shuffle_seed: int = 0
    count: int | None = None
    path: str | None = None
    samples: int = 1
    answer: str = "letter"

    def load(self) -> list[Problem]:
        """Return the questions in file order; refuses a copy of the wrong size."""
        problems = []
        for number, row in enumerate(read_rows(self.path, self.hub, self.subset, self.revision, self.split), start=1):
            name = field(row, self.id, number)
            choices = [field(row, key, number).strip() for key in (self.right, *self.wrong)]
            order = random.Random(f"{self.shuffle_seed} {name}").sample(range(len(choices)), len(choices))
            lines = [f"({letter}) {choices[place]}" for letter, place in zip(LETTERS, order, strict=True)]
            text = "\n".join([field(row, self.question, number).strip(), "", *lines])
            problems.append(Problem(name, self.prompt.replace("{problem}", text), LETTERS[order.index(0)]))
        check(problems, self.name, self.count, self.answer)
        return problems
