"""The ledger: problems whose solution is a chain of small sums, each of which needs a value found paragraphs ago.

A problem lists accounts, each with a two-letter code: the first with a value, every other as an earlier account plus a
number. It asks for one of them. The reasoning works through the lines, one paragraph each. Values appear in the
reasoning only, so a step must look back to the paragraph that found the value it starts from, and the answer hangs on
the asked account's ancestors. Sums are kept to two digits, as a mechanical ledger would, and checked by subtraction,
so that most of a paragraph is work that no later one needs.

    Line D=15 D for tom: du above ada. See ada: ke#74 it is.
    4+5=09.
    7+1+0=08.
    09-5=4.
    08-1-0=7.
    So D for tom: du#89 it is.

A look-up takes two steps: the name gives the code, which the problem, the paragraph and its summary all say, and the
code gives the value, which paragraphs alone say. So the name is where a summary is found and the digits are why its
paragraph is needed.
"""

import random
from dataclasses import dataclass
from pathlib import Path

from data_gen.ledger.teacher import summarize_paragraph
from data_gen.world import LookUp, Value, World

NAMES = tuple(
    "ada amy ann ben bob cal dan dee don eli eva fay flo gil gus hal ian ida ike ina jan jay jim jon joy kay ken kim "
    "kit lee len leo liz lou mae max meg mel mia nan nat ned nia ora pam pat peg ray rex rob ron roy sal sam sid sue "
    "tad ted tim tom una val vic wes yan zoe".split()
)
CODES = tuple(consonant + vowel for consonant in "bdfgjklmnprtvz" for vowel in "aeiou")
LABELS = tuple(first + second for first in ("", "A", "B") for second in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")[:66]
SYSTEM = "You keep a ledger. Think step by step and box the result."
QUESTION_PREFIX = r"Return your final response within \boxed{}. "
MODULUS = 100
CHECKS = 2  # lines of a paragraph that come after its sums


@dataclass(frozen=True)
class Entry:
    """One line of a ledger.

    Attributes
    ----------
    name, code : str
        The account's name and its code.
    parent : int or None
        Index of the entry that it starts from; None for the first, whose value is given.
    addend : int
        What is added to the parent's value, or the given value.
    value : int
        The entry's value, 0 to 99.
    """

    name: str
    code: str
    parent: int | None
    addend: int
    value: int


@dataclass(frozen=True)
class Problem:
    """A ledger with its thoughts.

    Attributes
    ----------
    entries : tuple of Entry
    asked : int
        Index of the entry that it asks for.
    label : int
        Index of its first line's label.
    lines_after : tuple of int
        For every entry, how many lines of its paragraph follow the one that says its value; empty: none. Beyond its
        checks it is the entry's own line, said once more.
    """

    entries: tuple[Entry, ...]
    asked: int
    label: int = 0
    lines_after: tuple[int, ...] = ()

    @property
    def question(self) -> str:
        """The user's text."""
        return f"{QUESTION_PREFIX}Ledger: {'; '.join(self.lines)}."

    @property
    def answer(self) -> str:
        """The asked value, two digits."""
        return f"{self.entries[self.asked].value:02d}"

    @property
    def lines(self) -> list[str]:
        """The ledger's lines: `A=74 A for ada: ke above zero`, `B=15 B for tom: du above ada`, `C=? value of tom: du`.

        The label is said again, so that a name is looked up right after it.
        """
        lines = []
        for label, entry in zip(self.labels, self.entries, strict=False):
            start = "zero" if entry.parent is None else self.entries[entry.parent].name
            lines.append(f"{label}={entry.addend:02d} {label} for {entry.name}: {entry.code} above {start}")
        asked = self.entries[self.asked]
        return [*lines, f"{self.labels[len(lines)]}=? value of {asked.name}: {asked.code}"]

    @property
    def labels(self) -> tuple[str, ...]:
        """The lines' labels; the last is that of the question."""
        return LABELS[self.label : self.label + len(self.entries) + 1]

    @property
    def dependencies(self) -> tuple[int | None, ...]:
        """For every paragraph of the reasoning, the paragraph whose value it looks up."""
        return (*(entry.parent for entry in self.entries), self.asked)

    @property
    def look_ups(self) -> list[LookUp]:
        """Where the paragraphs look up a value."""
        found = []
        for index, (paragraph, needs) in enumerate(zip(self.paragraphs, self.dependencies, strict=True)):
            if needs is not None:
                stop = paragraph.index(self._fact(needs)) + len(self._fact(needs))
                found.append(LookUp(index, needs, stop - 2, stop))
        return found

    @property
    def paragraphs(self) -> list[str]:
        """The reasoning: one paragraph a line; the last recalls the asked value."""
        return [self._work(index, line) for index, line in enumerate(self.lines)]

    def _work(self, index: int, line: str) -> str:
        text = f"Line {line}."
        start = self.dependencies[index]
        if start is not None:
            text += f" See {self._fact(start)} it is."
        if index == len(self.entries):
            return text
        work = [] if start is None else column_sums(self.entries[start].value, self.entries[index].addend)
        after = self.lines_after[index] if self.lines_after else 0
        if after > (CHECKS if work else 0):
            work.append(f"Line {line}.")
        work.insert(len(work) - min(after, len(work)), f"So {self.labels[index]} for {self._fact(index)} it is.")
        return "\n".join([text, *work])

    def _fact(self, index: int) -> str:
        entry = self.entries[index]
        return f"{entry.name}: {entry.code}#{entry.value:02d}"

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


def column_sums(left: int, right: int) -> list[str]:
    """Add two numbers of two digits column by column, from the last one; then check both sums by subtraction."""
    sums, checks, carry = [], [], None
    for power in (1, 10):
        first, *others = [left // power % 10, right // power % 10] + ([] if carry is None else [carry])
        total = first + sum(others)
        sums.append(f"{'+'.join(map(str, [first, *others]))}={total:02d}.")
        checks.append(f"{'-'.join([f'{total:02d}', *map(str, others)])}={first}.")
        carry = total // 10
    return sums + checks


def draw(rng: random.Random, length: int, value: Value = "last") -> Problem:
    """Draw a problem with `length` entries, from 2 to 65.

    A ledger may be a page of a longer one: its labels start anywhere. An entry never starts from the one right before
    it where it can choose, so that a value is needed again only after at least one other paragraph; the asked entry is
    never the last.
    """
    entries: list[Entry] = []
    accounts = zip(rng.sample(NAMES, length), rng.sample(CODES, length), strict=True)
    for index, (name, code) in enumerate(accounts):
        parent = None if index == 0 else rng.randrange(max(1, index - 1))
        addend = rng.randrange(MODULUS)
        found = addend if parent is None else (entries[parent].value + addend) % MODULUS
        entries.append(Entry(name, code, parent, addend, found))
    asked = rng.randrange(length // 2, length - 1) if length > 2 else 0
    label = rng.randrange(len(LABELS) - length)
    # Drawn last, so that the ledger is the same wherever its values stand.
    lines_after = tuple(rng.randint(0, CHECKS + 1) for _ in entries) if value == "anywhere" else ()
    return Problem(tuple(entries), asked, label, lines_after)


LEDGER = World("ledger", SYSTEM, draw, summarize_paragraph, (Path(__file__),))
