"""Word problems in plain English, drawn from a seed: who has how much, each step told in terms of earlier ones."""

import random
from dataclasses import dataclass

from data_gen.benchmarks.problem import Problem, check

NAMES = ("Ada", "Ben", "Cara", "Dan", "Eve", "Finn", "Gita", "Hugo", "Ines", "Jack", "Kira", "Liam", "Mona", "Nils")
THINGS = ("apples", "books", "coins", "marbles", "pencils", "shells", "stamps", "stickers")
LARGEST = 200


@dataclass(frozen=True)
class WordProblems:
    """Problems whose late steps need details of early ones.

    Each person's number follows from one or two people drawn among all before; the question adds the last person's
    number to that of one of the first three.

    Attributes
    ----------
    name : str
        Name of the benchmark.
    people : list of int
        Numbers of people, used in turn; from 4 to 14.
    count : int
        Number of problems to draw.
    prompt : str
        What the user says; ``{problem}`` stands for the problem.
    seed : int
        Seed of the draw.
    samples : int
        Samples a problem where generation is sampled.
    """

    name: str
    people: list[int]
    count: int
    prompt: str
    seed: int = 0
    samples: int = 1
    answer: str = "integer"

    def load(self) -> list[Problem]:
        """Return the problems in order."""
        problems = []
        for number in range(self.count):
            text, answer = draw(random.Random(f"{self.seed} {number}"), self.people[number % len(self.people)])
            user = self.prompt.replace("{problem}", text)
            problems.append(Problem(f"{self.name}-{number:04d}", user, str(answer)))
        check(problems, self.name, self.count, self.answer)
        return problems


def draw(generator: random.Random, people: int) -> tuple[str, int]:
    """Draw one problem; returns its text and its answer."""
    names, thing = generator.sample(NAMES, people), generator.choice(THINGS)
    owned: dict[str, int] = {}
    sentences = []
    for name in names:
        sentence, owned[name] = step(generator, name, thing, owned)
        sentences.append(sentence)
    early, last = generator.choice(names[:3]), names[-1]
    question = f"How many {thing} do {early} and {last} have together?"
    return " ".join([*sentences, question]), owned[early] + owned[last]


def step(generator: random.Random, name: str, thing: str, owned: dict[str, int]) -> tuple[str, int]:
    """Tell what `name` has in terms of what others have; the first has a number of their own."""
    amount = generator.randint(2, 12)
    if not owned:
        return f"{name} has {amount} {thing}.", amount
    other = generator.choice(list(owned))
    ways = [(f"{name} has {amount} more {thing} than {other}.", owned[other] + amount)]
    if owned[other] > amount:
        ways.append((f"{name} has {amount} fewer {thing} than {other}.", owned[other] - amount))
    if 2 * owned[other] <= LARGEST:
        ways.append((f"{name} has twice as many {thing} as {other}.", 2 * owned[other]))
    if len(owned) > 1:
        one, two = generator.sample(list(owned), 2)
        if owned[one] + owned[two] <= LARGEST:
            ways.append((f"{name} has as many {thing} as {one} and {two} together.", owned[one] + owned[two]))
    return generator.choice(ways)
