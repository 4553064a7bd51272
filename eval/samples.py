"""Reading of JSON Lines files that a run has left, and writing of JSON."""

import json
from pathlib import Path
from typing import Any

from pipeline import write_atomic

SAMPLES = "samples.jsonl"  # in a cell's directory, a row a sample


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSON Lines file; a half-written last line counts as not there."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1]]


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write an indented JSON file, whole or not at all."""
    write_atomic(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
