"""The micro world: problems, their reasoning, and the rule by which a teacher summarises it."""

from data_gen.ledger.teacher import summarize_paragraph
from data_gen.ledger.world import LEDGER, Problem, draw

problems, rows = LEDGER.problems, LEDGER.rows

__all__ = ["LEDGER", "Problem", "draw", "problems", "rows", "summarize_paragraph"]
