"""A section of report.html: titled parts, and where its numbers come from.

To add one: write a module with a function ``section`` and name it in eval/report.py. It is given what it reads (the
compared cells, or the directory of a stage, and results/paper.yaml) and the directory ``results``, where its figure and
its tables go; it returns `not_run` where there is nothing to read. Its title begins with the paper's name of the table
or figure, where it has one.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from eval.reporting.cells import ScoredCell
from eval.reporting.names import benchmark_title
from pipeline import read_manifest


@dataclass(frozen=True)
class Link:
    """A text that leads to an anchor of the page."""

    text: str
    anchor: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Mark:
    """A verdict: its text, and the class that colours it."""

    text: str
    mark: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    kind: ClassVar[str] = "heading"
    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph; a soft one is a note to what follows, a path leads to a file beside the page."""

    kind: ClassVar[str] = "text"
    text: str
    soft: bool = False
    path: str = ""


@dataclass(frozen=True)
class Table:
    """Rows with equal keys, the column titles; a value may be a Link."""

    kind: ClassVar[str] = "table"
    rows: Sequence[dict[str, Any]]

    @property
    def shared(self) -> dict[str, str]:
        """Benchmark and model where all of several rows agree: these stand above the table, once."""
        found = {key: {str(row[key]) for row in self.rows} for key in ("benchmark", "model") if key in self.rows[0]}
        return {key: values.pop() for key, values in found.items() if len(self.rows) > 1 and len(values) == 1}


@dataclass(frozen=True)
class Figure:
    """An SVG file with its caption."""

    kind: ClassVar[str] = "figure"
    svg: Path
    caption: str


@dataclass(frozen=True)
class Sources:
    """What the numbers above come from."""

    kind: ClassVar[str] = "sources"
    links: Sequence[Link]


@dataclass(frozen=True)
class Answer:
    """A question, the sentence that answers it, and the word for how it is answered, which colours it."""

    kind: ClassVar[str] = "answer"
    question: str
    sentence: str
    answer: str
    links: Sequence[Link] = ()


Part = Heading | Text | Table | Figure | Sources | Answer


@dataclass(frozen=True)
class Origin:
    """What made some numbers.

    Attributes
    ----------
    anchor, name : str
        Where it stands on the page, and how it is called there.
    command, commit : str
        What was run, and on which state of the code.
    settings : dict
        The settings that shaped the numbers.
    """

    anchor: str
    name: str
    command: str
    commit: str
    settings: dict[str, Any]

    @classmethod
    def of_cell(cls, cell: ScoredCell) -> "Origin":
        """The origin of a cell's numbers."""
        name, summary = f"{benchmark_title(cell.benchmark)}, {cell.model_title}, {cell.title}", cell.summary
        return cls(cell_link(cell).anchor, name, summary["command"], summary["commit"], summary["settings"])

    @classmethod
    def of_run(cls, directory: Path, name: str) -> "Origin":
        """The origin of what a stage left in a directory."""
        manifest = read_manifest(directory)
        anchor = f"{manifest['stage']}-{directory.name}"
        return cls(anchor, name, manifest["command"], manifest["commit"], manifest["settings"])

    @property
    def link(self) -> Link:
        """A link that has the origin's name."""
        return Link(self.name, self.anchor)

    @property
    def text(self) -> str:
        """Command, commit and settings."""
        return f"{self.command}\ncommit {self.commit}\n" + json.dumps(self.settings, indent=2, sort_keys=True)


@dataclass(frozen=True)
class Section:
    """A titled part of the page.

    Attributes
    ----------
    anchor, title : str
        Its id in the page; its heading and its entry in the table of contents.
    parts : sequence of Part
        What is in it; empty where nothing was run.
    origins : sequence of Origin
        Where its numbers come from, beyond the cells.
    command : str
        Of a section that was not run, the command that would make its numbers.
    """

    anchor: str
    title: str
    parts: Sequence[Part] = ()
    origins: Sequence[Origin] = ()
    command: str = ""


def not_run(anchor: str, title: str, command: str) -> Section:
    """A section without numbers: one line at the end of the page."""
    return Section(anchor, title, command=command)


def cell_link(cell: ScoredCell, text: str = "") -> Link:
    """A text, the cell's title by default, that leads to what made the cell."""
    return Link(text or cell.title, f"cell-{cell.directory.name}")


def sources(cells: Iterable[ScoredCell]) -> Sources:
    """The cells that numbers come from."""
    return Sources([cell_link(cell) for cell in cells])


def newest_run(stage: Path, name: str) -> tuple[Path | None, str]:
    """The run of a stage that a section speaks of, and a note on runs that it does not.

    Parameters
    ----------
    stage : Path
        The directory of the stage.
    name : str
        What the names of its runs begin with; ``*`` is any.

    Returns
    -------
    tuple of Path or None and str
        The finished run that ended last, and a sentence that names unfinished ones that were started after it; empty
        where there are none.
    """
    runs = {path.parent: read_manifest(path.parent) for path in sorted(stage.glob(f"{name}-*/manifest.json"))}
    finished = {path: manifest["ended"] for path, manifest in runs.items() if manifest["ended"]}
    newest = max(finished, key=lambda path: (finished[path], path.name), default=None)
    begun = [
        path.name
        for path, manifest in runs.items()
        if not manifest["ended"] and (newest is None or manifest["started"] >= runs[newest]["started"])
    ]
    return newest, f"Not finished, and left out: {', '.join(begun)}." if begun else ""
