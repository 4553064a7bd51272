"""Benchmarks that are a table of problems and answers: MATH500, AIME, GSM8K."""

from dataclasses import dataclass
from typing import Any

from data_gen.benchmarks.problem import Problem
from data_gen.benchmarks.rows import field
from data_gen.benchmarks.table import Table


@dataclass(frozen=True, kw_only=True)
class MathTable(Table):
    """Problems with a mathematical answer, integer or math; an empty ``id`` numbers the rows.

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

    def problem_of(self, row: dict[str, Any], number: int) -> Problem:
        """See `Table.problem_of`."""
        gold = field(row, self.gold, number)
        if self.gold_after:
            gold = gold.rpartition(self.gold_after)[2]
        name = field(row, self.id, number) if self.id else f"{self.name}-{number:04d}"
        text = self.prompt.replace("{problem}", field(row, self.problem, number).strip())
        return Problem(name, text, gold.strip())
