"""The summaries' mean keys, kept on the device for as long as a row lives."""

from __future__ import annotations

import torch
from torch import Tensor

from zoomr.compat import KVShape
from zoomr.selection import Votes


class SummaryBank:
    """Mean summary keys of a batch, and the votes cast since each row's last refresh.

    Parameters
    ----------
    shape : KVShape
    batch : int
    device
    """

    def __init__(self, shape: KVShape, batch: int, device: torch.device, block: int = 16):
        self.block = block
        self.means = torch.zeros(shape.layers, batch, shape.kv_heads, 0, shape.head_dim, device=device)
        self.counts = torch.zeros(batch, 0, dtype=torch.float64, device=device)
        self.mass = torch.zeros(batch, 0, dtype=torch.float64, device=device)

    def add(self, row: int, index: int, mean: Tensor) -> None:
        """Enter the mean key (L, H, d) of summary `index`."""
        if index >= self.means.shape[3]:
            pad = torch.nn.functional.pad
            self.means = pad(self.means, (0, 0, 0, self.block))
            self.counts, self.mass = pad(self.counts, (0, self.block)), pad(self.mass, (0, self.block))
        self.means[:, row, :, index] = mean

    def of(self, rows: list[int], summaries: int) -> Tensor:
        """Mean keys of the first `summaries` of some rows, (L, R, H, N, d)."""
        return self.means[:, rows, :, :summaries]

    def cast(self, rows: list[int], votes: Votes) -> None:
        """Add votes (R, N) to the rows' tallies."""
        self.counts[rows, : votes.counts.shape[1]] += votes.counts
        self.mass[rows, : votes.mass.shape[1]] += votes.mass

    def draw(self, rows: list[int], summaries: int) -> Votes:
        """Take the rows' tallies and start new ones."""
        votes = Votes(self.counts[rows, :summaries], self.mass[rows, :summaries])
        self.clear(rows)
        return votes

    def clear(self, rows: list[int]) -> None:
        """Start the rows' tallies anew."""
        self.counts[rows] = 0.0
        self.mass[rows] = 0.0

    def move(self, source: int, target: int) -> None:
        """Let the row at `source` continue at `target`."""
        self.means[:, target] = self.means[:, source]
        self.counts[target], self.mass[target] = self.counts[source], self.mass[source]
