"""Generate the samples of one cell: python -m eval.generate method=zoomr benchmark=math500 (see configs/eval.yaml)."""

import traceback
from contextlib import closing
from pathlib import Path
from statistics import fmean
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from data_gen.benchmarks import Benchmark, checksum
from eval.budget import Reference, matched_budget
from eval.cells import Request, directory_label, generation_settings, method_settings, requests
from eval.checkpoint import Checkpoint, find_checkpoint
from eval.decode import decode, policy_for
from eval.policies import index_inputs
from eval.reporting.names import method_label
from eval.samples import SAMPLES, read_samples
from pipeline import AppendLog, Run, progress, write_atomic, write_rows
from pipeline.cli import stage
from zoomr.errors import UserError

FAILURE = "failure.txt"


@stage("eval")
def generate_cell(cfg: DictConfig) -> None:
    """Generate what is missing of one cell, and close it.

    Parameters
    ----------
    cfg : DictConfig
        The composed configuration of configs/eval.yaml.

    Raises
    ------
    UserError
        When a setting, the benchmark or the checkpoint cannot be used. What stopped a cell is also kept in its
        failure.txt.
    """
    check_sampling(cfg.generation)
    benchmark: Benchmark = instantiate(cfg.benchmark)
    problems = benchmark.load()[: cfg.limit]
    checkpoint = find_checkpoint(cfg)
    method, policy = method_settings(cfg.method)
    settings = {
        "model": checkpoint.settings,
        "benchmark": {
            "name": benchmark.name,
            "answer": benchmark.answer,
            "checksum": checksum(problems),
            "problems": len(problems),
        },
        "generation": generation_settings(cfg.generation),
        "method": {"name": method, "policy": policy},
        "prompt": cfg.system_prompt,
        "seed": cfg.seed,
        "limit": cfg.limit,
        "shard": cfg.shard,
    }
    root = Path(cfg.paths.runs)
    if policy.get("budget") == "match":
        match: Any = OmegaConf.to_container(cfg.match, resolve=True)
        matched = find_checkpoint(cfg, "match.checkpoint") if match["checkpoint"] else checkpoint
        reference = Reference(**match | {"checkpoint": matched})
        settings["budget"] = matched_budget(root / "generate", settings, reference)
    config = OmegaConf.to_container(cfg, resolve=True)
    wanted = requests(problems, cfg.generation.samples, cfg.seed, cfg.shard, cfg.traces)
    run = Run.open(
        root,
        "generate",
        directory_label(method_label(method, policy), benchmark.name),
        settings=settings,
        inputs=checkpoint.inputs | index_inputs(policy),
        config=config,  # type: ignore[arg-type]
        next_command="python -m eval.score",
        check=lambda: policy_for(policy, wanted),
    )
    if run.complete:
        run.say_done()
        return
    with closing(run):
        try:
            generate_missing(run, wanted, cfg, checkpoint, settings.get("budget"))
        except BaseException:
            write_atomic(run.dir / FAILURE, traceback.format_exc())
            raise
        (run.dir / FAILURE).unlink(missing_ok=True)
        run.finish(counts=close(run.dir, wanted), outputs=[SAMPLES])


def check_sampling(generation: DictConfig) -> None:
    """Refuse settings that contradict each other: several greedy samples, or top-p without a temperature."""
    if generation.temperature == 0 and generation.samples != 1:
        raise UserError(f"generation.samples={generation.samples}: greedy samples are all alike; use 1.")
    if generation.temperature == 0 and generation.top_p != 1:
        raise UserError(f"generation.top_p={generation.top_p} has no effect at generation.temperature=0; use 1.0.")


def generate_missing(
    run: Run, wanted: list[Request], cfg: DictConfig, checkpoint: Checkpoint, matched: int | None
) -> None:
    """Generate the samples that the cell lacks, each appended as soon as it is finished."""
    with AppendLog(run.dir / SAMPLES) as log:
        done = log.keys()
        missing = [request for request in wanted if request.id not in done]
        if not missing:
            return
        done_before = len(wanted) - len(missing)
        with progress(total=len(wanted), initial=done_before, unit="sample", description=run.dir.name) as bar:
            for request, generation in decode(missing, cfg, checkpoint, matched):
                log.append(record(request, generation))
                bar.update()


def record(request: Request, generation: dict[str, Any]) -> dict[str, Any]:
    """The row that is kept of a sample."""
    kept = {key: value for key, value in generation.items() if key not in ("prompt", "sample", "seed")}
    keys: dict[str, Any] = {
        "id": request.id,
        "problem": request.problem.id,
        "sample": request.sample,
        "seed": request.seed,
    }
    return keys | {"gold": request.problem.gold} | kept


def close(directory: Path, wanted: list[Request]) -> dict[str, Any]:
    """Put the rows into the order of the requests, each once, and return the cell's counts."""
    rows = {row["id"]: row for row in read_samples([directory])}
    ordered = [rows[request.id] for request in wanted]
    write_rows(directory / SAMPLES, ordered)
    by_problem: dict[str, list[dict[str, Any]]] = {}
    for row in ordered:
        by_problem.setdefault(row["problem"], []).append(row)
    means = {
        key: fmean(fmean(row[key] for row in rows) for rows in by_problem.values())
        for key in ("active_tokens_peak", "active_tokens_mean")
    }
    return {"problems": len(by_problem), "samples": len(ordered), **means}


if __name__ == "__main__":
    generate_cell()
