"""Tokens a second of our fine-tuning and of a bare TRL script, on the same rows: python -m train.bench preset=micro.

Both train the same LoRA on the same number of rows with the same settings; ours also trains the delimiters' rows,
pads without a mask and follows the training. Turns alternate, so that a machine that slows down slows both.
"""

import platform
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from pipeline import progress, resolve_run
from pipeline.cli import stage
from pipeline.provenance import commit, versions
from zoomr.errors import UserError

if TYPE_CHECKING:
    from datasets import Dataset
    from trl import SFTTrainer


@dataclass(frozen=True)
class Turn:
    """One training: wall and processor seconds of its steps, and the loss of the first."""

    seconds: float
    cpu_seconds: float
    first_loss: float


@stage("train")
def main(cfg: DictConfig) -> None:
    """See `bench`."""
    bench(cfg)


def bench(cfg: DictConfig) -> None:
    """Measure both and write `bench.output`.

    Parameters
    ----------
    cfg : DictConfig
        The composed configuration of configs/train.yaml.

    Raises
    ------
    UserError
        When there are not enough rows for `bench.steps`.
    """
    from datasets import load_from_disk

    from pipeline import write_json

    data = resolve_run(cfg.sft.data, setting="sft.data", command="python -m data_gen.build")
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    config["sft"] |= {"epochs": 1, "max_steps": None, "log_every": 1, "save_every": 10**9}
    count = config["bench"]["steps"] * config["sft"]["batch_size"] * config["sft"]["accumulation"]
    rows: Any = load_from_disk(str(data / "train"))
    if len(rows) < count:
        raise UserError(f"bench.steps={config['bench']['steps']} takes {count} rows; sft.data={data} has {len(rows)}.")
    rows = rows.select(range(count))
    makers = {"ours": ours, "bare": bare}
    turns: dict[str, list[Turn]] = {name: [] for name in makers}
    # ours, bare, bare, ours, ...: neither is always first
    order = [name for n in range(config["bench"]["rounds"]) for name in (list(makers), list(makers)[::-1])[n % 2]]
    for name in progress(order, unit="turn", description="bench"):
        with TemporaryDirectory() as directory:
            turns[name].append(measure(makers[name](config, rows, Path(directory))))
    result = summarize(turns, sum(len(ids) for ids in rows["input_ids"]))
    settings = {key: config[key] for key in ("sft", "lora", "seed")} | {"model": cfg.model.name, "rows": count}
    where = {"host": platform.machine(), "versions": versions(), "commit": commit()}
    path = Path(cfg.bench.output)
    write_json(path, result | {"settings": settings} | where)
    print(f"ours {result['ours']['tokens_per_s']:,.0f} tokens/s, bare TRL {result['bare']['tokens_per_s']:,.0f}")
    print(f"-> {path}   ratio {result['ratio']:.3f}, by processor time {result['cpu_ratio']:.3f}")


def ours(config: dict[str, Any], rows: "Dataset", directory: Path) -> "SFTTrainer":
    """The trainer of train.sft, with all that watches it at each step."""
    from train.collate import RightPadding
    from train.fit import base_model, make_trainer
    from train.lora import Lora, adapt
    from train.tracking import Tracking
    from train.watch import Watch

    model, tokenizer = base_model(config)
    batches = RightPadding()
    trainer = make_trainer(
        adapt(model, tokenizer, Lora(**config["lora"])), tokenizer, rows, None, batches, config, directory
    )
    tracker = Tracking(mode="disabled").start(directory, "bench", {})
    trainer.add_callback(Watch(tracker, batches, 0))
    return trainer


def bare(config: dict[str, Any], rows: "Dataset", directory: Path) -> "SFTTrainer":
    """What a few lines with TRL give: its collator, its callbacks, PEFT by its option."""
    import torch
    from peft import LoraConfig
    from trl import SFTConfig, SFTTrainer

    from train.fit import base_model

    sft, lora = config["sft"], config["lora"]
    model, tokenizer = base_model(config)
    arguments = SFTConfig(
        output_dir=str(directory),
        num_train_epochs=1,
        per_device_train_batch_size=sft["batch_size"],
        gradient_accumulation_steps=sft["accumulation"],
        learning_rate=sft["learning_rate"],
        lr_scheduler_type=sft["schedule"],
        train_sampling_strategy=sft["sampling"],
        bf16=sft["bf16"],
        gradient_checkpointing=sft["gradient_checkpointing"],
        max_length=sft["max_length"],
        logging_steps=1,
        save_strategy="no",
        seed=config["seed"],
        report_to="none",
        disable_tqdm=True,
        use_cpu=not torch.cuda.is_available(),
    )
    adapter = LoraConfig(
        task_type="CAUSAL_LM",
        r=lora["r"],
        lora_alpha=lora["alpha"],
        lora_dropout=lora["dropout"],
        target_modules=lora["targets"],
    )
    return SFTTrainer(model, arguments, train_dataset=rows, processing_class=tokenizer, peft_config=adapter)


def measure(trainer: "SFTTrainer") -> Turn:
    """Train, and take the time of the steps alone."""
    cpu = time.process_time()
    outcome = trainer.train()
    cpu = time.process_time() - cpu
    first = next(row["loss"] for row in trainer.state.log_history if "loss" in row)
    return Turn(outcome.metrics["train_runtime"], cpu, first)


def summarize(turns: dict[str, list[Turn]], tokens: int) -> dict[str, Any]:
    """Medians over turns, and ours as a multiple of the bare script's speed: the median of the rounds' ratios."""
    figures: dict[str, Any] = {
        name: {
            "tokens_per_s": tokens / median(turn.seconds for turn in mine),
            "tokens_per_cpu_s": tokens / median(turn.cpu_seconds for turn in mine),
            "first_loss": mine[0].first_loss,
            "seconds": [turn.seconds for turn in mine],
        }
        for name, mine in turns.items()
    }
    pairs = list(zip(turns["ours"], turns["bare"], strict=True))
    ratios = {
        "ratio": median(theirs.seconds / mine.seconds for mine, theirs in pairs),
        "cpu_ratio": median(theirs.cpu_seconds / mine.cpu_seconds for mine, theirs in pairs),
    }
    return ratios | {"tokens": tokens} | figures


if __name__ == "__main__":
    main()
