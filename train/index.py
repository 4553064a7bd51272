"""Fit a learned index to the exported model: python -m train.index (see configs/index.yaml).

The index says at a boundary which paragraphs the next tokens need. The model itself stays as it is: its hidden states
at boundaries and at the ends of summaries are recorded under full attention, and a low-rank bilinear score of the two
is fitted to a target that needs no labels.
"""

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipeline import Run, resolve_run
from pipeline.cli import stage
from zoomr.errors import UserError

TARGETS = ("contrast", "gradient", "labels")


@stage("index")
def main(cfg: DictConfig) -> None:
    """Fit the index, or find that it is there."""
    check(cfg.index)
    exported = resolve_run(cfg.index.checkpoint, setting="index.checkpoint", command="python -m train.export")
    data = resolve_run(cfg.index.data, setting="index.data", command="python -m data_gen.build")
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    run = Run.open(
        cfg.paths.runs,
        stage="index",
        label=f"{cfg.model.name}_{cfg.index.target}",
        settings={
            "index": {name: value for name, value in config["index"].items() if name not in ("checkpoint", "data")},
            "seed": cfg.seed,
        },
        inputs={"index.checkpoint": exported, "index.data": data},
        config=config,
        next_command=f"python -m eval.generate preset={cfg.preset.name}",
    )
    if run.complete:
        return run.say_done()

    from train.fit_index import fit_index

    run.finish(counts=fit_index(config, exported / "merged", Path(data), run.dir), outputs=["index.safetensors"])
    return None


def check(index: DictConfig) -> None:
    """Refuse settings that cannot be fitted with.

    Raises
    ------
    UserError
        Names the first such setting.
    """
    if index.target not in TARGETS:
        raise UserError(f"index.target={index.target}: has to be one of {', '.join(TARGETS)}.")
    whole = {name: index[name] for name in ("rows", "validation_rows", "span", "layers", "epochs")}
    for name, value in [*whole.items(), *(("ranks", rank) for rank in index.ranks or [0])]:
        if not isinstance(value, int) or value < 1:
            raise UserError(f"index.{name}={index[name]}: has to be whole numbers from 1.")
    if not index.learning_rate > 0:
        raise UserError(f"index.learning_rate={index.learning_rate}: has to be above 0.")


if __name__ == "__main__":
    main()
