"""Summaries of a finished summarize run, read trace by trace through an index of file offsets."""

import json
from array import array
from pathlib import Path


class Summaries:
    """Joins summaries to traces by trace id and paragraph index, in whatever order they lie.

    Parameters
    ----------
    path : Path
        summaries.jsonl.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offsets: dict[str, array[int]] = {}
        offset = 0
        with open(path, "rb") as file:
            for line in file:
                self._offsets.setdefault(json.loads(line)["trace"], array("q")).append(offset)
                offset += len(line)
        self._file = open(path, "rb")
        self.unused = len(self)

    def __len__(self) -> int:
        return sum(len(offsets) for offsets in self._offsets.values())

    def of(self, trace_id: str, paragraphs: int) -> dict[int, str]:
        """Return index -> summary for a trace; rows beyond its paragraphs are ignored and stay counted in `unused`."""
        found: dict[int, str] = {}
        for offset in self._offsets.get(trace_id, ()):
            self._file.seek(offset)
            row = json.loads(self._file.readline())
            if 0 <= row["paragraph"] < paragraphs and row["paragraph"] not in found:
                found[row["paragraph"]] = row["summary"]
        self.unused -= len(found)
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()
