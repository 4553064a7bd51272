"""Build results/<preset>/ from the scored cells: python -m eval.report (see configs/report.yaml)."""

from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from configs.cli import stage
from eval.reporting.cells import ScoredCell, load_cells, matching
from eval.reporting.claims import findings
from eval.reporting.csv_table import csv_row, to_csv
from eval.reporting.figures import accuracy_against_active
from eval.reporting.table1 import markdown, own_rows, paper_rows
from zoomr.runs import UserError, write_atomic

PAPER = Path(__file__).resolve().parents[1] / "results" / "paper.yaml"


@stage("report")
def main(cfg: DictConfig) -> None:
    """See `build`."""
    build(cfg)


def build(cfg: DictConfig) -> None:
    """Write the tables, the figures and the sentences of a preset; the same cells give the same bytes.

    Parameters
    ----------
    cfg : DictConfig
        The composed configuration of configs/report.yaml.

    Raises
    ------
    UserError
        When there is no scored cell, or none with the settings of the report.
    """
    scored = Path(cfg.paths.runs) / "score"
    cells = load_cells(scored)
    if not cells:
        raise UserError(f"paths.runs={cfg.paths.runs} holds no scored cells: run `python -m eval.score` first.")
    generation = {key: cfg.generation[key] for key in ("temperature", "top_p", "samples", "max_new_tokens")}
    main_cells = matching(cells, {"generation": generation, "seed": cfg.seed, "limit": cfg.limit})
    if not main_cells:
        raise UserError(f"None of the {len(cells)} cells has the generation settings, seed and limit of this report.")
    results = Path(cfg.paths.results)
    compared = default_settings(main_cells, OmegaConf.to_container(cfg.compare, resolve=True))
    write_atomic(results / "cells.csv", to_csv([csv_row(cell) for cell in cells]))
    found = findings(compared)
    paper = yaml.safe_load(PAPER.read_text())
    write_atomic(results / "table1.md", table1_page(compared, found, paper, dict(cfg.paper_models), generation))
    accuracy_against_active(compared, results / "accuracy_vs_active")
    print(f"-> {results}   next: open {results / 'table1.md'}")


def default_settings(cells: list[ScoredCell], compare: Any) -> list[ScoredCell]:
    """Cells whose policy has the settings of the comparison, where it has these settings at all."""
    return [cell for cell in cells if all(cell.policy.get(key, value) == value for key, value in compare.items())]


def table1_page(
    cells: list[ScoredCell],
    found: list[dict[str, Any]],
    paper: dict[str, Any],
    models: dict[str, str],
    generation: dict[str, Any],
) -> str:
    """The page with table 1: ours, what the paper's orderings do here, and the paper's table beside ours."""
    sentences = "".join(f"- {row['question']} {row['sentence']}\n" for row in found)
    settings = ", ".join(f"{key} {value}" for key, value in generation.items())
    windows = ", ".join(map(str, sorted({cell.policy["window"] for cell in cells if "window" in cell.policy})))
    return "\n".join(
        [
            "# Table 1\n",
            "Accuracy in per cent with a 95% bootstrap interval over problems. Active tokens are KV entries on the",
            "device, means over problems of a sample's mean and of its peak; `+ prompt` keeps the whole prompt.",
            f"Baselines get ZoomR's realised peak as budget. Generation: {settings}; window {windows} tokens.\n",
            "## Ours\n",
            markdown(own_rows(cells)),
            "## Do the paper's orderings show here?\n",
            sentences,
            "## The paper's table beside ours\n",
            "`reproduced`: the paper's value lies in our interval; `differs`: it does not; `not run`: no such cell.\n",
            markdown(paper_rows(cells, paper, models)),
        ]
    )


if __name__ == "__main__":
    main()
