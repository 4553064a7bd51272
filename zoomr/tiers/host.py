"""The host tier: every KV of a row, once, token by token, in blocks that are never moved."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from zoomr.tiers.base import Size


class HostRow:
    """All KVs of one row in host memory.

    A token's keys and values of all layers lie together, so that a run of tokens is one contiguous copy. On CUDA the
    blocks are pinned and copies do not wait for each other; they run on the stream of the caller, which keeps them in
    order, and the host itself never reads a value.

    Parameters
    ----------
    size : Size
    """

    def __init__(self, size: Size):
        self.size = size
        self.blocks: list[Tensor] = []
        self.length = 0

    def append(self, kv: list[Tensor]) -> int:
        """Add the next tokens' keys and values, (L, H, n, d) each, on any device; returns the bytes copied."""
        tokens = torch.cat([part.permute(2, 0, 1, 3).flatten(1) for part in kv], dim=1)
        stop = self.length + tokens.shape[0]
        while stop > len(self.blocks) * self.size.block:
            self.blocks.append(self._new_block())
        done = 0
        for block, start, count in self._runs(self.length, stop):
            self.blocks[block][start : start + count].copy_(tokens[done : done + count], non_blocking=True)
            done += count
        self.length = stop
        return tokens.numel() * tokens.element_size()

    def read(self, spans: list[tuple[int, int]], device: torch.device) -> list[Tensor]:
        """Keys and values of half-open ranges of positions, one after the other, on `device`: (L, H, n, d) each."""
        shape = self.size.shape
        number = sum(stop - start for start, stop in spans)
        tokens = torch.empty(number, self._width, dtype=self.size.dtype, device=device)
        done = 0
        for span in spans:
            for block, start, count in self._runs(*span):
                tokens[done : done + count].copy_(self.blocks[block][start : start + count], non_blocking=True)
                done += count
        parts = tokens.split([shape.layers * shape.kv_heads * width for width in self.size.widths], dim=1)
        return [part.view(number, shape.layers, shape.kv_heads, -1).permute(1, 2, 0, 3) for part in parts]

    @property
    def _width(self) -> int:
        return self.size.shape.layers * self.size.shape.kv_heads * sum(self.size.widths)

    def _runs(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """The range as (block, first token in it, number of tokens)."""
        while start < stop:
            block, first = divmod(start, self.size.block)
            count = min(stop - start, self.size.block - first)
            yield block, first, count
            start += count

    def _new_block(self) -> Tensor:
        pin = self.size.device.type == "cuda"
        return torch.empty(self.size.block, self._width, dtype=self.size.dtype, pin_memory=pin)


def runs(positions: Tensor) -> list[tuple[int, int]]:
    """Ascending positions (n,) as half-open ranges."""
    if not len(positions):
        return []
    breaks = (positions.diff() != 1).nonzero()[:, 0] + 1
    starts = torch.cat([positions[:1], positions[breaks]])
    stops = torch.cat([positions[breaks - 1], positions[-1:]]) + 1
    return list(zip(starts.tolist(), stops.tolist(), strict=True))
