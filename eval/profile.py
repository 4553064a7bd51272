"""Memory and throughput against length and batch: python -m eval.profile (see configs/profile.yaml)."""

from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from eval.checkpoint import find_checkpoint
from eval.measure import Point, measure
from eval.workload import Form
from pipeline import AppendLog, Run, progress
from pipeline.cli import stage

POINTS = "points.jsonl"


@stage("profile")
def main(cfg: DictConfig) -> None:
    """Measure the points that are missing, each in a process of its own so that peaks are its own."""
    settings: Any = OmegaConf.to_container(cfg.profile, resolve=True)
    checkpoint = find_checkpoint(cfg)
    run = Run.open(
        Path(cfg.paths.runs),
        "profile",
        cfg.model.name,
        settings={"profile": settings, "model": checkpoint.settings, "device": cfg.device},
        inputs=checkpoint.inputs,
        config=OmegaConf.to_container(cfg, resolve=True),  # type: ignore[arg-type]
        next_command="python -m eval.report",
    )
    if run.complete:
        run.say_done()
        return
    wanted = points(settings)
    with closing(run), AppendLog(run.dir / POINTS) as log:
        measured = log.keys()
        missing = [point for point in wanted if point.id not in measured]
        done = len(wanted) - len(missing)
        with progress(total=len(wanted), initial=done, unit="point", description=run.dir.name) as bar:
            for point in missing:
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
                    log.append(alone.submit(measure, point, Form(**settings["text"]), checkpoint, cfg.device).result())
                bar.update()
        run.finish(counts={"points": len(wanted)}, outputs=[POINTS])


def points(settings: dict[str, Any]) -> list[Point]:
    """All points, short ones first."""
    return [
        Point(name, variant["policy"], variant["residency"], length, batch)
        for length in settings["lengths"]
        for batch in settings["batches"]
        for name, variant in settings["variants"].items()
    ]


if __name__ == "__main__":
    main()
