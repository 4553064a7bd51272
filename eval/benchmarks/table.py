"""Benchmarks that are a table of problems and answers: MATH500, AIME, GSM8K."""

from dataclasses import dataclass

from eval.benchmarks.problem import Problem, check
from eval.benchmarks.rows import field, read_rows


@dataclass(frozen=True)
class MathTable:
    """Problems with a mathematical answer.

    Attributes
    ----------
    name, answer : str
        Name, and kind of answer: integer or math.
    problem, gold, id : str
        Fields of a row; an empty ``id`` numbers the rows.
    gold_after : str
        The gold is what follows the last occurrence of this mark; empty takes the field whole.
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
    problem: str
    gold: str
    id: str
    prompt: str
    hub: str
    revision: str
    split: str
    subset: str | None = None
    gold_after: str = ""
    count: int | None = None
    path: str | None = None
    samples: int = 1

    def load(self) -> list[Problem]:
        """Return the problems in file order; refuses a copy of the wrong size."""
        problems = []
        for number, row in enumerate(read_rows(self.path, self.hub, self.subset, self.revision, self.split), start=1):
            gold = field(row, self.gold, number)
            if self.gold_after:
                gold = gold.rpartition(self.gold_after)[2]
            name = field(row, self.id, number) if self.id else f"{self.name}-{number:04d}"
            text = self.prompt.replace("{problem}", field(row, self.problem, number).strip())
            problems.append(Problem(name, text, gold.strip()))
        check(problems, self.name, self.count, self.answer)
        return problems
