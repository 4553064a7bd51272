"""One fine-tuning: rows and a base model in, an adapter out. The loop is that of TRL's SFTTrainer."""

import sys
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from datasets import Dataset, load_from_disk
from hydra.utils import instantiate
from peft import PeftModel
from transformers import PreTrainedTokenizerBase, PrinterCallback, ProgressCallback, set_seed
from trl import SFTConfig, SFTTrainer

from pipeline import read_manifest
from train.adherence import Adherence
from train.checkpoints import last_checkpoint, step_of
from train.collate import RightPadding
from train.lora import Lora, adapt, check_fits, finish_adapter
from train.preflight import check_rows, describe, legible, planned_steps
from train.rehearsal import Rehearsal
from train.tracking import Tracking
from train.trainer import SummaryTrainer
from train.under_policy import UnderPolicy
from train.watch import Watch
from zoomr.errors import UserError
from zoomr.loading import load


def fit(config: dict[str, Any], data: Path, directory: Path) -> dict[str, Any]:
    """Train an adapter into `directory/adapter`, going on from the last checkpoint there.

    Parameters
    ----------
    config : dict
        The composed configuration of configs/train.yaml.
    data : Path
        A finished run of data_gen.build.
    directory : Path
        The run directory.

    Returns
    -------
    dict
        Rows, tokens, supervised tokens, steps and the last losses.

    Raises
    ------
    UserError
        If a row cannot be trained on, or the memory does not suffice.
    """
    # Denormal numbers in attention's backward halve a CPU's speed. Threads inherit this at their start, so it is first.
    torch.set_flush_denormal(True)
    sft, model_settings, processes = config["sft"], config["model"], _processes()
    train = load_from_disk(str(data / "train"))
    train = train.select(range(min(len(train), config["limit"] or len(train))))
    # A dataset without rows has no columns either, and cannot be loaded.
    held_out = read_manifest(data)["counts"]["rows"]["validation"]
    validation = load_from_disk(str(data / "validation")) if held_out else None
    lora = Lora(**config["lora"])
    check_fits(lora, model_settings["path"], model_settings["revision"])
    model, tokenizer = base_model(config)
    facts = check_rows(train, tokenizer, sft["max_length"])
    adapted = adapt(model, tokenizer, lora)
    learn_under(adapted, tokenizer, sft["policy"], sft["policy_share"])
    checkpoint = from_first(last_checkpoint(directory / "checkpoints") if processes.is_main_process else None)
    batches = RightPadding()
    trainer = make_trainer(
        adapted, tokenizer, train, validation, batches, config, directory / "checkpoints", fresh=checkpoint is None
    )
    if processes.is_main_process:
        print(legible(train[0], tokenizer, colour=sys.stdout.isatty()))
        print(describe(facts, sft, processes.num_processes))
        tracking = Tracking(**{name: value for name, value in config["tracker"].items() if name != "_target_"})
        tracker = tracking.start(directory, "sft", config, step=step_of(checkpoint))
        with tracker:
            if processes.num_processes == 1:
                passes = planned_steps(facts, sft, 1) * sft["batch_size"] * sft["accumulation"] / facts.rows
                trainer.add_callback(Rehearsal(train, round(passes * facts.tokens)))
            if validation and sft["adherence"]["problems"] and not trainer.is_fsdp_enabled:
                trainer.add_callback(Adherence(tracker, tokenizer, validation, **sft["adherence"]))
            trainer.add_callback(Watch(tracker, batches, step_of(checkpoint)))
            _train(trainer, checkpoint, sft)
    else:
        _train(trainer, checkpoint, sft)
    trainer.save_model(str(directory / "adapter"))
    if processes.is_main_process:
        finish_adapter(directory / "adapter", model_settings["path"], model_settings["revision"])
    return facts.counts() | {"steps": trainer.state.global_step} | last_losses(trainer)


def from_first(value: Any) -> Any:
    """Return the first process's `value` in every process of the launch."""
    _processes()  # joins them, which the broadcast takes for granted
    return broadcast_object_list([value])[0]


def base_model(config: dict[str, Any]) -> tuple[Any, PreTrainedTokenizerBase]:
    """Load what is fine-tuned, all seeds set."""
    settings = config["model"]
    set_seed(config["seed"])
    return load(
        settings["path"],
        settings["revision"],
        dtype=settings["dtype"],
        device="cpu",
        attn_implementation=settings["attn_implementation"],
    )


def learn_under(
    model: PeftModel, tokenizer: PreTrainedTokenizerBase, policy: dict[str, Any] | None, share: float
) -> None:
    """Let a share of the rows see what a policy of configs/method would leave of the cache; None: all see all."""
    if policy:
        settings = {key: value for key, value in policy.items() if key not in ("name", "show")}
        UnderPolicy(instantiate(settings), tokenizer, share).install(model.get_base_model())


def make_trainer(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    train: Dataset,
    validation: Dataset | None,
    batches: RightPadding,
    config: dict[str, Any],
    directory: Path,
    fresh: bool = True,
) -> SFTTrainer:
    """Return TRL's trainer for rows that carry their labels; it changes neither the rows nor the tokenizer."""
    sft = config["sft"]
    arguments = SFTConfig(
        output_dir=str(directory),
        num_train_epochs=sft["epochs"],
        max_steps=sft["max_steps"] or -1,
        per_device_train_batch_size=sft["batch_size"],
        per_device_eval_batch_size=sft["batch_size"],
        gradient_accumulation_steps=sft["accumulation"],
        learning_rate=sft["learning_rate"],
        lr_scheduler_type=sft["schedule"],
        warmup_steps=sft["warmup"],
        weight_decay=sft["weight_decay"],
        max_grad_norm=sft["max_grad_norm"],
        train_sampling_strategy=sft["sampling"],
        bf16=sft["bf16"],
        gradient_checkpointing=sft["gradient_checkpointing"],
        max_length=None,  # the default cuts rows at 1,024 tokens; check_rows has refused those over sft.max_length
        router_aux_loss_coef=0.0,  # routers are frozen, and padding would count as text that they have to balance
        packing=False,  # neighbours in a packed row would attend to each other
        logging_steps=sft["log_every"],
        eval_strategy="steps" if validation else "no",
        eval_steps=sft["evaluate_every"],
        eval_on_start=fresh and validation is not None,  # what there is to improve on
        save_strategy="steps",
        save_steps=sft["save_every"],
        save_total_limit=1,
        seed=config["seed"],
        data_seed=config["seed"],
        report_to="none",
        use_cpu=not torch.cuda.is_available(),
    )
    trainer = SummaryTrainer(
        model=model,
        args=arguments,
        train_dataset=train,
        eval_dataset=validation,
        processing_class=tokenizer,
        data_collator=batches,
        delimiter_rate=sft["delimiter_rate"],
    )
    for callback in (ProgressCallback, PrinterCallback):
        trainer.remove_callback(callback)
    return trainer


def last_losses(trainer: SFTTrainer) -> dict[str, float]:
    """Return the last training and validation loss that were logged."""
    history = trainer.state.log_history
    return {
        name: next(row[key] for row in reversed(history) if key in row)
        for name, key in (("loss", "loss"), ("validation_loss", "eval_loss"))
        if any(key in row for row in history)
    }


def _processes() -> PartialState:
    return PartialState(cpu=not torch.cuda.is_available())


def _train(trainer: SFTTrainer, checkpoint: Path | None, sft: dict[str, Any]) -> None:
    try:
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    except torch.OutOfMemoryError as error:
        raise UserError(
            f"The GPU's memory does not hold a step with sft.batch_size={sft['batch_size']}, "
            f"sft.gradient_checkpointing={sft['gradient_checkpointing']} and sft.max_length={sft['max_length']}: "
            "lower the first or the last, set the second, or train on more GPUs (configs/accelerate/)."
        ) from error
