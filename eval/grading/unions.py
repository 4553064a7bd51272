"""Equality of intervals, of their unions, and of the inequalities that mean them."""

import re

from eval.grading.equality import Algebra, matched
from eval.grading.intervals import interval
from eval.grading.parts import Parts

_INTERVAL = re.compile(r"[(\[].*,.*[)\]]")
_RELATION = re.compile(r"[<>]|\\[lg]e(?![a-z])")


def are_unions(ours: str, theirs: str, left: Parts, right: Parts) -> bool:
    """Whether one of two plain texts is an inequality, several of them, or a union."""
    several = any(len(side.members) > 1 and all(interval(member) for member in side.members) for side in (left, right))
    return several or "\\cup" in ours + theirs or interval(ours) is not None or interval(theirs) is not None


def compare_unions(ours: str, theirs: str, left: Parts, right: Parts, whole: Algebra, algebra: Algebra) -> bool | None:
    """Compare piece by piece where both have pieces, else through algebra with inequalities written as intervals."""
    pieces = _pieces(ours, left), _pieces(theirs, right)
    if pieces[0] and len(pieces[0]) == len(pieces[1]) and (equal := matched(*pieces, whole)) is not False:
        return equal
    if bool(pieces[0]) != bool(pieces[1]) and len(left.members) != len(right.members):
        return False
    if all(_RELATION.search(text) for text in (ours, theirs)):
        return algebra(ours, theirs)
    return algebra(*(" \\cup ".join(found) or text for found, text in zip(pieces, (ours, theirs), strict=True)))


def _pieces(text: str, parts: Parts) -> list[str]:
    """Intervals of a union, none where a part is something else."""
    texts = parts.members if len(parts.members) > 1 and not parts.brackets else [text]
    found = [piece.strip() for member in texts for piece in (interval(member) or member).split("\\cup")]
    return found if all(_INTERVAL.fullmatch(piece) for piece in found) else []
