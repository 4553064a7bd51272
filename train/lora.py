"""The adapter: LoRA on the linear layers, and rows of its own for the two summary delimiters."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from zoomr.errors import UserError
from zoomr.loading import DELIMITERS, local_files


@dataclass(frozen=True)
class Lora:
    """Settings of the adapter.

    Parameters
    ----------
    r : int
        Rank.
    alpha : float
        The update is scaled by alpha / r.
    dropout : float
        On the adapter's input.
    targets : str or list of str
        Names of the adapted modules.

    Raises
    ------
    UserError
        If a number is out of its range, or no module is named.
    """

    r: int = 16
    alpha: float = 32
    dropout: float = 0.05
    targets: str | list[str] = "all-linear"

    def __post_init__(self) -> None:
        allowed = {
            "r": ("a whole number from 1", isinstance(self.r, int) and self.r >= 1),
            "alpha": ("above 0", self.alpha > 0),
            "dropout": ("from 0 to below 1", 0 <= self.dropout < 1),
            "targets": ("names of modules", bool(self.targets)),
        }
        for name, (what, holds) in allowed.items():
            if not holds:
                raise UserError(f"lora.{name}={getattr(self, name)}: has to be {what}.")


def check_fits(lora: Lora, path: str | Path, revision: str | None = None) -> None:
    """Try the adapter on the model's layers without its weights.

    Parameters
    ----------
    lora : Lora
    path : str or Path
        A base model, as for `zoomr.load`.
    revision : str, optional
        Commit, branch or tag of a hub id.

    Raises
    ------
    UserError
        If the model has no such layers, or they do not take such an adapter.
    """
    config = AutoConfig.from_pretrained(local_files(path, revision))
    with torch.device("meta"):
        _adapt(AutoModelForCausalLM.from_config(config), lora, rows=[0, 1])


def adapt(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, lora: Lora) -> PeftModel:
    """Put a trainable adapter on `model`, whose own weights are frozen.

    The delimiters' rows are trained in the embedding and in the head: one shared row where the two are tied. Naming the
    embedding alone would leave the head of an untied model without them.

    Parameters
    ----------
    model : PreTrainedModel
        Its name is emptied.
    tokenizer : PreTrainedTokenizerBase
        With the delimiters.
    lora : Lora

    Raises
    ------
    UserError
        If the model has no such layers, or they do not take such an adapter.
    """
    return _adapt(model, lora, [tokenizer.convert_tokens_to_ids(token) for token in DELIMITERS])


def _adapt(model: Any, lora: Lora, rows: list[Any]) -> PeftModel:
    # Without a name of the base, checkpoints hold the adapter alone. With one, PEFT would look up the base's
    # vocabulary, find it grown and save both whole embeddings.
    model.name_or_path = ""
    ends = (model.get_input_embeddings(), model.get_output_embeddings())
    if getattr(ends[1], "bias", None) is not None:
        raise UserError(
            f"model.path: the head of {model.config.model_type} has a bias, which PEFT would drop where rows of the "
            "head are trained; choose a model without one."
        )
    config = LoraConfig(
        task_type="CAUSAL_LM",
        r=lora.r,
        lora_alpha=lora.alpha,  # type: ignore[arg-type]
        lora_dropout=lora.dropout,
        target_modules=lora.targets,
        trainable_token_indices={name: rows for name, module in model.named_modules() if module in ends},
    )
    names = [name for name, _ in model.named_modules()]
    listed = [] if isinstance(lora.targets, str) else lora.targets
    unknown = [target for target in listed if not any(f".{name}".endswith(f".{target}") for name in names)]
    if unknown:
        raise UserError(f"lora.targets: {model.config.model_type} has no module {unknown[0]}.")
    try:
        adapted = get_peft_model(model, config)
    except (TypeError, ValueError) as error:
        # Experts that are parameters take no dropout: PEFT adapts them with the linear layers.
        hint = " Set lora.dropout=0, or name linear layers in lora.targets." if "dropout" in str(error) else ""
        raise UserError(f"lora.targets={lora.targets} does not fit {model.config.model_type}: {error}{hint}") from error
    assert isinstance(adapted, PeftModel)
    # The trainer reads the head's weight and bias, and the wrapper of the head's rows has no bias to read.
    head: Any = adapted.get_output_embeddings()
    head.bias = None
    return adapted


def finish_adapter(directory: Path, path: str, revision: str | None) -> None:
    """Make a saved adapter stand alone: it names its base, and two runs of one configuration write the same bytes."""
    config = LoraConfig.from_pretrained(str(directory))
    assert isinstance(config, LoraConfig)
    config.base_model_name_or_path = path
    config.revision = revision
    config.target_modules = sorted(config.target_modules or [])  # a set otherwise, in an order of its own each time
    config.save_pretrained(str(directory))
    (directory / "training_args.bin").unlink()
