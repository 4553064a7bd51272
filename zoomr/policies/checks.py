"""What the settings of a policy may be, said in one sentence when it is made."""

from __future__ import annotations

from typing import Any, get_args

from zoomr.errors import UserError


def whole(policy: Any, least: int, *names: str) -> None:
    """Whole numbers of at least `least`."""
    for name in names:
        value = getattr(policy, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UserError(f"{name}={value}: a whole number of at least {least} is needed.")


def one_of(policy: Any, name: str, kind: Any) -> None:
    """A value of a `Literal`."""
    value, known = getattr(policy, name), get_args(kind)
    if value not in known:
        raise UserError(f"{name}={value}: one of {', '.join(map(str, known))} is needed.")


def flags(policy: Any, *names: str) -> None:
    """True or false."""
    for name in names:
        value = getattr(policy, name)
        if not isinstance(value, bool):
            raise UserError(f"{name}={value}: true or false is needed.")


def share(policy: Any, *names: str) -> None:
    """Numbers from 0 to 1."""
    for name in names:
        value = getattr(policy, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise UserError(f"{name}={value}: a number from 0 to 1 is needed.")
