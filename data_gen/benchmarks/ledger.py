"""The micro world's test split, drawn here or read from a file."""

from dataclasses import dataclass

from data_gen.benchmarks.problem import Problem, check
from data_gen.benchmarks.rows import field, read_rows


@dataclass(frozen=True)
class LedgerBenchmark:
    """Ledger problems with an integer answer.

    Attributes
    ----------
    name : str
        Name of the benchmark.
    lengths : list of int
        Numbers of entries, used in turn.
    count : int
        Number of problems to draw.
    seed : int
        Seed of the world; the test split never shares a problem with training.
    path : str or None
        A JSON Lines file with the fields id, system, user and answer, in place of drawn problems.
    samples : int
        Samples a problem where generation is sampled.
    """

    name: str
    lengths: list[int]
    count: int
    seed: int = 0
    path: str | None = None
    samples: int = 1
    answer: str = "integer"

    def load(self) -> list[Problem]:
        """Return the problems in order."""
        if self.path is not None:
            rows = read_rows(self.path, "", None, "", "")
            problems = [
                Problem(field(row, "id", n), field(row, "user", n), field(row, "answer", n), field(row, "system", n))
                for n, row in enumerate(rows, start=1)
            ]
        else:
            from data_gen.ledger.world import SYSTEM
            from data_gen.ledger.world import problems as draw_problems

            problems = [
                Problem(name, problem.question, problem.answer, SYSTEM, problem.dependencies)
                for name, problem in draw_problems("test", self.count, list(self.lengths), self.seed)
            ]
        check(problems, self.name, None, self.answer)
        return problems
