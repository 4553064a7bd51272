"""Build results/<preset>/ from the scored cells: python -m eval.report (see configs/report.yaml)."""

from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from configs.cli import stage
from eval.reporting import html, sections
from eval.reporting.ablation import ablation_rows, draw_ablation, shape_sentences
from eval.reporting.cells import ScoredCell, load_cells, matching
from eval.reporting.claims import findings
from eval.reporting.consensus import consensus_of, consensus_sentence, draw_consensus
from eval.reporting.csv_table import csv_row, to_csv
from eval.reporting.figures import accuracy_against_active
from eval.reporting.profile import draw_profile, load_points, profile_rows, profile_sentences
from eval.reporting.table1 import latex, markdown, own_rows, paper_rows
from zoomr.runs import UserError, write_atomic

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
    generation = {key: cfg.generation[key] for key in ("temperature", "top_p", "samples", "max_new_tokens")}
    comparable = matching(cells, {"generation": generation, "seed": cfg.seed, "limit": cfg.limit})
    if not comparable:
        raise UserError(f"None of the {len(cells)} cells has the generation settings, seed and limit of this report.")
    results = Path(cfg.paths.results)
    paper = yaml.safe_load(PAPER.read_text())
    compare: Any = OmegaConf.to_container(cfg.compare, resolve=True)
    compared = default_settings(comparable, compare)
    over_c_and_k = default_settings(comparable, {key: compare[key] for key in compare.keys() - {"c", "k"}})
    curves = [cell for cell in comparable if isinstance(cell.policy.get("budget"), int)]
    found = findings(compared)
    beside = paper_rows(compared, paper, dict(cfg.paper_models))
    write_atomic(results / "cells.csv", to_csv([csv_row(cell) for cell in cells]))
    write_atomic(results / "table1.md", table1_page(compared, found, beside, generation))
    write_atomic(results / "table1.csv", to_csv(beside))
    write_atomic(results / "table1.tex", latex(sections.beside_paper(beside)))
    drawing, _ = accuracy_against_active(compared, curves, results / "accuracy_vs_active")
    parts = {
        "orderings": sections.orderings(found),
        "table1": sections.table1(compared, beside, drawing),
        "fig3a": profile_section(Path(cfg.paths.runs) / "profile", paper, results),
        "fig3c": ablation_section(over_c_and_k, paper, results),
        "fig3d": consensus_section(compared, paper, results),
        "lengths": sections.lengths(compared),
        "cells": sections.origins(comparable),
    }
    present = {name for name, part in parts.items() if html.NOT_RUN not in part}
    intro = html.paragraph(describe(generation, compared), "soft")
    body = f"<h1>ZoomR, preset {cfg.preset.name}</h1>\n{intro}{sections.navigation(present)}{''.join(parts.values())}"
    write_atomic(results / "report.html", html.page(f"ZoomR: {cfg.preset.name}", body))
    print(f"-> {results}   next: open {results / 'report.html'}")


def default_settings(cells: list[ScoredCell], compare: Any) -> list[ScoredCell]:
    """Cells whose policy has the settings of the comparison, where it has these settings at all."""
    return [cell for cell in cells if all(cell.policy.get(key, value) == value for key, value in compare.items())]


def describe(generation: dict[str, Any], cells: list[ScoredCell]) -> str:
    """How to read the numbers, and how they were generated."""
    settings = ", ".join(f"{key} {value}" for key, value in generation.items())
    windows = ", ".join(map(str, sorted({cell.policy["window"] for cell in cells if "window" in cell.policy})))
    return (
        "Accuracy in per cent with a 95% bootstrap interval over problems. Active tokens are KV entries on the device, "
        "means over problems of a sample's mean and of its peak; + prompt keeps the whole prompt. Baselines get "
        f"ZoomR's realised peak as budget. Generation: {settings}; window {windows} tokens."
    )


def table1_page(
    cells: list[ScoredCell], found: list[dict[str, Any]], beside: list[dict[str, Any]], generation: dict[str, Any]
) -> str:
    """The page with table 1: ours, what the paper's orderings do here, and the paper's table beside ours."""
    return "\n".join(
        [
            "# Table 1\n",
            describe(generation, cells) + "\n",
            "## Ours\n",
            markdown(own_rows(cells)),
            "## Do the paper's orderings show here?\n",
            "".join(f"- {row['question']} {row['sentence']}\n" for row in found),
            "## The paper's table beside ours\n",
            "`reproduced`: the paper's value lies in our interval; `differs`: it does not; `not run`: no such cell.\n",
            markdown(beside),
        ]
    )


def ablation_section(cells: list[ScoredCell], paper: dict[str, Any], results: Path) -> str:
    """The ablations of the benchmark with the most pairs of c and k; not run where there is but one pair."""
    zoomed = [cell for cell in cells if cell.method == "zoomr"]
    groups = sorted({(cell.benchmark, cell.model["name"]) for cell in zoomed})
    sizes = {group: sum((cell.benchmark, cell.model["name"]) == group for cell in zoomed) for group in groups}
    widest = max(groups, key=lambda group: sizes[group], default=None)
    if widest is None or sizes[widest] < 2:
        return sections.ablation([], [], None)
    here = [cell for cell in cells if (cell.benchmark, cell.model["name"]) == widest]
    rows, sentences = ablation_rows(here), shape_sentences(here, paper["ablations"])
    text = "".join(f"- {sentence}\n" for sentence in sentences)
    write_atomic(results / "ablation.md", f"# Ablations over c and k\n\n{text}\n{markdown(rows)}")
    return sections.ablation(rows, sentences, draw_ablation(here, results / "ablation")[0])


def profile_section(profiled: Path, paper: dict[str, Any], results: Path) -> str:
    """Memory and throughput of the profile that finished last."""
    points = load_points(profiled)
    if not points:
        return sections.profile([], [], None)
    rows, sentences = profile_rows(points), profile_sentences(points, paper["efficiency"])
    return sections.profile(rows, sentences, draw_profile(points, results / "profile")[0])


def consensus_section(cells: list[ScoredCell], paper: dict[str, Any], results: Path) -> str:
    """Agreeability of the first ZoomR cell that has enough refreshes."""
    for cell in cells:
        if cell.method == "zoomr" and any((found := consensus_of(cell))[0].values()):
            drawing, _ = draw_consensus(found, results / "agreeability")
            return sections.consensus(consensus_sentence(found, paper["consensus"]), drawing)
    return sections.consensus("", None)


if __name__ == "__main__":
    main()
