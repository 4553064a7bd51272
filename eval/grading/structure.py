"""Equality of two answers of the kind `math`: part by part, with algebra for what has no parts."""

import re
from functools import partial

from eval.grading.atoms import compare_atoms
from eval.grading.choices import marked_letter
from eval.grading.dress import undress
from eval.grading.equality import Algebra, all_equal, compact, matched
from eval.grading.names import assignment, in_order_of_names
from eval.grading.numbers import is_grouped, same_number
from eval.grading.parts import MATRICES, Parts, read_parts
from eval.grading.unions import are_unions, compare_unions

_TUPLE = re.compile(r"\(.*,.*\)")
_BINOMIAL = re.compile(r"\\binom\{(\w+)\}\{(\w+)\}")


def compare(gold: str, answer: str, algebra: Algebra) -> bool | None:
    """Compare two answers part by part.

    Parameters
    ----------
    gold, answer : str
        Two answers without box.
    algebra : callable
        Decides about two expressions without parts; None where it cannot.

    Returns
    -------
    bool or None
        Equal or not; None when it takes algebra that could not decide.
    """
    ours, theirs = undress(gold), undress(answer)
    left, right = marked_letter(ours), marked_letter(theirs)
    if (left and right) or (left and len(theirs) == 1) or (right and len(ours) == 1):
        return (left or ours.upper()) == (right or theirs.upper())
    return _whole(ours, theirs, algebra)


def _whole(ours: str, theirs: str, algebra: Algebra) -> bool | None:
    """Compare two plain texts, which may have parts."""
    equal = compact(ours) == compact(theirs) or same_number(ours, theirs)
    if equal or (equal is not None and "," not in ours + theirs):
        return equal
    left, right = _parts_of_both(ours, theirs)
    if any("\\begin" in text and parts.brackets not in MATRICES for text, parts in ((ours, left), (theirs, right))):
        return algebra(ours, theirs)
    whole = partial(_whole, algebra=algebra)
    if are_unions(ours, theirs, left, right):
        return compare_unions(ours, theirs, left, right, whole, algebra)
    if len(left.members) == 1 and len(right.members) == 1:
        mine, other = left.members[0], right.members[0]
        inner = (mine, other) != (ours, theirs) and len(mine) + len(other) < len(ours) + len(theirs)
        return whole(mine, other) if inner else _values(mine, other, algebra)
    return _members(left, right, whole)


def _parts_of_both(ours: str, theirs: str) -> tuple[Parts, Parts]:
    """Parts of two texts; what may be read in two ways is read as the other side is."""
    left, right = read_parts(ours), read_parts(theirs)
    if len(left.members) != len(right.members):  # 1,200 is a number, or a list of two
        left = Parts([ours.replace(",", "")]) if is_grouped(ours) else left
        right = Parts([theirs.replace(",", "")]) if is_grouped(theirs) else right
    if "column" in (left.brackets, right.brackets):  # a binomial coefficient, or a vector
        left, right = (
            read_parts(_BINOMIAL.sub(r"\\begin{pmatrix}\1\\\\\2\\end{pmatrix}", text)) if "\\binom" in text else parts
            for text, parts in ((ours, left), (theirs, right))
        )
    return left, right


def _values(ours: str, theirs: str, algebra: Algebra) -> bool | None:
    """Compare texts without parts. The value that one of them names may have parts again."""
    left, right = assignment(ours), assignment(theirs)
    values = left[1] if left else ours, right[1] if right else theirs
    if (left or right) and any(len(read_parts(value).members) > 1 for value in values):
        return _whole(*values, algebra)
    return compare_atoms(ours, theirs, algebra)


def _members(left: Parts, right: Parts, whole: Algebra) -> bool | None:
    """Sets and bare lists in any order, with repeated members counted; tuples in theirs, with their brackets."""
    brackets = {left.brackets, right.brackets}
    if brackets in ({"{}", "()"}, {"column", "row"}) or (len(brackets) > 1 and brackets & {"[]", "[)", "(]"}):
        return False
    ours, theirs = _distinct(left), _distinct(right)
    if len(ours) != len(theirs):
        return False
    if left.brackets not in ("", "{}") or (right.brackets and all(assignment(member) for member in ours)):
        pairs = zip(in_order_of_names(ours), in_order_of_names(theirs), strict=True)
        return all_equal(whole(mine, other) for mine, other in pairs)
    return matched(ours, theirs, whole)


def _distinct(parts: Parts) -> list[str]:
    """Members of a set once; of a list, the points once: a number that stands twice is a root of multiplicity two."""
    points = not parts.brackets and all(_TUPLE.fullmatch(member) for member in parts.members)
    if not points and parts.brackets != "{}":
        return parts.members
    kept: list[str] = []
    for member in parts.members:
        if not any(compact(member) == compact(other) or same_number(member, other) for other in kept):
            kept.append(member)
    return kept
