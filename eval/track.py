"""Send scored cells to W&B, a run a cell, and build the dashboard: python -m eval.track tracker=online push=true.

The cells on disk are the source of truth: this can be run again at any time, and each cell keeps its run id.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig

from eval.dashboard import dashboard, push_dashboard, specification
from eval.reporting.cells import ScoredCell, load_cells, saving
from pipeline import progress, write_json
from pipeline.cli import stage
from zoomr.errors import UserError

SPECIFICATION = "dashboard.json"
COLUMNS = [
    "id",
    "status",
    "gold",
    "answer",
    "reason",
    "generated_tokens",
    "active_tokens_peak",
    "refreshes",
    "text",
]


@stage("eval")
def track_cells(cfg: DictConfig) -> None:
    """Log every current cell and write the dashboard's specification; push it where that is asked for.

    Parameters
    ----------
    cfg : DictConfig
        The composed configuration of configs/eval.yaml.

    Raises
    ------
    UserError
        When there is no scored cell.
    """
    runs = Path(cfg.paths.runs)
    cells = load_cells(runs / "score")
    if not cells:
        raise UserError(f"paths.runs={cfg.paths.runs} holds no scored cells: run `python -m eval.score` first.")
    tracking = instantiate(cfg.tracker)
    for cell in progress(cells, unit="cell", description="tracker"):
        shutil.rmtree(cell.directory / "wandb", ignore_errors=True)  # an earlier offline copy would be synced beside it
        with tracking.start(
            cell.directory, group=f"{cfg.preset.name}-{cell.benchmark}", config=run_config(cell)
        ) as run:
            run.log("eval", 0, figures(cell, cells))
            run.table("samples", list(COLUMNS), sample_rows(cell, runs / "generate", cfg.table_rows))
    workspace = dashboard(cfg.tracker.entity or "", cfg.tracker.project)
    path = runs / SPECIFICATION
    write_json(path, specification(workspace))
    if cfg.push:
        push_dashboard(workspace)
    offline = list(runs.glob("score/*/wandb/offline-run-*"))
    sync = f"wandb sync {runs}/score/*/wandb/offline-run-*"
    print(f"-> {path}   next: {sync if offline else 'open the project on W&B'}")


def run_config(cell: ScoredCell) -> dict[str, Any]:
    """What a run is filtered and grouped by: settings of the cell, plain, and flat where it is filtered."""
    policy = {key: value for key, value in cell.policy.items() if key != "_target_"}
    return {
        "preset": cell.summary["preset"],
        "model": cell.model["name"],
        "benchmark": cell.benchmark,
        "method": cell.method,
        "label": cell.label,
        "settings": cell.summary["settings"],
        "commit": cell.summary["commit"],
    } | policy


def figures(cell: ScoredCell, cells: Sequence[ScoredCell]) -> dict[str, float]:
    """The numbers of a run: accuracy with its interval, shares of outcomes, means of the meters.

    Parameters
    ----------
    cell : ScoredCell
    cells : sequence of ScoredCell
        The preset's, that of the full cache among them, against which the saving is.
    """
    summary = cell.summary
    shares = {f"{status}_share": count / summary["n_samples"] for status, count in summary["statuses"].items()}
    keys = ["accuracy", "ci_low", "ci_high", "majority", "n_problems", "n_samples"]
    keys += ["repetition_share", "balanced_share", "summarised_share"]
    ratio = saving(cell, cells)
    saved = {} if ratio is None else {"full_peak_over_peak": ratio}
    return {key: summary[key] for key in keys} | shares | cell.meters | saved


def sample_rows(cell: ScoredCell, generated: Path, count: int) -> list[list[Any]]:
    """The first samples of a cell with their grades, a value for each of COLUMNS.

    Parameters
    ----------
    cell : ScoredCell
        The cell.
    generated : Path
        The directory of the generate stage.
    count : int
        The most rows.
    """
    scores = {row["id"]: row for row in cell.scores()[:count]}
    samples = cell.samples(generated)
    graded = (sample | scores[sample["id"]] for sample in samples if sample["id"] in scores)
    return [[row[column] for column in COLUMNS] for row in graded]


if __name__ == "__main__":
    track_cells()
