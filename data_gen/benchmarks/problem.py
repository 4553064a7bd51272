"""One problem, what a benchmark offers, and the checks that hold for all of them."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from zoomr.errors import UserError


@dataclass(frozen=True)
class Problem:
    """A problem as the model is asked it.

    Attributes
    ----------
    id, user, gold : str
    system : str or None
        None where the caller chooses the system prompt.
    needs : tuple or None
        For every paragraph of its reasoning the one that it needs, or None, where the benchmark knows them.
    """

    id: str
    user: str
    gold: str
    system: str | None = None
    needs: tuple[int | None, ...] | None = None


class Benchmark(Protocol):
    """A named set of problems and the kind of answer it asks for: integer, letter or math."""

    name: str
    answer: str
    samples: int

    def load(self) -> list[Problem]:
        """Return all problems, in a fixed order."""
        ...


def checksum(problems: Sequence[Problem]) -> str:
    """Digest of the ids, texts and golds.

    Parameters
    ----------
    problems : sequence of Problem
        The problems of a benchmark.

    Returns
    -------
    str
        16 hexadecimal digits, equal for equal problems in equal order.
    """
    texts = [[problem.id, problem.user, problem.gold, problem.system] for problem in problems]
    rows = json.dumps(texts, ensure_ascii=False)
    return hashlib.sha256(rows.encode()).hexdigest()[:16]


def check(problems: Sequence[Problem], name: str, count: int | None, answer: str) -> None:
    """Refuse a damaged copy of a benchmark.

    Parameters
    ----------
    problems : sequence of Problem
        What was loaded.
    name : str
        Name of the benchmark, for the message.
    count : int or None
        Number of problems it must have.
    answer : str
        Kind of answer; ``integer`` golds must be integers.

    Raises
    ------
    UserError
        One sentence naming what is wrong.
    """
    if not problems:
        raise UserError(f"benchmark.path: {name} holds no problems.")
    if count is not None and len(problems) != count:
        raise UserError(f"benchmark.path: {name} has {count} problems, this copy has {len(problems)}.")
    if len({problem.id for problem in problems}) != len(problems):
        raise UserError(f"benchmark.path: {name} has problems with the same id.")
    for problem in problems:
        if not problem.gold.strip():
            raise UserError(f"benchmark.path: problem {problem.id} of {name} has no answer.")
        if answer == "integer" and not problem.gold.strip().lstrip("-").isdecimal():
            raise UserError(f"benchmark.path: {problem.id} of {name} has the answer {problem.gold!r}, not an integer.")
