"""Rows of a benchmark: from a local JSON Lines file, or from the hub at a pinned revision."""

from typing import Any

from data_gen.records import HALF_CHARACTER
from pipeline import iterate_rows
from zoomr.errors import UserError


def read_rows(path: str | None, hub: str, subset: str | None, revision: str, split: str) -> list[dict[str, Any]]:
    """Load the rows of a benchmark.

    Parameters
    ----------
    path : str or None
        A JSON Lines file; None takes the data set from the hub.
    hub, subset, revision, split : str
        Where the data set lies on the hub.

    Returns
    -------
    list of dict
        The rows, in file order.

    Raises
    ------
    UserError
        When the file is missing or not JSON Lines, or the hub cannot be reached or refuses; names benchmark.path.
    """
    if path is not None:
        return list(iterate_rows(path, "benchmark.path"))
    import huggingface_hub
    from datasets import load_dataset

    # Its retries would be said before our own sentence.
    huggingface_hub.logging.set_verbosity_error()

    try:
        return [dict(row) for row in load_dataset(hub, subset, revision=revision, split=split)]
    except Exception as error:
        raise UserError(
            f"Cannot load {hub} from the hub ({type(error).__name__}): set benchmark.path to a local JSON Lines copy."
        ) from error


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
