"""What the worlds have in common whose problems are drawn: problems with worked thoughts, splits, rows."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

Value = Literal["last", "anywhere"]  # where in its paragraph a value stands


@dataclass(frozen=True)
class LookUp:
    """A place of the thoughts at which a value is read that an earlier paragraph found.

    Attributes
    ----------
    paragraph, needs : int
        The paragraph it stands in, and the one that found the value.
    start, stop : int
        The value's characters in the paragraph, half-open.
    """

    paragraph: int
    needs: int
    start: int
    stop: int


class Problem(Protocol):
    """A problem whose solution is known.

    Attributes
    ----------
    question, answer : str
        What the user says, and what belongs into the box.
    paragraphs : list of str
        The thoughts.
    dependencies : tuple of int or None
        For every paragraph, the one whose value it looks up.
    look_ups : list of LookUp
        What the thoughts look up, in their order; at most one a paragraph.
    response : str
        The assistant's turn without summaries: the paragraphs, a blank line between two, in a thought's delimiters.
    """

    @property
    def question(self) -> str: ...  # noqa: D102
    @property
    def answer(self) -> str: ...  # noqa: D102
    @property
    def paragraphs(self) -> list[str]: ...  # noqa: D102
    @property
    def dependencies(self) -> tuple[int | None, ...]: ...  # noqa: D102
    @property
    def look_ups(self) -> list[LookUp]: ...  # noqa: D102
    @property
    def response(self) -> str: ...  # noqa: D102


P = TypeVar("P", bound=Problem, covariant=True)


@dataclass(frozen=True)
class World(Generic[P]):
    """A kind of problem.

    Attributes
    ----------
    name : str
        Its name; part of every random stream.
    system : str
        The system prompt of its problems.
    draw : callable
        Draws a problem of a length, its values last in their paragraphs or anywhere.
    summarize : callable
        The teacher's rule: a paragraph's summary. Raises ValueError for text that is none of this world's paragraphs.
    files : tuple of Path
        What the problems are made from: other rules make other problems.
    """

    name: str
    system: str
    draw: Callable[[random.Random, int, Value], P]
    summarize: Callable[[str], str]
    files: tuple[Path, ...]

    def problems(
        self, split: str, count: int, lengths: list[int], seed: int = 0, value: Value = "last"
    ) -> Iterator[tuple[str, P]]:
        """Draw `count` problems of a split, their lengths in turn from `lengths`.

        Every split has random streams of its own, and two problems are the same only if all that is drawn agrees; a
        split's problem is known by its id.

        Parameters
        ----------
        split : str
            "train", "validation" or "test".
        count : int
            Number of problems.
        lengths : list of int
            Numbers of entries or people, used in turn.
        seed : int
            Seed of the whole world.
        value : str
            "last": a paragraph ends with the value that it found. "anywhere": other text may follow it.

        Yields
        ------
        tuple of str and Problem
            The id, such as `test-000012`, and the problem.
        """
        for index in range(count):
            problem_id = f"{split}-{index:06d}"
            rng = random.Random(f"{self.name} {seed} {problem_id}")
            yield problem_id, self.draw(rng, lengths[index % len(lengths)], value)

    def rows(self, split: str, count: int, lengths: list[int], seed: int = 0, value: Value = "last") -> Iterator[dict]:
        """Yield problems and thoughts in the schema of Bespoke-Stratos-17k, with an `id` and the `answer`."""
        for problem_id, problem in self.problems(split, count, lengths, seed, value):
            yield {
                "id": problem_id,
                "system": self.system,
                "conversations": [
                    {"from": "user", "value": problem.question},
                    {"from": "assistant", "value": problem.response},
                ],
                "answer": problem.answer,
            }
