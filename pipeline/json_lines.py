"""JSON Lines and JSON files of the stages, written whole or not at all."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pipeline.files import replacing, write_atomic


def to_line(row: dict[str, Any]) -> bytes:
    """A row as a line of UTF-8; half a surrogate pair, which UTF-8 does not know, becomes JSON's escape for it."""
    return json.dumps(row, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"


def iterate_rows(path: str | Path) -> Iterator[dict[str, Any]]:
    """Iterate over the rows of a file; a last line that a kill left half-written counts as not there."""
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield json.loads(line)


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
