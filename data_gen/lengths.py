"""How long a text is in tokens: by the model's tokenizer, or by a rule where the tokenizer is not at hand."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from omegaconf import DictConfig

from pipeline.objects import model_path

PIECE = re.compile(r"\d{1,3}|[^\W\d_]{1,7}|\s*\n|[^\w\s]|_")


def approximate_tokens(text: str) -> int:
    """Estimate a text's tokens without a tokenizer: words in pieces of seven letters, digits by three, signs, lines."""
    return len(PIECE.findall(text))


def token_counter(rule: str, model: DictConfig) -> Callable[[str], int]:
    """Return a function text -> number of tokens.

    Parameters
    ----------
    rule : str
        "model" for the tokenizer of `model`, "approximate" for `approximate_tokens`.
    model : DictConfig
        The model's settings.
    """
    if rule == "approximate":
        return approximate_tokens

    @cache
    def tokenizer() -> Any:
        from zoomr.loading import load_tokenizer

        return load_tokenizer(model_path(model), model.revision)

    # Loaded for the first text, so that a dataset that cannot be read is said before a model that cannot.
    return lambda text: len(tokenizer()(text, add_special_tokens=False)["input_ids"])
