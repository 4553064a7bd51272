"""Send scored cells to W&B, a run a cell, and build the dashboard: python -m eval.track tracker=online push=true.

The cells on disk are the source of truth: this can be run again at any time, and each cell keeps its run id.
"""

from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig

from configs.cli import stage
from eval.dashboard import dashboard, push_dashboard, specification
from eval.reporting.cells import ScoredCell, load_cells
from eval.rows import write_json
from zoomr.runs import UserError, progress

SPECIFICATION = "dashboard.json"


@stage("eval")
def main(cfg: DictConfig) -> None:
    """Log every current cell and write the dashboard's specification; push it where that is asked for."""
    cells = load_cells(Path(cfg.paths.runs) / "score")
    if not cells:
        raise UserError(f"paths.runs={cfg.paths.runs} holds no scored cells: run `python -m eval.score` first.")
    tracking = instantiate(cfg.tracker)
    for cell in progress(cells, unit="cell", description="tracker"):
        with tracking.start(cell.directory, group=f"{cfg.preset.name}-{cell.benchmark}", config=describe(cell)) as run:
            run.log("eval", 0, figures(cell))
    workspace = dashboard(cfg.tracker.entity or "", cfg.tracker.project)
    path = Path(cfg.paths.runs) / SPECIFICATION
    write_json(path, specification(workspace))
    if cfg.push:
        push_dashboard(workspace)
    offline = f"wandb sync {cfg.paths.runs}/score/*/wandb/offline-run-*"
    print(f"-> {path}   next: {offline if cfg.tracker.mode == 'offline' else 'open the project on W&B'}")


def describe(cell: ScoredCell) -> dict[str, Any]:
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


def figures(cell: ScoredCell) -> dict[str, float]:
    """The numbers of a run: accuracy with its interval, shares of outcomes, means of the meters."""
    summary = cell.summary
    shares = {f"{status}_share": count / summary["n_samples"] for status, count in summary["statuses"].items()}
    keys = ("accuracy", "ci_low", "ci_high", "majority", "n_problems", "n_samples")
    return {key: summary[key] for key in keys} | shares | summary["meters"]


if __name__ == "__main__":
    main()
