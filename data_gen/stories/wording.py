"""The stories' language: templates of wording.yaml, said with names and numbers."""

from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("wording.yaml")
WORDING: dict[str, Any] = yaml.safe_load(FILE.read_text())
PEOPLE = "BC"  # slots of those whose numbers a step looks up, one a thought

Slots = dict[str, str | int]


def say(template: str, slots: Slots) -> str:
    """Return the template with its slots filled in."""
    return template.format_map(slots)


def say_thought(template: str, recall: str, person: str, slots: Slots) -> tuple[str, tuple[int, int] | None]:
    """Return a thought, and where in it the number that it looks up stands.

    Parameters
    ----------
    template : str
        The thought; `{recall}` in it stands for the look-up.
    recall : str
        How a number is looked up, in terms of a person B who has b.
    person : str
        Slot of the one whose number is looked up.
    slots : dict
        People and numbers.

    Returns
    -------
    text : str
    span : tuple of int, or None
        The number's characters in the text, half-open; None where nothing is looked up.
    """
    if "{recall}" not in template:
        return say(template, slots), None
    before = say(template.partition("{recall}")[0], slots)
    looked_up = slots | {"B": slots[person], "b": slots[person.lower()]}
    start = len(before) + len(say(recall.partition("{b}")[0], looked_up))
    text = say(template, slots | {"recall": say(recall, looked_up)})
    return text, (start, start + len(str(looked_up["b"])))
