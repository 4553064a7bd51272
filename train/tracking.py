"""Where figures go while a stage runs: a local file that is the source of truth, and W&B beside it.

`python -m train.tracking RUN_DIRECTORY` sends a run's local figures to W&B, under the same run id, whatever its mode.
"""

import json
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline import write_atomic
from pipeline.figures import METRICS, read_figures

ABOUT = "tracking.json"
AXES = ("train", "eval")
SECONDS = 30  # that W&B may take to start, and to finish


@dataclass(frozen=True)
class Tracking:
    """Settings of the tracker.

    Parameters
    ----------
    mode : str
        ``offline`` keeps W&B's files in the run directory, ``online`` sends them, ``disabled`` leaves W&B out.
    project, entity : str or None
        Where W&B files the run.
    """

    mode: str = "offline"
    project: str = "zoomr"
    entity: str | None = None

    def start(self, directory: Path, group: str, config: dict[str, Any], step: int = 0) -> "Tracker":
        """Open the tracker of a run.

        Parameters
        ----------
        directory : Path
            The run directory. Its name is W&B's run id, so that a resumed run goes on with its own curves.
        group : str
            The stage, by which W&B groups runs.
        config : dict
            The resolved configuration: plain dicts, lists and scalars.
        step : int
            Where a resumed run goes on; later figures of the killed one are dropped.
        """
        about = {"id": directory.name, "group": group, "config": config}
        write_atomic(directory / ABOUT, json.dumps(about, indent=2) + "\n")
        kept = [row for row in read_figures(directory) if all(row.get(f"{axis}/step", 0) <= step for axis in AXES)]
        write_atomic(directory / METRICS, "".join(json.dumps(row) + "\n" for row in kept))
        return Tracker(directory / METRICS, _wandb_run(self, directory, about))


class Tracker:
    """Writes figures to the local file and to W&B, if it runs. A context manager, closed by an exception too."""

    def __init__(self, path: Path, wandb_run: Any) -> None:
        self._file = open(path, "a")
        self._wandb = wandb_run

    def log(self, axis: str, step: int, figures: dict[str, float]) -> None:
        """Record `figures` at a step of an axis: ``train`` or ``eval``."""
        row = {f"{axis}/step": step} | {f"{axis}/{name}": value for name, value in figures.items()}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        if self._wandb:
            self._wandb.log(row)

    def table(self, name: str, columns: list[str | int], rows: list[list[Any]]) -> None:
        """Show rows on W&B as a table; the local file leaves them where they came from."""
        if self._wandb:
            import wandb

            self._wandb.log({name: wandb.Table(columns=columns, data=rows)})

    def __enter__(self) -> "Tracker":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._file.close()
        if self._wandb:
            self._wandb.finish(exit_code=int(kind is not None))


def _wandb_run(settings: Tracking, directory: Path, about: dict[str, Any]) -> Any:
    """Return W&B's run; None where it is disabled, not installed or does not start in time."""
    if settings.mode == "disabled":
        return None
    try:
        import wandb
    except ImportError:
        warnings.warn(f"wandb is not installed: figures go to {directory / METRICS} only.", stacklevel=3)
        return None
    mode = settings.mode
    if mode == "online" and not wandb.api.api_key:
        warnings.warn("tracker=online needs WANDB_API_KEY or `wandb login`: going on offline.", stacklevel=3)
        mode = "offline"
    try:
        run = wandb.init(
            project=settings.project,
            entity=settings.entity,
            dir=directory,
            id=about["id"],
            name=about["id"],
            group=about["group"],
            config=about["config"],
            mode=mode,  # type: ignore[arg-type]
            resume="allow" if mode == "online" else None,
            settings=wandb.Settings(init_timeout=SECONDS, finish_timeout=SECONDS, silent=True, console="off"),
        )
    except wandb.errors.Error as error:
        later = f"python -m train.tracking {directory}"
        warnings.warn(
            f"W&B did not start ({error}): figures go to {directory / METRICS}; `{later}` sends them.", stacklevel=3
        )
        return None
    for axis in AXES:
        run.define_metric(f"{axis}/step")
        run.define_metric(f"{axis}/*", step_metric=f"{axis}/step")
    return run


def send(directory: Path) -> None:
    """Send the local figures of a run to W&B."""
    run = _wandb_run(Tracking(mode="online"), directory, json.loads((directory / ABOUT).read_text()))
    for row in read_figures(directory):
        run.log(row)
    run.finish()


if __name__ == "__main__":
    send(Path(sys.argv[1]))
