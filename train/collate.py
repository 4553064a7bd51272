"""Rows to batches."""

import torch

from train.preflight import IGNORED


class RightPadding:
    """Pads rows on the right and masks nothing.

    Under causal attention no token attends to what comes after it, so padding on the right cannot reach a row, and its
    labels are ignored. Without a mask the attention kernels take their fast causal path.

    Attributes
    ----------
    tokens : int
        Tokens given out so far, padding not counted.
    """

    def __init__(self) -> None:
        self.tokens = 0

    def __call__(self, rows: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        """Return ``input_ids``, ``labels`` and an ``attention_mask`` of ones, each (B, T)."""
        length = max(len(row["input_ids"]) for row in rows)
        self.tokens += sum(len(row["input_ids"]) for row in rows)
        # Which id pads does not matter; the end of sequence is not made to serve, so that it stays supervised.
        ids = [row["input_ids"] + [0] * (length - len(row["input_ids"])) for row in rows]
        labels = [row["labels"] + [IGNORED] * (length - len(row["labels"])) for row in rows]
        return {
            "input_ids": torch.tensor(ids),
            "labels": torch.tensor(labels),
            "attention_mask": torch.ones(len(rows), length, dtype=torch.long),
        }
