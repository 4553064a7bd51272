"""Equality of two answers of the kind `math`: part by part, with algebra for what has no parts."""

import re
from collections.abc import Callable

from eval.grading.choices import marked_letter
from eval.grading.dress import undress
from eval.grading.intervals import interval
from eval.grading.numbers import is_grouped, same_number
from eval.grading.parts import Parts, assignment, in_order_of_names, last_side, read_parts
from eval.grading.symbolic import expression_verdict, symbolic_verdict
from eval.grading.units import read_quantity

Algebra = Callable[[str, str], bool | None]
_WORDS = re.compile(r"[A-Za-z][A-Za-z'-]*(?: [A-Za-z][A-Za-z'-]*)*")
_ARTICLE = re.compile(r"^(?:an?|the) (?=\w{3})")
_TIME = re.compile(r"\d+(?: ?: ?\d+)+")
_BRACKETED = re.compile(r"[(\[].*,.*[)\]]")


def math_verdict(gold: str, answer: str) -> bool | None:
    """Compare with algebra. It runs in a worker: nothing in here bounds its time.

    Returns
    -------
    bool or None
        Equal or not; None when one of the two cannot be read.
    """
    return symbolic_verdict(gold, answer) if is_prose(answer) or is_prose(gold) else compare(gold, answer, expression_verdict)


def is_prose(text: str) -> bool:
    """Whether a text is a sentence with its math between delimiters, and not an answer alone."""
    inner = text.strip().strip("$")
    return "\n" in inner or bool(re.search(r"\$|\\\(|\\\[", inner)) or len(re.findall(r"(?<!\\)\b[A-Za-z]{2,}\b", inner)) > 6


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
    letters = marked_letter(ours), marked_letter(theirs)
    if any(letters) and all(letter or re.fullmatch("[A-Za-z]", text) for letter, text in zip(letters, (ours, theirs), strict=True)):
        return (letters[0] or ours.upper()) == (letters[1] or theirs.upper())
    return _whole(ours, theirs, algebra)


def _whole(ours: str, theirs: str, algebra: Algebra) -> bool | None:
    if _compact(ours) == _compact(theirs):
        return True
    equal = same_number(ours, theirs)
    if equal is not None and "," not in ours + theirs:
        return equal
    if equal is True:
        return True
    left, right = read_parts(ours), read_parts(theirs)
    if len(left.members) != len(right.members):
        left, right = (Parts([text.replace(",", "")]) if is_grouped(text) else parts for text, parts in ((ours, left), (theirs, right)))
    if "\\cup" in ours + theirs or interval(ours) or interval(theirs) or _is_union(left) or _is_union(right):
        return _intervals(ours, theirs, left, right, algebra)
    if len(left.members) == 1 and len(right.members) == 1:
        return _single(left.members[0], right.members[0], algebra)
    return _members(left, right, algebra)


def _compact(text: str) -> str:
    return text.replace(" ", "")


def _members(left: Parts, right: Parts, algebra: Algebra) -> bool | None:
    """Sets and bare lists in any order, with repeated members counted; tuples in theirs, with their brackets."""
    ours, theirs = left.members, right.members
    kinds = {left.brackets, right.brackets}
    if kinds & {"[]", "[)", "(]"} and len(kinds) > 1:
        return False
    if kinds == {"{}", "()"}:
        return False
    if "{}" in kinds:
        ours, theirs = (_distinct(p.members) if p.brackets == "{}" else p.members for p in (left, right))
    if len(ours) != len(theirs):
        return False
    named = all(assignment(member) for member in ours)
    if left.brackets not in ("", "{}") or (named and right.brackets == "()"):
        pairs = zip(in_order_of_names(ours), in_order_of_names(theirs), strict=True)
        return _all(_whole(mine, other, algebra) for mine, other in pairs)
    return _matched(ours, theirs, lambda a, b: _whole(a, b, algebra))


def _distinct(members: list[str]) -> list[str]:
    kept: list[str] = []
    for member in members:
        if not any(_compact(member) == _compact(other) or same_number(member, other) for other in kept):
            kept.append(member)
    return kept


def _all(verdicts: "object") -> bool | None:
    unknown = False
    for verdict in verdicts:  # type: ignore[attr-defined]
        if verdict is False:
            return False
        unknown |= verdict is None
    return None if unknown else True


def _matched(ours: list[str], theirs: list[str], equal: Algebra) -> bool | None:
    """Whether each member finds one of its own on the other side."""
    rest, unknown = list(theirs), False
    for mine in ours:
        verdicts = []
        for other in rest:
            verdicts.append(equal(mine, other))
            if verdicts[-1]:
                break
        if verdicts and verdicts[-1]:
            rest.pop(len(verdicts) - 1)
        elif None in verdicts:
            unknown = True
        else:
            return False
    return None if unknown else True


def _is_union(parts: Parts) -> bool:
    return len(parts.members) > 1 and all(interval(member) for member in parts.members)


def _intervals(ours: str, theirs: str, left: Parts, right: Parts, algebra: Algebra) -> bool | None:
    pieces = [_pieces(text, parts) for text, parts in ((ours, left), (theirs, right))]
    if pieces[0] and pieces[1] and len(pieces[0]) == len(pieces[1]):
        equal = _matched(pieces[0], pieces[1], lambda a, b: _members(read_parts(a), read_parts(b), algebra))
        if equal is not False:
            return equal
    unions = [" \\cup ".join(found) if found else text for found, text in zip(pieces, (ours, theirs), strict=True)]
    same_form = (interval(ours) is None) == (interval(theirs) is None)
    if len(left.members) > 1 and len(right.members) > 1 and same_form and not pieces[0] and not pieces[1]:
        return _members(left, right, algebra)
    if bool(pieces[0]) != bool(pieces[1]) and len(left.members) != len(right.members):
        return False
    return algebra(ours, theirs) if same_form else algebra(*unions)


def _pieces(text: str, parts: Parts) -> list[str]:
    """Intervals of a union, empty where a part is none."""
    text = re.sub(r"^\\?[A-Za-z]+ ?\\in ?", "", text)
    texts = parts.members if len(parts.members) > 1 and not parts.brackets else [text]
    found = [piece.strip() for member in texts for piece in (interval(member) or member).split("\\cup")]
    return found if all(_BRACKETED.fullmatch(piece) for piece in found) else []


def _single(ours: str, theirs: str, algebra: Algebra) -> bool | None:
    """Two answers without parts: quantities, words, assignments, expressions."""
    left, right = assignment(ours), assignment(theirs)
    if left and right:
        if left[0] != right[0] and all(re.fullmatch(r"\\?[a-z]+(?:_\w)?", name) and name != "y" for name in (left[0], right[0])):
            return False
        return _whole(left[1], right[1], algebra)
    if right and last_side(ours) is None:
        return _whole(ours, right[1], algebra)
    if left and last_side(theirs) is None:
        return _whole(left[1], theirs, algebra)
    if last_side(ours) is None and (side := last_side(theirs)) is not None:
        return _whole(ours, side, algebra)
    if last_side(theirs) is None and last_side(ours) is not None:
        return _whole(last_side(ours) or "", theirs, algebra) if not re.search(r"[A-Za-z]", re.sub(r"\\[A-Za-z]+", "", ours)) else False
    gold, answer = read_quantity(ours), read_quantity(theirs)
    if not gold.agrees(answer):
        return False
    if (gold.base is None) != (answer.base is None):
        return _compact(gold.text if gold.base else ours).lower() == _compact(answer.text if answer.base else theirs).lower()
    equal = same_number(gold.text, answer.text)
    if equal is not None:
        return equal
    if _compact(gold.text) == _compact(answer.text):
        return True
    return _unlike(gold.text, answer.text, algebra)


def _unlike(ours: str, theirs: str, algebra: Algebra) -> bool | None:
    ours, theirs = (re.sub(r"^(\d+) to (\d+)$", r"\1:\2", text) for text in (ours, theirs))
    if _TIME.fullmatch(ours) and _TIME.fullmatch(theirs):
        return _compact(ours) == _compact(theirs)
    if ours.lower() == theirs.lower() and re.fullmatch("[A-Za-z]{2,}", ours):
        return True
    if _WORDS.fullmatch(ours) and _WORDS.fullmatch(theirs) and (len(ours) > 3 or len(theirs) > 3):
        return _ARTICLE.sub("", ours.lower()) == _ARTICLE.sub("", theirs.lower())
    if re.fullmatch(r"(\d+)[a-z]", theirs) and same_number(ours, theirs[:-1]) and read_quantity(f"{theirs[:-1]} {theirs[-1]}").unit:
        return True
    return algebra(ours, theirs)
