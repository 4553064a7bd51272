"""The ledger: problems whose solution is a chain of small sums, each of which needs a value found paragraphs ago.

A problem lists entries, the first with a value, every other as an earlier entry plus a number, and asks for one of
them. The reasoning works through the entries, one paragraph each. Values appear in the reasoning only, so a step must
look back to the paragraph that found the value it starts from, and the answer hangs on the asked entry's ancestors.
Sums are kept to three digits, as a mechanical ledger would.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

NAMES = tuple("ada ben cal dan eva flo gil hal ian jan kim leo max nat ora pat ray sue tom una val wes yan zoe".split())
LABELS = "ABCDEFGHIJKLMNOPQRST"
SYSTEM = "You keep a ledger. Think step by step and box the result."
QUESTION_PREFIX = r"Return your final response within \boxed{}. "
MODULUS = 1000


@dataclass(frozen=True)
class Entry:
    """One line of a ledger.

    Attributes
    ----------
    name : str
        The entry's name.
    parent : int or None
        Index of the entry that it starts from; None for the first, whose value is given.
    addend : int
        What is added to the parent's value, or the given value.
    value : int
        The entry's value, 0 to 999.
    """

    name: str
    parent: int | None
    addend: int
    value: int


@dataclass(frozen=True)
class Problem:
    """A ledger and the index of the entry that it asks for."""

    entries: tuple[Entry, ...]
    asked: int

    @property
    def question(self) -> str:
        """The user's text."""
        lines = [self.line(index) for index in range(len(self.entries))]
        return f"{QUESTION_PREFIX}Ledger: {'; '.join(lines)}. What is {self.entries[self.asked].name}?"

    @property
    def answer(self) -> str:
        """The asked value, three digits."""
        return f"{self.entries[self.asked].value:03d}"

    def line(self, index: int) -> str:
        """An entry as the ledger has it: `A ada=374 above zero` for the first, `C tom=615 above ada` for another."""
        entry = self.entries[index]
        start = "zero" if entry.parent is None else self.entries[entry.parent].name
        return f"{LABELS[index]} {entry.name}={entry.addend:03d} above {start}"

    @property
    def dependencies(self) -> tuple[int | None, ...]:
        """For every paragraph of the reasoning, the paragraph whose value it looks up."""
        return (*(entry.parent for entry in self.entries), self.asked)

    @property
    def paragraphs(self) -> list[str]:
        """The reasoning: one paragraph an entry, and one that recalls the asked value."""
        asked = self.entries[self.asked]
        recall = f"All done. What is {asked.name}? Recall {asked.name}: {asked.name}:{asked.value:03d}."
        return [*(self._work(index) for index in range(len(self.entries))), recall]

    def _work(self, index: int) -> str:
        entry = self.entries[index]
        opening = f"Line {self.line(index)}."
        closing = f"So {entry.name}:{entry.value:03d}."
        if entry.parent is None:
            return f"{opening}\n{closing}"
        parent = self.entries[entry.parent]
        lines = [f"{opening} Recall {parent.name}: {parent.name}:{parent.value:03d}."]
        carry = None
        for power in (1, 10, 100):
            digits = [parent.value // power % 10, entry.addend // power % 10] + ([] if carry is None else [carry])
            lines.append(f"{'+'.join(map(str, digits))}={sum(digits):02d}.")
            carry = sum(digits) // 10
        return "\n".join([*lines, closing])

    @property
    def response(self) -> str:
        """The assistant's text in the format of Bespoke-Stratos-17k, without summaries."""
        asked = self.entries[self.asked].name
        thought = "\n\n".join(self.paragraphs)
        solution = rf"The value of {asked} is \boxed{{{self.answer}}}."
        return (
            f"<|begin_of_thought|>\n\n{thought}\n\n<|end_of_thought|>\n\n"
            f"<|begin_of_solution|>\n\n{solution}\n\n<|end_of_solution|>"
        )


def draw(rng: random.Random, length: int) -> Problem:
    """Draw a problem with `length` entries, at least 2.

    An entry never starts from the one right before it where it can choose, so that a value is needed again only after
    at least one other paragraph; the asked entry is never the last.
    """
    entries: list[Entry] = []
    for index, name in enumerate(rng.sample(NAMES, length)):
        parent = None if index == 0 else rng.randrange(max(1, index - 1))
        addend = rng.randrange(MODULUS)
        value = addend if parent is None else (entries[parent].value + addend) % MODULUS
        entries.append(Entry(name, parent, addend, value))
    return Problem(tuple(entries), asked=rng.randrange(length // 2, length - 1) if length > 2 else 0)


def problems(split: str, count: int, lengths: list[int], seed: int = 0) -> Iterator[tuple[str, Problem]]:
    """Draw `count` problems of a split, their lengths in turn from `lengths`.

    Every split has random streams of its own, and two problems are the same only if all names, numbers and parents
    agree; a split's problem is known by its id.

    Parameters
    ----------
    split : str
        "train", "validation" or "test".
    count : int
        Number of problems.
    lengths : list of int
        Numbers of entries, used in turn.
    seed : int
        Seed of the whole world.

    Yields
    ------
    tuple of str and Problem
        The id, such as `test-000012`, and the problem.
    """
    for index in range(count):
        problem_id = f"{split}-{index:06d}"
        yield problem_id, draw(random.Random(f"ledger {seed} {problem_id}"), lengths[index % len(lengths)])


def rows(split: str, count: int, lengths: list[int], seed: int = 0) -> Iterator[dict]:
    """Yield problems with their reasoning in the schema of Bespoke-Stratos-17k, with an `id` and the `answer`."""
    for problem_id, problem in problems(split, count, lengths, seed):
        yield {
            "id": problem_id,
            "system": SYSTEM,
            "conversations": [
                {"from": "user", "value": problem.question},
                {"from": "assistant", "value": problem.response},
            ],
            "answer": problem.answer,
        }
