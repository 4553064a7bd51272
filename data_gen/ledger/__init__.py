"""The micro world: problems, their reasoning, and the rule by which a teacher summarises it."""

from data_gen.ledger.teacher import summarize_paragraph
from data_gen.ledger.world import Problem, draw, problems, rows

__all__ = ["Problem", "draw", "problems", "rows", "summarize_paragraph"]
