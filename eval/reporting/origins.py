"""Where each number comes from: the command, the commit and the settings, folded, with an anchor to point at."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.reporting import html
from eval.reporting.cells import ScoredCell
from eval.reporting.sections import Section
from eval.reporting.table1 import BENCHMARKS, title
from pipeline import read_manifest


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


def latest_run(runs: Path, name: str) -> Path | None:
    """The finished run of that name that ended last."""
    ended = {path.parent: read_manifest(path.parent)["ended"] for path in runs.glob(f"{name}-*/manifest.json")}
    return max((path for path in ended if ended[path]), key=lambda path: ended[path], default=None)


def of_cell(cell: ScoredCell) -> Origin:
    """The origin of a cell's numbers."""
    name = f"{BENCHMARKS.get(cell.benchmark, cell.benchmark)}, {cell.model_title}, {title(cell)}"
    summary = cell.summary
    return Origin(anchor(cell), name, summary["command"], summary["commit"], summary["settings"])


def of_manifest(name: str, anchor: str, manifest: dict[str, Any]) -> Origin:
    """The origin of what another stage left."""
    return Origin(anchor, name, manifest["command"], manifest["commit"], manifest["settings"])


def anchor(cell: ScoredCell) -> str:
    """The anchor of a cell's origin."""
    return f"cell-{cell.directory.name}"


def link(cell: ScoredCell, text: str) -> html.Link:
    """A text that leads to what made the cell."""
    return html.Link(text, anchor(cell))


def section(origins: list[Origin]) -> Section:
    """Every origin, folded."""
    blocks = [
        html.details(
            origin.anchor,
            origin.name,
            f"{origin.command}\ncommit {origin.commit}\n" + json.dumps(origin.settings, indent=2, sort_keys=True),
        )
        for origin in origins
    ]
    return Section("cells", "Where each number comes from", "".join(blocks))
