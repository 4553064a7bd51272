"""Stories: word problems in plain English, in which most numbers follow from other people's.

A story names a scene and tells, one numbered sentence a person, how many things each has: by numbers of their own, or
in terms of people before them. Sentences that have nothing to do with the question stand in between. The thoughts work
through the numbered ones in turn, one look-up a paragraph, so that a sum of two people's numbers takes two; what
somebody has stands in the thoughts alone. All language is in wording.yaml.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from data_gen.stories.wording import PEOPLE, Slots, say, say_thought
from data_gen.world import LookUp, Value

QUESTION_PREFIX = r"Return your final response within \boxed{}. "


@dataclass(frozen=True)
class Step:
    """A fact of the story, or its question.

    Attributes
    ----------
    phrasing : dict
        What is said and thought of it, from wording.yaml.
    operands : tuple of int
        The people whose numbers are looked up.
    slots : dict
        What the templates are filled with; `a` is the number that is found.
    """

    phrasing: dict[str, Any]
    operands: tuple[int, ...]
    slots: Slots

    def thoughts(self, value: Value) -> list[str]:
        """Templates of its paragraphs; what may follow the number comes last."""
        *first, last = self.phrasing["thoughts"]
        aside = self.phrasing.get("aside") if value == "anywhere" else None
        return [*first, f"{last} {aside}" if aside else last]


@dataclass(frozen=True)
class Story:
    """A word problem with its thoughts.

    Attributes
    ----------
    opening, recall : str
        The scene, with a sentence that tells how the thoughts come back to a number; and that way, a template.
    facts : tuple of Step
        One a person.
    asked : Step
        The question.
    distractors : tuple of (int, str)
        Sentences that do not matter, each after the fact that it follows.
    value : str
        Whether something is said after a number was found ("anywhere") or not ("last").
    """

    opening: str
    recall: str
    facts: tuple[Step, ...]
    asked: Step
    distractors: tuple[tuple[int, str], ...]
    value: Value

    @property
    def question(self) -> str:
        """The user's text."""
        sentences = [self.opening]
        for index, fact in enumerate(self.facts):
            sentences.append(f"({index + 1}) {say(fact.phrasing['fact'], fact.slots)}")
            sentences += [sentence for after, sentence in self.distractors if after == index]
        return QUESTION_PREFIX + " ".join([*sentences, say(self.asked.phrasing["fact"], self.asked.slots)])

    @property
    def answer(self) -> str:
        """The number that is asked for."""
        return str(self.asked.slots["a"])

    @property
    def paragraphs(self) -> list[str]:
        """The thoughts: a paragraph a person, two where two numbers are added; then those of the question."""
        return self._thoughts[0]

    @property
    def dependencies(self) -> tuple[int | None, ...]:
        """For every paragraph, the one that found the number it looks up."""
        needs = {look_up.paragraph: look_up.needs for look_up in self.look_ups}
        return tuple(needs.get(index) for index in range(len(self.paragraphs)))

    @property
    def look_ups(self) -> list[LookUp]:
        """What the thoughts look up."""
        return self._thoughts[1]

    @property
    def response(self) -> str:
        """The assistant's text without summaries."""
        thought = "\n\n".join(self.paragraphs)
        solution = say(self.asked.phrasing["solution"], self.asked.slots | {"box": rf"\boxed{{{self.answer}}}"})
        return f"<think>\n{thought}\n</think>\n\n{solution}"

    @cached_property
    def _thoughts(self) -> tuple[list[str], list[LookUp]]:
        paragraphs: list[str] = []
        look_ups: list[LookUp] = []
        found: list[int] = []  # the paragraph that found each person's number
        for number, step in enumerate((*self.facts, self.asked), start=1):
            first, *others = step.thoughts(self.value)
            thoughts = [first if step is self.asked else f"({number}) {first}", *others]
            for template, person, operand in zip(thoughts, PEOPLE, (*step.operands, 0), strict=False):
                text, span = say_thought(template, self.recall, person, step.slots)
                if span is not None:
                    look_ups.append(LookUp(len(paragraphs), found[operand], *span))
                paragraphs.append(text)
            found.append(len(paragraphs) - 1)
        return paragraphs, look_ups
