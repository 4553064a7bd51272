"""The test split of one of the project's own worlds, drawn here or read from a file."""

from dataclasses import dataclass

from data_gen.benchmarks.problem import Problem, check
from data_gen.benchmarks.rows import field
from data_gen.world import Value
from data_gen.worlds import check_value, world_of
from pipeline import iterate_rows


@dataclass(frozen=True)
class DrawnBenchmark:
    """Problems of a world with an integer answer.

    Attributes
    ----------
    name : str
        Name of the benchmark.
    world : str
        Name of the world.
    lengths : list of int
        Numbers of entries or people, used in turn.
    count : int
        Number of problems to draw.
    value : str
        Where in its paragraph a value stands: "last" or "anywhere".
    seed : int
        Seed of the world; the test split never shares a problem with training.
    path : str or None
        A JSON Lines file with the fields id, system, user and answer, in place of drawn problems.
    samples : int
        Samples a problem where generation is sampled.
    """

    name: str
    world: str
    lengths: list[int]
    count: int
    value: Value = "last"
    seed: int = 0
    path: str | None = None
    samples: int = 1
    answer: str = "integer"

    def load(self) -> list[Problem]:
        """Return the problems in order."""
        if self.path is not None:
            rows = iterate_rows(self.path, "benchmark.path")
            problems = [
                Problem(field(row, "id", n), field(row, "user", n), field(row, "answer", n), field(row, "system", n))
                for n, row in enumerate(rows, start=1)
            ]
        else:
            world = world_of(self.world, "benchmark.world")
            check_value(self.value, "benchmark.value")
            drawn = world.problems("test", self.count, list(self.lengths), self.seed, self.value)
            problems = [
                Problem(name, problem.question, problem.answer, world.system, problem.dependencies)
                for name, problem in drawn
            ]
        check(problems, self.name, None, self.answer)
        return problems
