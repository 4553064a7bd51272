"""Equality in three values: equal, not equal, or None where it takes algebra that could not decide."""

from collections.abc import Callable, Iterable, Sequence

Algebra = Callable[[str, str], bool | None]


def compact(text: str) -> str:
    """Return a text without its blanks."""
    return text.replace(" ", "")


def all_equal(verdicts: Iterable[bool | None]) -> bool | None:
    """Equal if all are; the first that is not equal decides."""
    unknown = False
    for verdict in verdicts:
        if verdict is False:
            return False
        unknown |= verdict is None
    return None if unknown else True


def matched(ours: Sequence[str], theirs: Sequence[str], equal: Algebra) -> bool | None:
    """Whether each member finds one of its own on the other side, which has as many."""
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
