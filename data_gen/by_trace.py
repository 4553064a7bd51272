"""Rows of a stage's file, found by their trace."""

import json
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class ByTrace:
    """Finds rows in whatever order they lie; memory holds their places alone.

    Parameters
    ----------
    path : Path
        A JSON Lines file whose rows have the field `trace`.
    """

    def __init__(self, path: Path) -> None:
        self._places: dict[str, array[int]] = {}
        self._file = open(path, "rb")
        place = 0
        for line in self._file:
            self._places.setdefault(json.loads(line)["trace"], array("q")).append(place)
            place += len(line)

    def __len__(self) -> int:
        return sum(map(len, self._places.values()))

    def of(self, trace: str) -> Iterator[dict[str, Any]]:
        """Iterate over the rows of a trace, in the order of the file."""
        for place in self._places.get(trace, ()):
            self._file.seek(place)
            yield json.loads(self._file.readline())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
