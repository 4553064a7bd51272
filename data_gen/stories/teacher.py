"""What a teacher says of a story's paragraph: whose number it found, and from whose; the number stays in it."""

import re
from collections.abc import Iterator

from data_gen.stories.wording import PEOPLE, WORDING, say

NUMBER = re.compile(r"\(\d+\) ")  # of the fact that a paragraph works out


def summarize_paragraph(paragraph: str) -> str:
    """Return the summary of a paragraph, such as `Anna's number, more than Ben's`.

    Raises
    ------
    ValueError
        If the paragraph follows no template of wording.yaml.
    """
    text = NUMBER.sub("", paragraph, count=1)
    for pattern, summary in RULES:
        if found := pattern.match(text):
            return say(summary, found.groupdict())
    raise ValueError(f"not a paragraph of a story: {paragraph[:60]!r}")


def _rules() -> Iterator[tuple[re.Pattern[str], str]]:
    """A pattern for every thought, and what its summary says."""
    for kind in (*WORDING["relations"].values(), *WORDING["questions"].values()):
        for phrasing in kind["phrasings"]:
            for person, thought, summary in zip(PEOPLE, phrasing["thoughts"], kind["summaries"], strict=False):
                ways = "|".join(_pattern(way["recall"].replace("{B}", f"{{{person}}}")) for way in WORDING["recalls"])
                whole = _pattern(thought).replace("{recall}", f"(?:{ways})")
                yield re.compile(_name_people(whole)), summary


def _pattern(template: str) -> str:
    """The regular expression of a template, its look-up and its people still open."""
    text = re.sub(r"\\\{(recall|[A-C])\\\}", r"{\1}", re.escape(template))
    return re.sub(r"\\\{(\w+)\\\}", lambda slot: r"\d+" if len(slot[1]) == 1 else "[a-z]+", text)


def _name_people(pattern: str) -> str:
    """Each person's first place becomes a group, later places repeat it."""
    for person in sorted(set(re.findall(r"\{([A-C])\}", pattern))):
        pattern = pattern.replace(f"{{{person}}}", f"(?P<{person}>[A-Z][a-z]+)", 1)
        pattern = pattern.replace(f"{{{person}}}", f"(?P={person})")
    return pattern


RULES = list(_rules())
