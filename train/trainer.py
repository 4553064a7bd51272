"""TRL's trainer with a learning rate of its own for the two delimiters' rows."""

from typing import Any

import torch
from trl import SFTTrainer

ROWS = "trainable_tokens_delta"  # in the names that PEFT gives them


class SummaryTrainer(SFTTrainer):
    """An `SFTTrainer` for text with summaries.

    The delimiters' rows start as means of other rows and have to become tokens that stand for something new, while the
    adapter starts from a model that can already write. In a training of a few dozen steps a common rate leaves them
    where they began.

    Parameters
    ----------
    delimiter_rate : float
        Learning rate of the delimiters' rows, as a multiple of the others'.
    """

    def __init__(self, *args: Any, delimiter_rate: float, **kwargs: Any) -> None:
        self.delimiter_rate = delimiter_rate
        super().__init__(*args, **kwargs)

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """Build the optimizer before the schedule, which keeps the ratio of the rates."""
        model = model or self.model
        optimizer = super().create_optimizer(model)
        rows = {id(weight) for name, weight in model.named_parameters() if ROWS in name}
        for group in list(optimizer.param_groups):
            own = [weight for weight in group["params"] if id(weight) in rows]
            if own:
                group["params"] = [weight for weight in group["params"] if id(weight) not in rows]
                optimizer.add_param_group(group | {"params": own, "lr": group["lr"] * self.delimiter_rate})
        return optimizer
