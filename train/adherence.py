"""While training: does the model already write summaries the way it should, on problems it does not train on?"""

from statistics import fmean
from typing import Any

from datasets import Dataset
from transformers import PreTrainedTokenizerBase, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from train.format import keeps_format
from train.preflight import IGNORED
from train.tracking import Tracker
from zoomr import Full, generate
from zoomr.results import Generation


class Adherence(TrainerCallback):
    """Answers held-out prompts with a full cache at each evaluation, and tracks the format.

    Parameters
    ----------
    tracker : Tracker
        Gets the figures of `adherence`, beside those of the evaluation.
    tokenizer : PreTrainedTokenizerBase
        That of the model.
    rows : Dataset
        Held-out rows; what comes before their supervised tokens is the prompt.
    problems, max_new_tokens, batch_size : int
        How many are answered, how long an answer may get, how many are decoded together.
    temperature : float
        Of the answers; 0 is greedy.
    """

    def __init__(
        self,
        tracker: Tracker,
        tokenizer: PreTrainedTokenizerBase,
        rows: Dataset,
        problems: int,
        max_new_tokens: int,
        batch_size: int,
        temperature: float,
    ) -> None:
        self.tracker = tracker
        self.tokenizer = tokenizer
        self.prompts = [prompt(row) for row in rows.select(range(min(problems, len(rows))))]
        self.options: dict[str, Any] = {
            "max_new_tokens": max_new_tokens,
            "batch_size": batch_size,
            "temperature": temperature,
        }

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any = None, **_: Any
    ) -> None:
        """Generate and track."""
        base = model.get_base_model()  # with the adapter's layers in it
        attention = base.config._attn_implementation
        base.eval()
        outcome = generate(base, self.tokenizer, self.prompts, policy=Full(), **self.options)
        base.set_attn_implementation(attention)
        base.train()
        self.tracker.log("eval", state.global_step, adherence(outcome))


def prompt(row: dict[str, Any]) -> list[int]:
    """Return the tokens of a row that come before its first supervised one."""
    first = next(i for i, label in enumerate(row["labels"]) if label != IGNORED)
    return row["input_ids"][:first]


def adherence(outcome: list[Generation]) -> dict[str, float]:
    """Return how well generations keep to the format.

    Returns
    -------
    dict of str to float
        ``balanced``: share that `keeps_format`; ``finished``: share that
        ended by themselves; ``summaries_per_1k``: summaries in 1,000 generated tokens; ``length``: mean tokens.
    """
    tokens = sum(one.stats.generated_tokens for one in outcome)
    return {
        "balanced": fmean(keeps_format(one.stats.balanced, one.stats.summaries) for one in outcome),
        "finished": fmean(one.status == "stop" for one in outcome),
        "summaries_per_1k": 1000 * sum(one.stats.summaries for one in outcome) / tokens,
        "length": tokens / len(outcome),
    }
