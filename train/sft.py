"""Fine-tune the model to summarise its own paragraphs: python -m train.sft (see configs/train.yaml).

Plain full-attention training on the rows of `data_gen.build`: a later token sees every earlier one. What a decoding
policy leaves out is decided at decode time and never trained.
"""

import os
import warnings
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipeline import Run, read_manifest, resolve_run
from pipeline.cli import stage
from pipeline.objects import model_path
from zoomr.errors import UserError

# Settings that change how fast or how often something is done, not the adapter.
WITHOUT_EFFECT = {"data", "gradient_checkpointing", "log_every", "evaluate_every", "save_every", "adherence"}


@stage("train")
def main(cfg: DictConfig) -> None:
    """Train the adapter, or go on with it."""
    data = resolve_run(cfg.sft.data, setting="sft.data", command="python -m data_gen.build")
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    check_same_model(data, config["model"])
    # As a launcher says it, so that a finished run is found before torch is imported.
    rank, processes = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    run = open_run(cfg, config, data, processes) if rank == 0 else None
    if run and run.complete and processes == 1:
        return run.say_done()
    # The trainers of TRL report their use over the network as soon as they are made.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    # Its new name is not known to the oldest transformers that we support.
    warnings.filterwarnings("ignore", "`gradient_checkpointing`|`is_gradient_checkpointing`", FutureWarning)
    from train.fit import fit, from_first

    directory = from_first(run and not run.complete and run.dir)
    if directory:
        counts = fit(config, data, directory)
    if run and not run.complete:
        run.finish(counts=counts, outputs=["adapter"])
    elif run:
        run.say_done()
    return None


def open_run(cfg: DictConfig, config: dict[str, Any], data: Path, processes: int) -> Run:
    """Open the run directory, named by what shapes the adapter."""
    sft = {name: value for name, value in config["sft"].items() if name not in WITHOUT_EFFECT}
    if sft["policy"]:
        sft["policy"] = {name: value for name, value in sft["policy"].items() if name != "show"}
    base = Path(model_path(cfg.model))
    return Run.open(
        cfg.paths.runs,
        stage="sft",
        label=cfg.model.name,
        settings={
            "model": {name: config["model"][name] for name in ("name", "path", "revision", "dtype")},
            "sft": sft,
            "lora": config["lora"],
            "processes": processes,
            "seed": cfg.seed,
            "limit": cfg.limit,
        },
        inputs={"sft.data": data} | model_files(base),
        config=config,
        next_command=f"python -m train.export preset={cfg.preset.name}",
    )


def model_files(base: Path) -> dict[str, Path]:
    """The files of a local model that shape what is trained; none for a hub id, which its revision stands for."""
    patterns = ("*.safetensors", "config.json", "tokenizer*.json", "*.jinja")
    return {f"model.path/{file.name}": file for pattern in patterns for file in sorted(base.glob(pattern))}


def check_same_model(data: Path, model: dict[str, Any]) -> None:
    """Refuse rows that were cut into the tokens of another model."""
    built_for = read_manifest(data)["config"]["model"]["name"]
    if built_for != model["name"]:
        raise UserError(
            f"sft.data={data} holds token ids of model={built_for}, not of {model['name']}: "
            f"run `python -m data_gen.build` with the same model, or name another directory."
        )


if __name__ == "__main__":
    main()
