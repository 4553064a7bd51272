"""What fine-tuning changed, with a full cache: python -m eval.finetuned, after the two cells of sweep=finetuning.

Two numbers to believe before any policy is compared: how many generations keep to the format, and what the summaries
cost in accuracy, paired over problems.
"""

from pathlib import Path
from statistics import fmean
from typing import Any

from omegaconf import DictConfig

from eval.cells import generation_settings
from eval.reporting.cells import ScoredCell, load_cells, matching
from eval.statistics import paired_difference
from pipeline import write_json
from pipeline.cli import stage
from train.format import keeps_format
from zoomr.errors import UserError

OUTPUT = "finetuning.json"


@stage("eval")
def compare(cfg: DictConfig) -> None:
    """Compare the fine-tuned model with its base and write `paths.results`/finetuning.json.

    Parameters
    ----------
    cfg : DictConfig
        The composed configuration of configs/eval.yaml: its model, benchmark, generation, seed and limit.

    Raises
    ------
    UserError
        When one of the two cells is missing; names the command.
    """
    runs = Path(cfg.paths.runs)
    generation = generation_settings(cfg.generation)
    settings = {"generation": generation, "seed": cfg.seed, "limit": cfg.limit}
    here = [
        cell
        for cell in matching(load_cells(runs / "score"), settings)
        if cell.method == "full" and cell.model["name"] == cfg.model.name and cell.benchmark == cfg.benchmark.name
    ]
    found = {cell.model["checkpoint"]: cell for cell in here}
    for kind in ("base", "export"):
        if kind not in found:
            raise UserError(
                f"There is no scored cell of method=full with model={cfg.model.name}, checkpoint={kind} and these "
                "settings: run `python -m eval.generate -m sweep=finetuning`, then `python -m eval.score`."
            )
    result = comparison(found["base"], found["export"], runs / "generate")
    path = Path(cfg.paths.results) / OUTPUT
    write_json(path, result)
    print(sentence(result))
    print(f"-> {path}")


def comparison(base: ScoredCell, tuned: ScoredCell, generated: Path) -> dict[str, Any]:
    """The figures of the two cells.

    Parameters
    ----------
    base, tuned : ScoredCell
        Cells of one benchmark before and after fine-tuning.
    generated : Path
        The directory of the generate stage.

    Returns
    -------
    dict
        Of the fine-tuned model's samples ``balanced``, the share that `keeps_format`, ``summarised``, the share with at
        least one summary, and ``summaries_per_1k`` generated tokens; both accuracies; ``difference``: fine-tuned minus
        base, with its 95% interval and p, paired over the problems that both have.
    """
    samples = tuned.samples(generated)
    difference = paired_difference(tuned.accuracy, base.accuracy)
    return {
        "benchmark": tuned.benchmark,
        "model": tuned.model["name"],
        "problems": difference.n,
        "samples": len(samples),
        "balanced": fmean(keeps_format(row["balanced"], row["summaries"]) for row in samples),
        "summarised": fmean(row["summaries"] > 0 for row in samples),
        "summaries_per_1k": 1000
        * sum(row["summaries"] for row in samples)
        / sum(r["generated_tokens"] for r in samples),
        "accuracy": {"base": base.summary["accuracy"], "fine_tuned": tuned.summary["accuracy"]},
        "difference": vars(difference),
        "checkpoints": {"base": base.summary["checkpoint"], "fine_tuned": tuned.summary["checkpoint"]},
        "commit": tuned.summary["commit"],
    }


def sentence(result: dict[str, Any]) -> str:
    """The figures in words."""
    difference, accuracy = result["difference"], result["accuracy"]
    return (
        f"{result['balanced']:.1%} of {result['samples']:,} generations balanced, "
        f"{result['summaries_per_1k']:.1f} summaries in 1,000 tokens; accuracy {accuracy['base']:.1%} before, "
        f"{accuracy['fine_tuned']:.1%} after: {100 * difference['mean']:+.1f} points "
        f"[{100 * difference['low']:.1f}, {100 * difference['high']:.1f}] over {result['problems']:,} problems"
    )


if __name__ == "__main__":
    compare()
