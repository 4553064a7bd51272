"""JSON Lines files that are written whole: a reader sees all rows or no file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.json_lines import write_rows

__all__ = ["read_rows", "write_rows"]


def read_rows(path: str | Path) -> Iterator[dict[str, Any]]:
    """Iterate over the rows of a JSON Lines file, one in memory at a time."""
    with open(path, "rb") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)
