"""Follow a training: a bar with rate and time left, and the figures of each log to the tracker."""

import resource
import time
from typing import Any

import torch
from accelerate import PartialState
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from pipeline import progress
from train.collate import RightPadding
from train.tracking import Tracker

# What the trainer calls a figure, and what it is.
TRAIN = {
    "loss": "loss",
    "grad_norm": "gradient_norm",
    "learning_rate": "learning_rate",
    "mean_token_accuracy": "token_accuracy",
    "epoch": "epoch",
}
EVAL = {"eval_loss": "loss", "eval_mean_token_accuracy": "token_accuracy"}


class Watch(TrainerCallback):
    """Bar and tracker of one training.

    Parameters
    ----------
    tracker : Tracker
        Gets the figures of training and of evaluation, each with the optimizer step.
    batches : RightPadding
        Counts the tokens that this process is given.
    step : int
        The step that a resumed training starts at.
    """

    def __init__(self, tracker: Tracker, batches: RightPadding, step: int) -> None:
        self.tracker = tracker
        self.batches = batches
        self.start = step
        self._start_clock()

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Open the bar."""
        self._start_clock()
        self.bar = progress(total=state.max_steps, initial=self.start, unit="step", description="sft")

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Move the bar."""
        self.bar.update(state.global_step - self.bar.n)

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **_: Any
    ) -> None:
        """Pass the figures on."""
        if "loss" in logs:
            figures = {name: logs[key] for key, name in TRAIN.items() if key in logs}
            tokens, seconds = self.batches.tokens - self.tokens, time.perf_counter() - self.time
            figures["tokens_per_s"] = PartialState().num_processes * tokens / seconds
            figures["memory_gib"] = memory() / 2**30
            self._start_clock()
            self.bar.set_postfix(loss=f"{logs['loss']:.3f}", refresh=False)
            self.tracker.log("train", state.global_step, figures)
        elif "eval_loss" in logs:
            self.tracker.log("eval", state.global_step, {name: logs[key] for key, name in EVAL.items() if key in logs})

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Leave the time of evaluations out of the rate."""
        self._start_clock()

    def _start_clock(self) -> None:
        self.tokens, self.time = self.batches.tokens, time.perf_counter()

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Close the bar."""
        self.bar.close()


def memory() -> int:
    """Peak bytes of the GPU's allocator, or of the process where there is no GPU."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
