"""Build results/<preset>/ from the scored cells: python -m eval.report (see configs/report.yaml)."""

from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from eval.cells import generation_settings, has_settings
from eval.reporting import (
    ablation,
    active_set,
    consensus,
    differences,
    fidelity_section,
    finetuning,
    html,
    options,
    origins,
    profile,
    sections,
    steps_section,
    tables,
)
from eval.reporting.cells import ScoredCell, load_cells, matching
from eval.reporting.claims import Finding, findings, unanswered
from eval.reporting.csv_table import csv_row, to_csv
from eval.reporting.figures import accuracy_against_active
from eval.reporting.table1 import BENCHMARKS, latex, markdown, own_rows, paper_rows
from pipeline import write_atomic
from pipeline.cli import stage
from zoomr.errors import UserError

PAPER = Path(__file__).resolve().parents[1] / "results" / "paper.yaml"


@stage("report")
def main(cfg: DictConfig) -> None:
    """See `build`."""
    build(cfg)


def build(cfg: DictConfig) -> None:
    """Write the tables, the figures and the pages of a preset; the same cells give the same bytes.

    Parameters
    ----------
    cfg : DictConfig
        The composed configuration of configs/report.yaml.

    Raises
    ------
    UserError
        When there is no scored cell, or none with the settings of the report.
    """
    cells = load_cells(Path(cfg.paths.runs) / "score")
    if not cells:
        raise UserError(f"paths.runs={cfg.paths.runs} holds no scored cells: run `python -m eval.score` first.")
    generation = generation_settings(cfg.generation)
    comparable = matching(cells, {"generation": generation, "seed": cfg.seed, "limit": cfg.limit})
    if not comparable:
        raise UserError(f"None of the {len(cells)} cells has the generation settings, seed and limit of this report.")
    runs, results = Path(cfg.paths.runs), Path(cfg.paths.results)
    paper = yaml.safe_load(PAPER.read_text())
    reference: Any = OmegaConf.to_container(cfg.reference, resolve=True)
    own_budget = {"budget": "match"}  # paper: 4
    compared = default_settings(comparable, reference | own_budget)
    over_c_and_k = default_settings(comparable, {key: reference[key] for key in reference.keys() - {"c", "k"}})
    curves = [cell for cell in comparable if isinstance(cell.policy.get("budget"), int)]
    found, models = findings(compared), dict(cfg.paper_models)
    beside = paper_rows(compared, paper, models)
    write_atomic(results / "cells.csv", to_csv([csv_row(cell) for cell in cells]))
    intro = " ".join([describe(generation, compared), *notes(cfg)])
    write_atomic(results / "table1.md", table1_page(compared, found, beside, intro))
    write_atomic(results / "table1.csv", to_csv(beside))
    write_atomic(results / "table1.tex", latex(tables.beside_paper(beside)))
    drawing, _ = accuracy_against_active(compared, curves, results / "accuracy_vs_active")
    efficiency, profiled = profile.section(runs / "bench.json", paper, results)
    fidelity, forced = fidelity_section.section(runs / "fidelity", paper, results)
    steps, stepped = steps_section.section(runs / "steps", results)
    training, trained = finetuning.section(compared, runs, paper["training"], results)
    parts = [
        tables.orderings(found),
        tables.table1(compared, beside, models),
        tables.against_active(compared, curves, drawing),
        steps,
        fidelity,
        active_set.section(compared, runs / "generate", results),
        efficiency,
        ablation.section(over_c_and_k, paper, results),
        options.section(comparable, reference, results),
        consensus.section(compared, paper, results),
        differences.section(compared),
        tables.lengths(compared),
        training,
        origins.section([*map(origins.of_cell, comparable), *forced, *profiled, *stepped, *trained]),
    ]
    head = f"<h1>ZoomR, preset {cfg.preset.name}</h1>\n{html.paragraph(intro, 'soft')}"
    body = head + sections.contents(parts) + sections.bodies(parts)
    write_atomic(results / "report.html", html.page(f"ZoomR: {cfg.preset.name}", body))
    print(f"-> {results}   next: open {results / 'report.html'}")


def default_settings(cells: list[ScoredCell], compare: Any) -> list[ScoredCell]:
    """Cells whose policy has the settings of the comparison, where it has these settings at all."""
    return [cell for cell in cells if has_settings(cell.policy, compare)]


def describe(generation: dict[str, Any], cells: list[ScoredCell]) -> str:
    """How to read the numbers, and how they were generated."""
    settings = ", ".join(f"{key} {value}" for key, value in generation.items())
    windows = ", ".join(map(str, sorted({cell.policy["window"] for cell in cells if "window" in cell.policy})))
    return (
        "Accuracy in per cent with a 95% bootstrap interval over problems. Active tokens are KV entries on the device, "
        "means over problems of a sample's mean and of its peak; + prompt keeps the whole prompt. Baselines get "
        f"ZoomR's realised peak as budget. Generation: {settings}; window {windows} tokens."
    )


def notes(cfg: DictConfig) -> list[str]:
    """What to bear in mind with every number: of the model, and of counts that follow from a budget of time."""
    found = []
    if cfg.model.get("note"):
        found.append(f"{cfg.model.name}: {cfg.model.note}")
    if cfg.get("budget"):
        found.append(f"The numbers of traces, steps and problems are those for {cfg.budget} on two idle cores.")
    return found


def table1_page(
    cells: list[ScoredCell],
    found: dict[tuple[str, str], list[Finding]],
    beside: list[dict[str, Any]],
    intro: str,
) -> str:
    """The page with table 1: ours, what the paper's orderings do here, and the paper's table beside ours."""
    answers = "".join(
        f"\n{BENCHMARKS.get(benchmark, benchmark)}, {model}:\n\n"
        + "".join(f"- {one.question} {one.sentence}\n" for one in here if one.cells)
        + f"\n{unanswered(here)}\n"
        for (benchmark, model), here in found.items()
    )
    return "\n".join(
        [
            "# Table 1\n",
            intro + "\n",
            "## Ours\n",
            markdown(own_rows(cells)),
            "## Do the paper's orderings show here?",
            answers,
            "## The paper's table beside ours\n",
            "`reproduced`: the paper's value lies in our interval; `differs`: it does not; `not run`: no such cell.\n",
            markdown(beside),
        ]
    )


if __name__ == "__main__":
    main()
