"""Before the first step: one pass over the longest batch, to learn early what the training needs."""

import time
from typing import Any

import torch
from datasets import Dataset
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from train.collate import RightPadding
from train.watch import memory


class Rehearsal(TrainerCallback):
    """Runs the longest rows forward and backward, prints memory and time, and leaves no trace in the training.

    Lack of memory shows here and not hours later, when the longest row happens to come.

    Parameters
    ----------
    rows : Dataset
        The rows to train on.
    tokens : int
        Tokens of the whole training, from which its time is estimated.
    """

    def __init__(self, rows: Dataset, tokens: int) -> None:
        self.rows = rows
        self.tokens = tokens

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any = None, **_: Any
    ) -> None:
        """Rehearse."""
        lengths = [len(ids) for ids in self.rows["input_ids"]]
        longest = sorted(range(len(lengths)), key=lengths.__getitem__)[-args.per_device_train_batch_size :]
        padded = RightPadding()(list(self.rows.select(longest)))
        batch = {name: tensor.to(model.device) for name, tensor in padded.items()}
        model.train()
        began = time.perf_counter()
        with torch.random.fork_rng():
            # As the trainer does it: the head makes the logits of one tile of positions at a time.
            model(**batch, fused_lm_head=True).loss.backward()
        gib = memory() / 2**30  # waits for the GPU, so that the clock below shows the whole pass
        seconds = time.perf_counter() - began
        model.zero_grad()
        hours = self.tokens / sum(lengths[row] for row in longest) * seconds / 3600
        print(
            f"the longest batch, {tuple(batch['input_ids'].shape)} tokens, takes {seconds:.2g} s and {gib:.1f} GiB; "
            f"the whole training about {hours:.2g} h"
        )
