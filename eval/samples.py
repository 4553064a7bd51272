"""What eval.generate has left on the disk: cells, each in one directory or in those of its shards."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline import fingerprint, read_manifest, read_rows
from zoomr.errors import UserError

SAMPLES = "samples.jsonl"  # in a run's directory, a row a sample
VARIES = ("tokens_per_s", "trace")  # what may differ between two generations of one sample


@dataclass(frozen=True)
class GeneratedCell:
    """The runs of one cell: of the whole, of its shards, or of both.

    Attributes
    ----------
    manifests : dict of Path to dict
        By directory, in the order of their names.
    """

    manifests: dict[Path, dict[str, Any]]

    @property
    def directories(self) -> list[Path]:
        """Where the samples lie."""
        return list(self.manifests)

    @property
    def first(self) -> dict[str, Any]:
        """One of the manifests: they agree in all but the shard and in when they ran."""
        return next(iter(self.manifests.values()))

    @property
    def settings(self) -> dict[str, Any]:
        """What shaped the samples."""
        return {key: value for key, value in self.first["settings"].items() if key != "shard"}

    @property
    def checkpoint(self) -> str | None:
        """Digest of the checkpoint; None for a hub id, which its revision stands for."""
        return self.first["inputs"].get("checkpoint", {}).get("sha256")

    @property
    def missing(self) -> list[str]:
        """The shards that are still to finish: empty where the whole has finished, or all of n shards have."""
        finished = self._finished()
        if "1/1" in finished:
            return []
        count = max((int(shard.partition("/")[2]) for shard in finished), default=1)
        return [shard for shard in (f"{n}/{count}" for n in range(1, count + 1)) if shard not in finished]

    def mean(self, name: str) -> float:
        """Mean over the problems of a finished cell of one of the counts that its manifests have."""
        finished = self._finished()
        whole = {"1/1": finished["1/1"]} if "1/1" in finished else finished
        counts = [manifest["counts"] for manifest in whole.values()]
        return sum(each[name] * each["problems"] for each in counts) / sum(each["problems"] for each in counts)

    def _finished(self) -> dict[str, dict[str, Any]]:
        return {m["settings"]["shard"] or "1/1": m for m in self.manifests.values() if m["ended"]}


def generated_cells(generated: Path) -> list[GeneratedCell]:
    """The cells under the directory of the generate stage; those without a sample are left out."""
    cells: dict[str, dict[Path, dict[str, Any]]] = {}
    for path in sorted(generated.glob(f"*/{SAMPLES}")):
        if path.stat().st_size == 0:
            continue
        manifest = read_manifest(path.parent)
        identity = {
            "settings": {key: value for key, value in manifest["settings"].items() if key != "shard"},
            "inputs": {name: entry["sha256"] for name, entry in manifest["inputs"].items()},
        }
        cells.setdefault(fingerprint(identity), {})[path.parent] = manifest
    return [GeneratedCell(manifests) for manifests in cells.values()]


def read_samples(directories: Iterable[Path]) -> list[dict[str, Any]]:
    """Return each sample of a cell once, however often its shards and its whole run have generated it.

    Parameters
    ----------
    directories : iterable of Path
        Runs of eval.generate that belong to one cell.

    Raises
    ------
    UserError
        When two rows of one problem and sample differ; names their files.
    """
    return unique_rows(directory / SAMPLES for directory in directories)


def unique_rows(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the rows of files of one cell, each problem and sample once; raises as `read_samples` does."""
    kept: dict[tuple[str, int], tuple[dict[str, Any], Path]] = {}
    for path in files:
        for row in read_rows(path):
            first, origin = kept.setdefault((row["problem"], row["sample"]), (row, path))
            if _content(first) != _content(row):
                raise UserError(
                    f"Sample {row['sample']} of problem {row['problem']} differs between {origin} and {path}: "
                    "no cell has both; remove the directory that is not wanted."
                )
    return [row for row, _ in kept.values()]


def _content(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in VARIES}
