"""Grade stored generations, without a model: python -m eval.score (again after any change of the grader)."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from eval.cells import method_label
from eval.grading.grade import Case, failing_golds, grade
from eval.grading.pool import SymbolicPool
from eval.samples import SAMPLES, GeneratedCell, generated_cells, read_samples
from eval.summary import summarize
from pipeline import Run, progress, write_json, write_rows
from pipeline.cli import stage
from zoomr.errors import UserError

SCORES, CELL = "scores.jsonl", "cell.json"
RULE = 2  # raise it when the rule of eval/grading changes verdicts
FEW_PROBLEMS = 100


@stage("eval")
def score_cells(cfg: DictConfig) -> None:
    """Grade every cell that has samples, finished or not.

    Parameters
    ----------
    cfg : DictConfig
        The composed configuration of configs/eval.yaml.

    Raises
    ------
    UserError
        When there is nothing to grade, or a gold is not accepted as its own answer.
    """
    root = Path(cfg.paths.runs)
    cells = generated_cells(root / "generate")
    for line in failures(root / "generate"):
        print(line)
    if not cells:
        raise UserError(f"paths.runs={root} holds no generations: run `python -m eval.generate` first.")
    config = OmegaConf.to_container(cfg, resolve=True)
    with ExitStack() as stack:
        pool: SymbolicPool | None = None
        for cell in cells:
            run = open_run(root, cell, config)
            if run.complete:
                run.say_done()
                continue
            pool = pool or stack.enter_context(SymbolicPool(cfg.score.workers, cfg.score.seconds, cfg.score.mebibytes))
            with closing(run):
                score_cell(run, cell, pool, cfg.preset.name)


def failures(generated: Path) -> list[str]:
    """One line for every cell that a failure stopped and that was not finished since."""
    reasons = {
        path.parent: path.read_text().strip().splitlines()[-1] for path in sorted(generated.glob("*/failure.txt"))
    }
    return [f"failed: {directory}: {reason}" for directory, reason in reasons.items()]


def open_run(root: Path, cell: GeneratedCell, config: Any) -> Run:
    """The directory of a cell's scores; it depends on the samples and on the grader, not on how they were made."""
    return Run.open(
        root,
        "score",
        cell.directories[0].name.rpartition("-")[0],
        settings={"rule": RULE, "math_verify": version("math-verify"), "limits": config["score"] | {"workers": None}},
        inputs={directory.name: directory / SAMPLES for directory in cell.directories},
        config=config,
        next_command="python -m eval.report",
    )


def score_cell(run: Run, cell: GeneratedCell, pool: SymbolicPool, preset: str) -> None:
    """Grade one cell and write its scores and its summary."""
    settings = cell.settings
    samples = read_samples(cell.directories)
    kind = settings["benchmark"]["answer"]
    if failing := failing_golds(sorted({row["gold"] for row in samples}), kind, pool):
        raise UserError(
            f"benchmark={settings['benchmark']['name']}: {len(failing)} golds are not accepted as their own answer, "
            f"the first is {failing[0]!r}."
        )
    scores = list(graded(samples, kind, pool, run.dir.name))
    summary = {
        "preset": preset,
        "label": method_label(settings["method"]["name"], settings["method"]["policy"]),
        "settings": settings,
        "checkpoint": cell.checkpoint,
        "commit": cell.first["commit"],
        "command": cell.first["command"],
        "started": cell.first["started"],
        "directories": [directory.name for directory in cell.directories],
        "complete": not cell.missing,
        "rule": RULE,
    } | summarize(samples, scores, settings["benchmark"]["problems"] * settings["generation"]["samples"])
    write_rows(run.dir / SCORES, scores)
    write_json(run.dir / CELL, summary)
    report_line(summary)
    run.finish(counts=summary["statuses"], outputs=[SCORES, CELL])


def graded(samples: list[dict[str, Any]], kind: str, pool: SymbolicPool, name: str) -> Iterator[dict[str, Any]]:
    """Yield a row of scores for each sample."""
    cases = (Case(row["gold"], row["text"], row["status"] == "stop", kind) for row in samples)
    grades = progress(grade(cases, pool), total=len(samples), unit="sample", description=name)
    for row, done in zip(samples, grades, strict=True):
        yield {
            "id": row["id"],
            "problem": row["problem"],
            "sample": row["sample"],
            "status": done.status,
            "answer": done.answer,
            "gold": row["gold"],
            "reason": done.reason,
            "generated_tokens": row["generated_tokens"],
            "consensus": row["consensus"],
        }


def report_line(cell: dict[str, Any]) -> None:
    """Print the cell's accuracy with its interval, what is missing, and whether it is too small to tell."""
    interval = f"[{100 * cell['ci_low']:.1f}, {100 * cell['ci_high']:.1f}]"
    present = f"{cell['n_samples']} of {cell['expected_samples']} samples, {cell['n_problems']} problems"
    print(f"{cell['label']}: {100 * cell['accuracy']:.1f} {interval}, {present}")
    if cell["n_problems"] < FEW_PROBLEMS and cell["n_samples"] == cell["n_problems"]:
        print(f"warning: one sample on {cell['n_problems']} problems; the interval says how little that tells")


if __name__ == "__main__":
    score_cells()
