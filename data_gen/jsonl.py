"""JSON Lines files that are written whole: a reader sees all rows or no file."""

import errno
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pipeline.files import full_disk


def read_rows(path: str | Path) -> Iterator[dict[str, Any]]:
    """Iterate over the rows of a JSON Lines file, one in memory at a time."""
    with open(path, "rb") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def write_rows(path: str | Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write rows as they come, and give the file its name once all are on the disk.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    UserError
        If the disk is full; an older file of that name is untouched.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
    count = 0
    try:
        with open(partial, "wb") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.errno == errno.ENOSPC:
            raise full_disk(path) from error
        raise
    return count
