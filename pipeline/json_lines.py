"""JSON Lines and JSON files: those of the stages, written whole or not at all, and those that people bring."""

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pipeline.files import replacing, write_atomic
from zoomr.errors import UserError


def to_line(row: dict[str, Any]) -> bytes:
    """A row as a line of UTF-8; half a surrogate pair, which UTF-8 does not know, becomes JSON's escape for it."""
    return json.dumps(row, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"


def iterate_rows(path: str | Path, setting: str | None = None) -> Iterator[dict[str, Any]]:
    """Iterate over the rows of a file, one in memory at a time.

    Lines end with a line feed and nothing else, since JSON may hold any other separator of Unicode as it is.

    Parameters
    ----------
    path : str or Path
        A JSON Lines file.
    setting : str, optional
        The option that names a file from outside. Such a file may start with a byte order mark, end without a line
        feed, or be one JSON array. In a file of a stage, a last line that a kill left half-written counts as not there.

    Raises
    ------
    UserError
        If the file cannot be read, or a line is not UTF-8, not JSON or no object; names the file and the line.
    """
    name = f"{setting}={path}" if setting else str(path)
    try:
        file = open(path, "rb")
    except FileNotFoundError as error:
        raise UserError(f"{name} does not exist.") from error
    except OSError as error:
        raise UserError(f"{name} cannot be read: {error.strerror}.") from error
    with file:
        start = len(BOM_UTF8) if file.read(len(BOM_UTF8)) == BOM_UTF8 else 0
        file.seek(start)
        is_array = setting is not None and file.read(256).lstrip().startswith(b"[")
        file.seek(start)
        if is_array:
            for number, row in enumerate(_parse(file.read(), name), start=1):
                yield _object(row, f"{name}: row {number}")
            return
        for number, line in enumerate(file, start=1):
            if setting is None and not line.endswith(b"\n"):
                return
            if line.strip():
                where = f"{name}: line {number}"
                yield _object(_parse(line, where), where)


def _parse(data: bytes, where: str) -> Any:
    try:
        return json.loads(data.decode())
    except UnicodeDecodeError as error:
        raise UserError(f"{where} is not UTF-8 (byte {data[error.start]:#x}): convert the file to it.") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where} is not JSON.") from error


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{where} is no object with fields but {json.dumps(value)[:40]}.")
    return value


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """Return the rows of a file; a last line that a kill left half-written counts as not there."""
    return list(iterate_rows(path))


def write_rows(path: str | Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write rows as they come, and give the file its name once all are on the disk; returns their number."""
    count = 0
    with replacing(path) as write:
        for row in rows:
            write(to_line(row))
            count += 1
    return count


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write an indented JSON file."""
    write_atomic(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
