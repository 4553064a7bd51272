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

TARGETS = ("contrast", "gradient", "labels")


@stage("index")
def main(cfg: DictConfig) -> None:
    """Fit the index, or find that it is there."""
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


if __name__ == "__main__":
    main()
