"""What a row keeps for each of its finished summaries, on the device for as long as the row lives."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 16


class SummaryKeys:
    """One vector for each summary of each row: mean keys (L, B, H, N, d), or keys of a learned index (B, N, r).

    Parameters
    ----------
    leading : tuple of int
        Dimensions before that of the summaries.
    width : int
    row_dim : int
        Which of the leading dimensions is the row's.
    device
    """

    def __init__(self, leading: tuple[int, ...], width: int, row_dim: int, device: torch.device):
        self.row_dim = row_dim
        self.keys = torch.zeros(*leading, 0, width, device=device)

    def add(self, row: int, index: int, key: Tensor) -> None:
        """Enter the vector of summary `index`."""
        if index >= self.keys.shape[-2]:
            self.keys = torch.nn.functional.pad(self.keys, (0, 0, 0, BLOCK))
        self.keys.select(self.row_dim, row).select(-2, index).copy_(key)

    def of(self, rows: list[int], summaries: int) -> Tensor:
        """The vectors of the first `summaries` of some rows."""
        chosen = self.keys.narrow(-2, 0, summaries)
        return chosen.index_select(self.row_dim, torch.tensor(rows, device=self.keys.device))

    def move(self, source: int, target: int) -> None:
        """Let the row at `source` continue at `target`."""
        self.keys.select(self.row_dim, target).copy_(self.keys.select(self.row_dim, source))
