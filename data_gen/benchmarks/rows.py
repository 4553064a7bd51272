"""What a row of a benchmark holds."""

from typing import Any

from data_gen.records import HALF_CHARACTER
from zoomr.errors import UserError


def field(row: dict[str, Any], name: str, number: int) -> str:
    """Read a field of a row.

    Parameters
    ----------
    row : dict
        The row.
    name : str
        The field.
    number : int
        Number of the row, for the message.

    Returns
    -------
    str
        Its value as text; numbers are written as Python writes them.

    Raises
    ------
    UserError
        When the row has no such field, or something else than text or a number in it; names the field and the row.
    """
    if name not in row:
        raise UserError(f"benchmark.path: row {number} has no field {name!r} (it has {', '.join(map(repr, row))}).")
    value = row[name]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UserError(f"benchmark.path: row {number} has {value!r:.40} in {name!r}: text or a number is needed.")
    text = str(value)
    if HALF_CHARACTER.search(text):
        raise UserError(f"benchmark.path: row {number} has half of a surrogate pair in {name!r}.")
    return text
