"""Draws stories: who has how much, and in what words it is told."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from data_gen.stories.story import Step, Story
from data_gen.stories.wording import PEOPLE, WORDING, Slots, say
from data_gen.world import Value

SMALLEST, LARGEST = 2, 50  # numbers that somebody has: small models add larger ones wrongly


@dataclass(frozen=True)
class Kind:
    """How a number follows from others.

    Attributes
    ----------
    share : int
        How often it is drawn, in proportion to the others.
    operands : int
        People whose numbers it takes.
    number : callable
        The number, from two that are told, m and n, and those of the operands; 0 where it does not go.
    """

    share: int
    operands: int
    number: Callable[..., int]


RELATIONS = {
    "start": Kind(2, 0, lambda m, n: m + n),
    "more": Kind(6, 1, lambda m, n, b: b + n),
    "fewer": Kind(6, 1, lambda m, n, b: b - n),
    "twice": Kind(2, 1, lambda m, n, b: 2 * b),
    "half": Kind(2, 1, lambda m, n, b: 0 if b % 2 else b // 2),
    "twice_more": Kind(1, 1, lambda m, n, b: 2 * b + n),
    "twice_less": Kind(1, 1, lambda m, n, b: 2 * b - n),
    "together": Kind(3, 2, lambda m, n, b, c: b + c),
}
QUESTIONS = {
    "one": Kind(2, 1, lambda m, n, b: b),
    "sum": Kind(1, 2, lambda m, n, b, c: b + c),
    "difference": Kind(1, 2, lambda m, n, b, c: b - c),
}


def draw(rng: random.Random, length: int, value: Value = "last") -> Story:
    """Draw a story of `length` people, from 2 to 42.

    A number is never needed right after it was found where there is a choice. The question is about people of the last
    half, where more had to be right before them, except the very last.
    """
    scene, way = rng.choice(WORDING["scenes"]), rng.choice(WORDING["recalls"])
    names = rng.sample(WORDING["names"], length)
    common = scene | {"things": rng.choice(scene["things"])}
    numbers: list[int] = []
    facts = []
    for index in range(length):
        before = range(max(min(1, index), index - 1))
        fact = _draw_step(rng, "relations", RELATIONS, before, names, numbers, common | {"A": names[index]})
        facts.append(fact)
        numbers.append(int(fact.slots["a"]))
    late = range(max(0, min(length // 2, length - 3)), length - 1)
    asked = _draw_step(rng, "questions", QUESTIONS, late, names, numbers, common)
    distractors = [(rng.randrange(length), _distractor(rng, names)) for _ in range(rng.randint(0, length // 3))]
    return Story(f"{scene['opening']} {way['sign']}", way["recall"], tuple(facts), asked, tuple(distractors), value)


def _draw_step(
    rng: random.Random,
    section: str,
    kinds: dict[str, Kind],
    before: range,
    names: list[str],
    numbers: list[int],
    slots: Slots,
) -> Step:
    possible = [name for name, kind in kinds.items() if kind.operands <= len(before)]
    while True:
        name = rng.choices(possible, [kinds[name].share for name in possible])[0]
        operands = tuple(rng.sample(before, kinds[name].operands))
        m, n = rng.randint(5, 20), rng.randint(2, 9)
        values = [numbers[operand] for operand in operands]
        number = kinds[name].number(m, n, *values)
        if SMALLEST <= number <= LARGEST:
            break
    people = dict(zip(PEOPLE, (names[operand] for operand in operands), strict=False))
    known = dict(zip(PEOPLE.lower(), values, strict=False))
    filled = slots | people | known | {"a": number, "m": m, "n": n, "d": 2 * known.get("b", 0)}
    return Step(rng.choice(WORDING[section][name]["phrasings"]), operands, filled)


def _distractor(rng: random.Random, names: list[str]) -> str:
    first, second = rng.sample(names, 2)
    return say(rng.choice(WORDING["distractors"]), {"A": first, "B": second, "n": rng.randint(2, 40)})
