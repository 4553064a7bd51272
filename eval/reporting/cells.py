"""The scored cells that a report speaks of, and the JSON that is kept of them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval.reporting.names import KEEPS_PROMPT, look, method_label, method_title, plain_name
from eval.samples import read_samples, unique_rows
from eval.summary import grades, problem_accuracy
from pipeline import fingerprint, read_manifest

SCORES = "scores.jsonl"


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
    ended : str
        When the cell was scored.
    label, title : str
        Its method with its settings, in plain words and for people; no two cells of a model and a benchmark share one.
    """

    summary: dict[str, Any]
    accuracy: dict[str, float]
    directory: Path
    ended: str = ""
    label: str = ""
    title: str = ""

    @property
    def method(self) -> str:
        """Name of the method; whether it keeps the prompt is a setting of its policy."""
        return plain_name(self.summary["settings"]["method"]["name"])

    @property
    def policy(self) -> dict[str, Any]:
        """Settings of the method."""
        return dict(self.summary["settings"]["method"]["policy"])

    @property
    def keeps_prompt(self) -> bool:
        """Whether a method with a budget keeps the whole prompt."""
        return bool(self.policy.get(KEEPS_PROMPT))

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

    @property
    def meters(self) -> dict[str, float]:
        """Means over problems of what the samples cost."""
        return dict(self.summary["meters"])

    @property
    def complete(self) -> bool:
        """Whether every sample that the cell asks for was generated and graded."""
        enough = self.summary["n_samples"] >= self.summary["expected_samples"]
        return bool(self.summary.get("complete", True)) and enough

    def scores(self) -> list[dict[str, Any]]:
        """Its graded samples, each once."""
        return unique_rows([self.directory / SCORES])

    def samples(self, generated: Path) -> list[dict[str, Any]]:
        """The generated samples behind it, each once; `generated` is the directory of the generate stage."""
        return read_samples(generated / name for name in self.summary["directories"])


def load_cells(scored: Path, generation: Mapping[str, Any] | None = None) -> list[ScoredCell]:
    """Load the current cells of a preset.

    Parameters
    ----------
    scored : Path
        The directory of the score stage.
    generation : mapping or None
        The composed `generation`, which settles defaults of methods such as the window: titles leave these out.

    Returns
    -------
    list of ScoredCell
        In the order of configs/method. Of cells with equal settings a complete one comes before an incomplete one, then
        what was generated last, then what was scored last; an incomplete cell says so in its title. Cells of a
        checkpoint or of problems that were replaced since are left out, so that no table mixes models.
    """
    best: dict[str, ScoredCell] = {}
    for path in sorted(scored.glob("*/cell.json")):
        if ended := read_manifest(path.parent)["ended"]:
            summary, scores = json.loads(path.read_text()), unique_rows([path.parent / SCORES])
            if summary["n_samples"] > len(scores):  # some samples were counted twice
                summary |= grades(scores)
            cell = ScoredCell(summary, problem_accuracy(scores), path.parent, ended)
            key = fingerprint(_asked(cell))
            best[key] = max(cell, best.get(key, cell), key=_standing)
    newest: dict[str, ScoredCell] = {}
    for cell in best.values():
        model = json.dumps(cell.model)
        newest[model] = max(cell, newest.get(model, cell), key=_standing)
    current = [
        cell
        for cell in best.values()
        if cell.summary["checkpoint"] == newest[json.dumps(cell.model)].summary["checkpoint"]
    ]
    return sorted(_named(current, generation or {}), key=_order)


def matching(cells: list[ScoredCell], settings: dict[str, Any]) -> list[ScoredCell]:
    """Cells whose generation settings, seed and limit are those of the report: only these are compared."""
    return [cell for cell in cells if all(cell.summary["settings"][key] == value for key, value in settings.items())]


def groups(cells: Iterable[ScoredCell]) -> dict[tuple[str, str], list[ScoredCell]]:
    """Cells by benchmark and model; where a model was fine-tuned, only those of the fine-tuned one."""
    found: dict[tuple[str, str], list[ScoredCell]] = {}
    for cell in sorted(cells, key=lambda cell: (cell.benchmark, cell.model["name"])):
        found.setdefault((cell.benchmark, cell.model["name"]), []).append(cell)
    return {key: [cell for cell in here if cell.model["checkpoint"] == "export"] or here for key, here in found.items()}


def saving(cell: ScoredCell, cells: Iterable[ScoredCell]) -> float | None:
    """How many times fewer tokens a cell holds at its peak than the full cache does on the same problems.

    The numerator is the full cache's own answer for every method, so that an answer that stops early gains nothing.
    None where the full cache was not run.
    """
    for full in cells:
        if full.method == "full" and (full.benchmark, full.model) == (cell.benchmark, cell.model) and full.complete:
            return full.meters["active_tokens_peak"] / cell.meters["active_tokens_peak"]
    return None


def cell_row(cell: ScoredCell, compared: Iterable[ScoredCell]) -> dict[str, Any]:
    """What is kept of a cell: what it is, its accuracy with a 95% interval, shares of outcomes, means over problems.

    Parameters
    ----------
    cell : ScoredCell
    compared : iterable of ScoredCell
        Cells with the same generation settings, that of the full cache among them.
    """
    summary, meters = cell.summary, cell.meters
    count = summary["n_samples"]
    kept = ("n_problems", "n_samples", "expected_samples", "accuracy", "ci_low", "ci_high", "majority")
    shares = ("repetition_share", "balanced_share", "summarised_share")
    means = ("generated_tokens", "seen_tokens", "refreshes", "forced_refreshes", "summaries")
    return {
        "preset": summary["preset"],
        "model": cell.model["name"],
        "checkpoint": cell.model["checkpoint"],
        "benchmark": cell.benchmark,
        "method": cell.label,
        "title": cell.title,
        "settings": summary["settings"],
        "complete": cell.complete,
        **{key: summary[key] for key in kept},
        **{f"{key}_share": summary["statuses"][key] / count for key in ("truncated", "unparsed", "grader_error")},
        **{key: summary.get(key) for key in shares},
        **{f"{key}_mean": meters[key] for key in means},
        **{key: meters[key] for key in ("active_tokens_mean", "active_tokens_peak", "tokens_per_s")},
        "full_peak_over_peak": saving(cell, compared),
        "budget": summary["settings"].get("budget"),
        "commit": summary["commit"],
    }


def _asked(cell: ScoredCell) -> dict[str, Any]:
    """Settings of a cell without what the files behind them held at the time."""
    settings = cell.summary["settings"]
    own = {key: value for key, value in settings.items() if key != "budget"}
    return own | {"benchmark": settings["benchmark"]["name"]}


def _standing(cell: ScoredCell) -> tuple[Any, ...]:
    return cell.complete, cell.summary["started"], cell.ended, cell.directory.name


def _order(cell: ScoredCell) -> tuple[Any, ...]:
    return cell.benchmark, json.dumps(cell.model), look(cell.method).order, cell.label, cell.directory.name


def _named(cells: list[ScoredCell], generation: Mapping[str, Any]) -> list[ScoredCell]:
    """Give each cell its label and its title; what else differs among cells of one name is added to it."""
    named = []
    for cell in cells:
        s = cell.summary
        kept = "" if cell.complete else f", incomplete: {s['n_samples']} of {s['expected_samples']} samples"
        policy, method = cell.policy, s["settings"]["method"]["name"]
        named.append(
            replace(cell, label=method_label(method, policy), title=method_title(method, policy, generation) + kept)
        )
    for name in ("label", "title"):
        alike: dict[tuple[str, ...], list[ScoredCell]] = {}
        for cell in named:
            alike.setdefault((cell.benchmark, cell.model_title, getattr(cell, name)), []).append(cell)
        added = {
            id(cell): words for same in alike.values() for cell, words in zip(same, _differences(same), strict=True)
        }
        named = [replace(cell, **{name: getattr(cell, name) + added[id(cell)]}) for cell in named]
    return named


def _differences(cells: list[ScoredCell]) -> list[str]:
    flat = [dict(_leaves(_asked(cell))) for cell in cells]
    keys = sorted({key for one in flat for key in one if any(one.get(key) != other.get(key) for other in flat)})
    return [", ".join(["", *(f"{key}={one.get(key)}" for key in keys)]) for one in flat]


def _leaves(value: Any, name: str = "") -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else key)
    else:
        yield name, value
