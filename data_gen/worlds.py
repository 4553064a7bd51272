"""The worlds by name."""

from typing import get_args

from data_gen.ledger import LEDGER
from data_gen.stories import STORIES
from data_gen.world import Value, World
from zoomr.errors import UserError

WORLDS: dict[str, World] = {world.name: world for world in (LEDGER, STORIES)}


def world_of(name: str, setting: str) -> World:
    """Return the world of a name.

    Raises
    ------
    UserError
        If there is none; names the setting.
    """
    if name not in WORLDS:
        raise UserError(f"{setting}={name} must be one of {', '.join(WORLDS)}.")
    return WORLDS[name]


def check_value(value: str, setting: str) -> None:
    """Refuse a place for values that no world knows; names the setting."""
    if value not in get_args(Value):
        raise UserError(f"{setting}={value} must be one of {', '.join(get_args(Value))}.")
