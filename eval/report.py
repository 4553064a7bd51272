"""Build runs/<preset>/report/ from scored cells and measured runs: python -m eval.report (see configs/report.yaml)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from eval.cells import generation_settings, has_settings
from eval.reporting import (
    ablation,
    active_set,
    agreeability,
    fidelity,
    finetuning,
    options,
    profile,
    questions,
    rivals,
    steps,
    table1,
)
from eval.reporting.cells import ScoredCell, cell_row, load_cells, matching
from eval.reporting.sections import Origin, Section
from eval.reporting.tables import to_csv
from pipeline import write_atomic, write_json
from pipeline.cli import stage
from pipeline.page import render
from zoomr.errors import UserError

PAPER = Path(__file__).resolve().parents[1] / "results" / "paper.yaml"
TEMPLATE = Path(__file__).parent / "reporting" / "report.html"


@stage("report")
def build(cfg: DictConfig) -> None:
    """Write the tables, the figures and the pages of a preset; the same runs give the same bytes.

    Parameters
    ----------
    cfg : DictConfig
        The composed configuration of configs/report.yaml.

    Raises
    ------
    UserError
        When there is nothing to report, or no scored cell has the settings of the report.
    """
    runs, results = Path(cfg.paths.runs), Path(cfg.paths.results)
    paper = yaml.safe_load(PAPER.read_text())
    generation = generation_settings(cfg.generation)
    cells = load_cells(runs / "score", cfg.generation)
    comparable = matching(cells, {"generation": generation, "seed": cfg.seed, "limit": cfg.limit})
    if cells and not comparable:
        raise UserError(f"None of the {len(cells)} cells has the generation settings, seed and limit of this report.")
    reference: Any = OmegaConf.to_container(cfg.reference, resolve=True)
    compared = with_settings(comparable, reference | {"budget": "match"})  # paper: 4
    intro = " ".join([how_to_read(generation, compared), *notes(cfg)])
    sections = [
        *cell_sections(cfg, comparable, compared, reference, paper, intro),
        steps.section(runs / "steps", results),
        fidelity.section(runs / "fidelity", paper, results),
        profile.section(runs / "bench.json", paper, results),
        finetuning.section(compared, runs, paper["training"], results),
    ]
    shown = [section for section in sections if section.parts]
    if not shown:
        raise UserError(
            f"paths.runs={cfg.paths.runs} holds no scored cells and no measurements: run `python -m eval.generate`, "
            "then `python -m eval.score`, first."
        )
    if cells:
        rows = [cell_row(cell, comparable) for cell in cells]
        write_json(results / "cells.json", {"rows": rows})
        write_atomic(results / "cells.csv", to_csv(rows))
    write_atomic(
        results / "report.html",
        render(
            TEMPLATE,
            title=f"ZoomR, preset {cfg.preset.name}",
            intro=intro,
            sections=shown,
            missing=[section for section in sections if not section.parts],
            origins=[*map(Origin.of_cell, comparable), *(origin for section in shown for origin in section.origins)],
        ),
    )
    print(f"-> {results}   next: open {results / 'report.html'}")


def cell_sections(
    cfg: DictConfig,
    comparable: list[ScoredCell],
    compared: list[ScoredCell],
    reference: dict[str, Any],
    paper: dict[str, Any],
    intro: str,
) -> list[Section]:
    """The sections that speak of scored cells.

    Parameters
    ----------
    comparable, compared : list of ScoredCell
        Cells with the report's generation settings, and of these the ones of table 1.
    reference : dict
        Settings of ZoomR in table 1.
    """
    runs, results = Path(cfg.paths.runs), Path(cfg.paths.results)
    found = questions.answers(compared)
    rows = table1.paper_rows(compared, paper, dict(cfg.paper_models))
    if compared:
        table1.write_table1(compared, rows, found, intro, results)
    curves = [cell for cell in comparable if isinstance(cell.policy.get("budget"), int)]
    # the paper's k alone, since all of a sweep over k would hide the rest; the ablation has them
    shown = [cell for cell in comparable if cell not in curves and has_settings(cell.policy, {"k": reference["k"]})]
    over_c_and_k = with_settings(comparable, {key: reference[key] for key in reference.keys() - {"c", "k"}})
    return [
        questions.section(found),
        table1.section(compared, rows),
        *rivals.against_active(shown, curves, results),
        active_set.section(compared, runs / "generate", results),
        ablation.section(over_c_and_k, paper, results),
        options.section(comparable, reference, results),
        agreeability.section(compared, paper, results),
        rivals.differences(shown, compared, results),
        rivals.lengths(shown),
    ]


def with_settings(cells: Sequence[ScoredCell], wanted: dict[str, Any]) -> list[ScoredCell]:
    """Cells whose policy has the wanted settings, where it has these settings at all."""
    return [cell for cell in cells if has_settings(cell.policy, wanted)]


def how_to_read(generation: dict[str, Any], cells: list[ScoredCell]) -> str:
    """How to read the numbers, and how they were generated."""
    settings = ", ".join(f"{key} {value}" for key, value in generation.items())
    windows = ", ".join(map(str, sorted({cell.policy["window"] for cell in cells if "window" in cell.policy})))
    return (
        "Accuracy in per cent with a 95% bootstrap interval over problems. Active tokens are KV entries on the device, "
        "means over problems of a sample's mean and of its peak; + prompt keeps the whole prompt. Baselines get "
        f"ZoomR's realised peak as budget. Generation: {settings}{f'; window {windows} tokens' if windows else ''}."
    )


def notes(cfg: DictConfig) -> list[str]:
    """What to bear in mind with every number: of the model, and of counts that follow from a budget of time."""
    found = []
    if cfg.model.get("note"):
        found.append(f"{cfg.model.name}: {cfg.model.note}")
    if cfg.get("time_limit"):
        found.append(f"The numbers of traces, steps and problems are those for {cfg.time_limit} on two idle cores.")
    return found


if __name__ == "__main__":
    build()
