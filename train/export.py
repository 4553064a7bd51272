"""Merge the adapter into its base and check the result: python -m train.export (see configs/train.yaml).

The merged checkpoint is what evaluation loads: safetensors, tokenizer, chat template and generation config. Serving
engines that refuse adapters with token rows take it too; the bare adapter works in PEFT and in `zoomr.load`.
"""

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipeline import Run, resolve_run
from pipeline.cli import stage


@stage("train")
def main(cfg: DictConfig) -> None:
    """Export the adapter as a merged checkpoint."""
    trained = resolve_run(cfg.export.adapter, setting="export.adapter", command="python -m train.sft")
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    run = Run.open(
        cfg.paths.runs,
        stage="export",
        label=cfg.model.name,
        settings={"dtype": cfg.export.dtype},
        inputs={"export.adapter": trained},
        config=config,
        next_command=f"python -m eval.generate preset={cfg.preset.name}",
    )
    if run.complete:
        return run.say_done()

    from train.merge import merge

    gaps = merge(Path(trained) / "adapter", run.dir / "merged", cfg.export.dtype, cfg.export.tolerance)
    print("largest difference of logits: " + ", ".join(f"{name} {gap:.1e}" for name, gap in gaps.items()))
    run.finish(counts={"logit_difference": gaps}, outputs=["merged"])
    return None


if __name__ == "__main__":
    main()
