"""Where raw rows come from: the Hugging Face hub, a local file, or one of the project's own worlds."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from data_gen.hub import load_from_hub
from data_gen.world import Value
from data_gen.worlds import check_value, world_of
from pipeline import iterate_rows
from zoomr.errors import UserError

Row = dict[str, Any]
FILE_TYPES = (".jsonl", ".json", ".parquet")


class Source(Protocol):
    """Rows in one of the public schemas (`data_gen.records`).

    Attributes
    ----------
    file : Path or None
        The local file that they come from.
    inputs : dict of str to Path
        Files whose content decides what the rows are.
    commit : str or None
        Commit of the hub's dataset, known once its rows are read.
    count : int or None
        Number of rows, known once they are read.
    """

    file: Path | None
    inputs: dict[str, Path]
    commit: str | None
    count: int | None

    def rows(self) -> Iterable[Row]:
        """Iterate over the rows, one in memory at a time."""
        ...


@dataclass
class Published:
    """A dataset on the hub, or a local copy of one.

    Attributes
    ----------
    path : str or None
        Hub id, or a file: JSON Lines, a JSON array or Parquet; None is refused.
    revision : str or None
        Commit, tag or branch on the hub; a local file has none.
    split : str
        Split on the hub.
    """

    path: str | None
    revision: str | None = None
    split: str = "train"
    commit: str | None = field(default=None, init=False)
    count: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.path is None:
            raise UserError("dataset.path is not set: give a JSON Lines or Parquet file, or a hub id.")

    @property
    def inputs(self) -> dict[str, Path]:
        """The local file, if there is one; the hub's content is known by its commit."""
        return {"dataset.path": self.file} if self.file else {}

    @property
    def file(self) -> Path | None:
        """The local file, None for a hub id."""
        path = Path(str(self.path))
        return path if path.exists() or path.suffix in FILE_TYPES else None

    def rows(self) -> Iterator[Row]:
        """Iterate over the rows.

        Raises
        ------
        UserError
            If the file is missing or of another type, or the hub does not answer; names `dataset.path`.
        """
        if self.file is None:
            yield from self._hub_rows()
        elif not self.file.is_file():
            raise UserError(f"dataset.path={self.path} does not exist.")
        elif self.file.suffix == ".parquet":
            yield from self._parquet_rows(self.file)
        elif self.file.suffix in FILE_TYPES:
            with open(self.file, "rb") as file:
                self.count = sum(line.startswith(b"{") for line in file) or None
            yield from iterate_rows(self.file, "dataset.path")
        else:
            raise UserError(f"dataset.path={self.path} must end in one of {', '.join(FILE_TYPES)}.")

    def _hub_rows(self) -> Iterator[Row]:
        dataset = load_from_hub("dataset", str(self.path), self.revision, self.split)
        self.commit = commit_of(dataset.info.download_checksums or {})
        self.count = len(dataset)
        yield from dataset

    def _parquet_rows(self, path: Path) -> Iterator[Row]:
        import pyarrow.lib
        import pyarrow.parquet

        try:
            table = pyarrow.parquet.ParquetFile(path)
        except pyarrow.lib.ArrowException as error:
            raise UserError(f"dataset.path={path} is not a Parquet file.") from error
        self.count = table.metadata.num_rows
        for batch in table.iter_batches(batch_size=256):
            yield from batch.to_pylist()


def commit_of(files: Iterable[str]) -> str | None:
    """Return the commit in the hub addresses of a dataset's files, `hf://datasets/owner/name@commit/file`."""
    found = (re.search(r"@([0-9a-f]{40})/", name) for name in files)
    return next((match.group(1) for match in found if match), None)


@dataclass(frozen=True)
class Drawn:
    """Rows of one of the project's own worlds, drawn anew at every call and always the same.

    Attributes
    ----------
    world : str
        Name of the world.
    train, validation : int
        Numbers of problems.
    lengths : list of int
        Numbers of entries or people, used in turn.
    value : str
        Where in its paragraph a value stands: "last" or "anywhere".
    seed : int
        Seed of the world.
    """

    world: str
    train: int
    validation: int
    lengths: tuple[int, ...]
    value: Value = "last"
    seed: int = 0
    file: None = None
    commit: None = None

    def __post_init__(self) -> None:
        world_of(self.world, "dataset.source.world")
        check_value(self.value, "dataset.source.value")

    @property
    def inputs(self) -> dict[str, Path]:
        """The world itself: other rules make other rows."""
        return {f"world/{file.name}": file for file in world_of(self.world, "dataset.source.world").files}

    @property
    def count(self) -> int:
        """Number of rows of both splits."""
        return self.train + self.validation

    def rows(self) -> Iterator[Row]:
        """Iterate over the rows of both splits."""
        world = world_of(self.world, "dataset.source.world")
        for split, count in (("train", self.train), ("validation", self.validation)):
            for row in world.rows(split, count, list(self.lengths), self.seed, self.value):
                yield {**row, "split": split}
