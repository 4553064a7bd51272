"""Before the first step: is every row fit to train on, what will it cost, and what does a row look like."""

import math
from dataclasses import dataclass
from typing import Any

from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from zoomr.errors import UserError
from zoomr.loading import DELIMITERS
from zoomr.prompts import end_of_turn

IGNORED = -100  # label of a token that is not trained on
GREEN, DIM, PLAIN = "\x1b[32m", "\x1b[2m", "\x1b[0m"


@dataclass(frozen=True)
class Facts:
    """What the rows hold, in tokens unless said otherwise."""

    rows: int
    tokens: int
    supervised: int
    longest: int
    summaries: int
    ended: int  # rows whose last supervised token ends the turn

    def counts(self) -> dict[str, Any]:
        """Return the figures for the manifest."""
        return {**vars(self), "supervised_share": round(self.supervised / self.tokens, 4)}


def check_rows(rows: Dataset, tokenizer: PreTrainedTokenizerBase, max_length: int) -> Facts:
    """Measure the rows and refuse those that would train something else than they should.

    Parameters
    ----------
    rows : Dataset
        Columns ``input_ids``, ``labels`` and ``id``.
    tokenizer : PreTrainedTokenizerBase
        That of the model.
    max_length : int
        The most tokens a row may have.

    Raises
    ------
    UserError
        If there are no rows, or one is too long, supervises nothing, supervises a token other than its own, has
        summaries that are not balanced, or if no row ends its turn. Names the row.
    """
    begin, end = (tokenizer.convert_tokens_to_ids(token) for token in DELIMITERS)
    stop = end_of_turn(tokenizer)
    tokens = supervised = longest = summaries = ended = 0
    for row in rows:
        ids = row["input_ids"]
        kept = [label for label in row["labels"] if label != IGNORED]
        marks = [token for token in ids if token in (begin, end)]
        faults = {
            f"has {len(ids)} tokens, more than sft.max_length={max_length}": len(ids) > max_length,
            "has no supervised token": not kept,
            "supervises other tokens than its own": kept != ids[len(ids) - len(kept) :],
            "has summaries whose delimiters are not balanced": marks != [begin, end] * (len(marks) // 2),
        }
        for fault, found in faults.items():
            if found:
                raise UserError(f"sft.data: row {row['id']} {fault}.")
        tokens += len(ids)
        supervised += len(kept)
        longest = max(longest, len(ids))
        summaries += len(marks) // 2
        ended += kept[-1] == stop
    if not summaries:
        raise UserError("sft.data holds no summaries: nothing would be learnt about them.")
    if not ended:
        raise UserError("sft.data: no row supervises the token that ends a turn; the model would not learn to stop.")
    return Facts(len(rows), tokens, supervised, longest, summaries, ended)


def planned_steps(facts: Facts, sft: dict[str, Any], devices: int) -> int:
    """Optimizer steps of the whole training."""
    rows_a_step = sft["batch_size"] * sft["accumulation"] * devices
    return int(sft["max_steps"] or math.ceil(facts.rows * sft["epochs"] / rows_a_step))


def describe(facts: Facts, sft: dict[str, Any], devices: int) -> str:
    """Return what will be trained on, in two lines."""
    return (
        f"{facts.rows:,} rows, {facts.tokens:,} tokens an epoch ({facts.supervised / facts.tokens:.1%} supervised), "
        f"longest {facts.longest:,}, {facts.summaries / facts.rows:.1f} summaries a row, "
        f"{facts.rows - facts.ended:,} rows without the end of their turn\n"
        f"about {planned_steps(facts, sft, devices):,} steps of {sft['batch_size']} x {sft['accumulation']} rows "
        f"on {devices} device(s)"
    )


def legible(row: dict[str, Any], tokenizer: PreTrainedTokenizerBase, edge: int = 600, colour: bool = True) -> str:
    """Return a row's text as a person reads it: its beginning and end, supervised tokens coloured, and the last five.

    Parameters
    ----------
    row : dict
        ``input_ids`` and ``labels``; the supervised tokens are the row's last ones.
    tokenizer : PreTrainedTokenizerBase
        Decodes it, delimiters included.
    edge : int
        Characters kept at each end of the supervised text, and of the prompt.
    colour : bool
        Dim the prompt and colour the rest; without it, brackets mark the supervised text.
    """
    first = next(i for i, label in enumerate(row["labels"]) if label != IGNORED)
    parts = row["input_ids"][:first], row["input_ids"][first:]
    prompt, answer = (_shorten(str(tokenizer.decode(ids)), edge) for ids in parts)
    last = ", ".join(repr(tokenizer.decode([token])) for token in row["input_ids"][-5:])
    text = f"{DIM}{prompt}{PLAIN}{GREEN}{answer}{PLAIN}" if colour else f"{prompt}[{answer}]"
    return f"{text}\nends with {last}"


def _shorten(text: str, edge: int) -> str:
    left_out = len(text) - 2 * edge
    return text if left_out <= 0 else f"{text[:edge]}\n ... {left_out:,} characters ...\n{text[-edge:]}"
