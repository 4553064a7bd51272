"""The adapter: LoRA on the linear layers, and rows of its own for the two summary delimiters."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peft import LoraConfig, PeftModel, get_peft_model
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from zoomr.loading import DELIMITERS


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
    """

    r: int = 16
    alpha: float = 32
    dropout: float = 0.05
    targets: str | list[str] = "all-linear"


def adapt(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, lora: Lora) -> PeftModel:
    """Put a trainable adapter on `model`, whose own weights are frozen.

    The delimiters' rows are trained in the embedding and in the head: one shared row where the two are tied. Naming the
    embedding alone would leave the head of an untied model without them.
    """
    rows: Any = [tokenizer.convert_tokens_to_ids(token) for token in DELIMITERS]
    # Without a name of the base, checkpoints hold the adapter alone. With one, PEFT would look up the base's
    # vocabulary, find it grown and save both whole embeddings.
    model.name_or_path = ""
    config = LoraConfig(
        task_type="CAUSAL_LM",
        r=lora.r,
        lora_alpha=lora.alpha,  # type: ignore[arg-type]
        lora_dropout=lora.dropout,
        target_modules=lora.targets,
        trainable_token_indices={"embed_tokens": rows, "lm_head": rows},
    )
    adapted = get_peft_model(model, config)
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
