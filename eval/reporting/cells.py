"""The scored cells that a report speaks of."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.summary import problem_accuracy
from pipeline import fingerprint, read_manifest, read_rows

METHODS = (
    "full",
    "zoomr",
    "sumr",
    "streaming_llm",
    "h2o",
    "random_attention",
    "random_zoom",
    "recency_zoom",
    "oracle_zoom",
    "given_zoom",
)


@dataclass(frozen=True)
class ScoredCell:
    """A cell with its accuracy per problem.

    Attributes
    ----------
    summary : dict
        What eval.score wrote.
    accuracy : dict of str to float
        Share of correct samples per problem.
    directory : Path
        Where the scores lie.
    """

    summary: dict[str, Any]
    accuracy: dict[str, float]
    directory: Path

    @property
    def label(self) -> str:
        """Name of the method with its settings."""
        return str(self.summary["label"])

    @property
    def method(self) -> str:
        """Name of the method; whether it keeps the prompt is a setting of its policy."""
        return str(self.summary["settings"]["method"]["name"]).removesuffix("_prompt")

    @property
    def policy(self) -> dict[str, Any]:
        """Settings of the method."""
        return dict(self.summary["settings"]["method"]["policy"])

    @property
    def benchmark(self) -> str:
        """Name of the benchmark."""
        return str(self.summary["settings"]["benchmark"]["name"])

    @property
    def model(self) -> dict[str, Any]:
        """Name and kind of checkpoint."""
        return dict(self.summary["settings"]["model"])

    @property
    def model_title(self) -> str:
        """Name of the model for people; the one without fine-tuning is told apart."""
        return self.model["name"] + (" (base)" if self.model["checkpoint"] == "base" else "")


def load_cells(scored: Path) -> list[ScoredCell]:
    """Load the current cells of a preset.

    Parameters
    ----------
    scored : Path
        The directory of the score stage.

    Returns
    -------
    list of ScoredCell
        In the order of METHODS. Of cells with equal settings the newest counts; cells of a checkpoint or of problems
        that were replaced since are left out, so that no table mixes models.
    """
    newest: dict[str, ScoredCell] = {}
    for path in sorted(scored.glob("*/cell.json")):
        if read_manifest(path.parent)["ended"]:
            cell = ScoredCell(
                json.loads(path.read_text()), problem_accuracy(read_rows(path.parent / "scores.jsonl")), path.parent
            )
            key = fingerprint({"settings": _without_contents(cell.summary["settings"])})
            if key not in newest or _age(newest[key]) <= _age(cell):
                newest[key] = cell
    checkpoints: dict[str, ScoredCell] = {}
    for cell in newest.values():
        name = json.dumps(cell.model)
        if name not in checkpoints or _age(checkpoints[name]) <= _age(cell):
            checkpoints[name] = cell
    current = [
        cell
        for cell in newest.values()
        if cell.summary["checkpoint"] == checkpoints[json.dumps(cell.model)].summary["checkpoint"]
    ]
    return sorted(current, key=_order)


def matching(cells: list[ScoredCell], settings: dict[str, Any]) -> list[ScoredCell]:
    """Cells whose generation settings, seed and limit are those of the report: only these are compared."""
    return [cell for cell in cells if all(cell.summary["settings"][key] == value for key, value in settings.items())]


def _without_contents(settings: dict[str, Any]) -> dict[str, Any]:
    benchmark = {key: settings["benchmark"][key] for key in ("name",)}
    return {key: value for key, value in settings.items() if key != "budget"} | {"benchmark": benchmark}


def _age(cell: ScoredCell) -> tuple[str, str]:
    return cell.summary["started"], cell.directory.name


def _order(cell: ScoredCell) -> tuple[Any, ...]:
    place = METHODS.index(cell.method) if cell.method in METHODS else len(METHODS)
    return cell.benchmark, json.dumps(cell.model), place, cell.label, cell.directory.name
