"""Reading and writing of JSON Lines files that are finished."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from zoomr.runs import write_atomic


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSON Lines file; a half-written last line counts as not there."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1]]


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write a JSON Lines file, whole or not at all."""
    write_atomic(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write an indented JSON file, whole or not at all."""
    write_atomic(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
