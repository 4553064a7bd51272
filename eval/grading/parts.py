"""An answer cut at its outermost commas: lists, sets, tuples, matrices."""

import re
from dataclasses import dataclass

from eval.grading.brackets import closes_at_end, cut
from eval.grading.names import assignment, in_order_of_names, is_name
from eval.grading.units import apart

_AND_OR = re.compile(r",? ?(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])|;| & ")
_ONE_BRACKET = re.compile(r"[(\[][^()\[\]]*[)\]]|\\?\{[^{}]*\}|\\begin.*")
MATRICES = ("column", "row", "matrix")
_MATRIX = re.compile(r"[(\[]? ?\\begin\{([bBpvV]?matrix|array)\}(?:\{[lcr|]*\})?((?:(?!\\begin).)*)\\end\{\1\} ?[)\]]?")


@dataclass(frozen=True)
class Parts:
    """Members of an answer and the brackets around them: "" for a bare list, "{}" for a set, "()", "[)" and so on.

    The rows of a matrix are tuples; a matrix of one column or one row is its entries.
    """

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
    if value and is_name(name.strip()) and _ONE_BRACKET.fullmatch(value.strip()):
        text = value.strip()
    if match := _MATRIX.fullmatch(text):
        return _matrix(match[2])
    if re.fullmatch(r"(?:\([^()]*,[^()]*\) ?){2,}", text):
        text = text.replace(")", "),")
    if match := re.fullmatch(r"\\?\{((?:[^{}\\]|\\[A-Za-z]+|\{[^{}]*\})*)\\?\}", text):
        return Parts(_expand(_split(match[1])), "{}")
    if match := re.fullmatch(r"[A-Z]?([(\[].*[)\]])", text):
        inner = match[1]
        members = _split(inner[1:-1]) if closes_at_end(inner) else []
        if len(members) > 1:
            return Parts(members, inner[0] + inner[-1])
    comma = _comma(text)
    groups = [_filled(cut(group, comma)) for group in _filled(cut(apart(text), _AND_OR))]
    if len(groups) > 1 and all(len(group) > 1 and all(assignment(member) for member in group) for group in groups):
        return Parts([f"({', '.join(in_order_of_names(group))})" for group in groups])
    return Parts(_expand([member for group in groups for member in group]))


def _matrix(body: str) -> Parts:
    rows = [[cell.strip() for cell in row.split("&")] for row in body.split("\\\\") if row.strip()]
    if all(len(row) == 1 for row in rows):
        return Parts([row[0] for row in rows], "column")
    return Parts(rows[0], "row") if len(rows) == 1 else Parts([f"({', '.join(row)})" for row in rows], "matrix")


def _split(text: str) -> list[str]:
    comma = _comma(text)
    return [member for group in _filled(cut(text, _AND_OR)) for member in _filled(cut(group, comma))]


def _comma(text: str) -> re.Pattern[str]:
    """Beside wider commas or a unit, 12,500 is one number; in 1,200 alone nobody can tell, and see `compare`."""
    return re.compile(",") if re.fullmatch(r"[\d,.+-]*", text) else re.compile(r"(?<!\d),|,(?!\d{3}(?!\d))")


def _filled(parts: list[str]) -> list[str]:
    return [part for part in parts if part]


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
