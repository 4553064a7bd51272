"""An answer cut at its outermost commas: lists, sets, tuples, assignments."""

import re
from dataclasses import dataclass

from eval.grading.dress import closes_at_end
from eval.grading.units import apart

_AND_OR = re.compile(r",? ?(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])|;| & ")
_ONE_BRACKET = re.compile(r"[(\[{]|\\\{|\\begin")
_COLUMN = re.compile(r"\\begin\{([bp]?matrix|array)\}(?:\{\w\})?([^&]*?)(?:\\\\ ?)?\\end\{\1\}")
_NAME = re.compile(
    r"\\?[A-Za-z]+'?(?: ?_ ?(?:\w|\{[^{}]*\}))?(?: ?\([\w, +-]*\))?|\([^()=]*\)|\|[^|=]*\||(?:\\angle|\\triangle|[A-Za-z ]+) ?[A-Za-z]*|[^=<>\d]*:[^=<>]*"
    r"|\\frac\{[A-Z]+\}\{[A-Z]+\}"
)
_CHAIN = re.compile(r"(?<![<>!:\\])=|\\equiv(?![a-z])|\\approx(?![a-z])")


@dataclass(frozen=True)
class Parts:
    """Members of an answer and the brackets around them: "" for a bare list, "{}" for a set, "()", "[)" and so on."""

    members: list[str]
    brackets: str = ""


def read_parts(text: str) -> Parts:
    """Cut a plain text into its members.

    Returns
    -------
    Parts
        A bare text without commas is a list of one. Signs of plus-minus are written out, so that they are two members;
        where "and", "or" or a semicolon stands between groups of assignments (p = 5, q = 2; p = 7, q = 2), each group
        is a tuple in the order of its names.
    """
    name, _, value = text.partition("=")
    if value and _NAME.fullmatch(name.strip()) and _ONE_BRACKET.match(value.strip()) and closes_at_end(value.strip()):
        text = value.strip()
    if match := _COLUMN.fullmatch(text.removeprefix("(").removesuffix(")").removeprefix("[").removesuffix("]").strip()):
        rows = [row.strip() for row in match[2].split("\\\\")]
        return Parts(rows, "()") if len(rows) > 1 else Parts([text])
    if match := re.fullmatch(r"\\\{(.*)\\\}|\{(.*)\}", text):
        return Parts(_expand(_split(match[1] or match[2] or "")), "{}")
    if match := re.fullmatch(r"[A-Z]?([(\[].*[)\]])", text):
        inner = match[1]
        members = _split(inner[1:-1]) if closes_at_end(inner) else []
        if len(members) > 1:
            return Parts(members, inner[0] + inner[-1])
    text = re.sub(r"(?<=[\w}],)(?=\()|(?<=,[\w}]\))(?=\()", "", text)
    comma = _comma(text)
    groups = [_filled(_cut(group, comma)) for group in _filled(_cut(apart(text), _AND_OR))]
    if len(groups) > 1 and all(len(group) > 1 and all(assignment(member) for member in group) for group in groups):
        return Parts([f"({', '.join(in_order_of_names(group))})" for group in groups])
    return Parts(_expand([member for group in groups for member in group]))


def assignment(text: str) -> tuple[str, str] | None:
    """Name and value of ``x = 5``, also written ``5 = x``; None for anything else, an equation included."""
    sides = [side.strip() for side in _CHAIN.split(text)]
    if len(sides) < 2 or not all(sides[1:]):
        return None
    if _NAME.fullmatch(sides[0]) or not sides[0]:
        return sides[0], sides[-1]
    return (sides[-1], sides[0]) if len(sides) == 2 and re.fullmatch(r"\\?[a-zA-Z]", sides[1]) else None


def last_side(text: str) -> str | None:
    """What stands behind the last sign of equality; None where there is none, or a comparison as well."""
    sides = _CHAIN.split(text)
    return sides[-1].strip() if len(sides) > 1 and not re.search(r"[<>]|\\[lgn]e(?![a-z])", text) else None


def in_order_of_names(members: list[str]) -> list[str]:
    """Values of assignments in the order of their names; other members as they are."""
    named = [assignment(member) for member in members]
    pairs = [pair for pair in named if pair is not None]
    if len(pairs) < len(members) or len({name for name, _ in pairs}) < len(members):
        return members
    return [value for _, value in sorted(pairs)]


def _split(text: str) -> list[str]:
    comma = _comma(text)
    return [member for group in _filled(_cut(text, _AND_OR)) for member in _filled(_cut(group, comma))]


def _comma(text: str) -> re.Pattern[str]:
    """Beside wider commas or a unit, 12,500 is one number; in 1,200 alone nobody can tell, and see `compare`."""
    return re.compile(",") if re.fullmatch(r"[\d,.+-]*", text) else re.compile(r"(?<!\d),|,(?!\d{3}(?!\d))")


def _filled(parts: list[str]) -> list[str]:
    return [part for part in parts if part]


def _cut(text: str, separator: re.Pattern[str]) -> list[str]:
    """Cut at separators outside all brackets."""
    depth, begin, at, parts = 0, 0, 0, []
    while at < len(text):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        match = separator.match(text, at) if depth == 0 else None
        if match and match.end() > at:
            parts.append(text[begin:at].strip())
            begin = at = match.end()
        else:
            at += 1
    return [*parts, text[begin:].strip()]


def _expand(members: list[str]) -> list[str]:
    expanded: list[str] = []
    for member in members:
        if re.search(r"\\[pm][pm](?![a-z])", member):
            for plus, minus in (("+", "-"), ("-", "+")):
                signed = re.sub(r"\\pm(?![a-z])", plus, re.sub(r"\\mp(?![a-z])", minus, member))
                expanded.append(re.sub(r"^(\w+ ?=)? ?\+ ?", r"\1", signed.strip()).strip())
        else:
            expanded.append(member)
    return expanded
