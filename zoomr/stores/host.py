"""The host tier: every KV of a row, once, token by token, in blocks that are never moved."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from zoomr.stores.base import StoreSize


class HostRow:
    """All KVs of one row in host memory.

    A token's keys and values of all layers lie together, so that a run of tokens is one contiguous copy. On CUDA the
    blocks are pinned and copies do not wait for each other; they run on the stream of the caller, which keeps them in
    order, and the host itself never reads a value.

    Parameters
    ----------
    size : StoreSize
    """

    def __init__(self, size: StoreSize):
        self.size = size
        self.blocks: list[Tensor] = []
        self.length = 0

    def append(self, kv: Tensor) -> int:
        """Add the next tokens' KVs, (L, 2, H, n, d) on any device; returns the bytes copied."""
        tokens = kv.permute(3, 0, 1, 2, 4).contiguous()
        stop = self.length + tokens.shape[0]
        while stop > len(self.blocks) * self.size.block:
            self.blocks.append(self._new_block())
        done = 0
        for block, start, count in self._runs(self.length, stop):
            self.blocks[block][start : start + count].copy_(tokens[done : done + count], non_blocking=True)
            done += count
        self.length = stop
        return tokens.numel() * tokens.element_size()

    def read(self, spans: list[tuple[int, int]], device: torch.device) -> Tensor:
        """KVs of half-open ranges of positions, one after the other, on `device`: (L, 2, H, n, d)."""
        shape = self.size.shape
        number = sum(stop - start for start, stop in spans)
        tokens = torch.empty(
            number, shape.layers, 2, shape.kv_heads, shape.head_dim, dtype=self.size.dtype, device=device
        )
        done = 0
        for span in spans:
            for block, start, count in self._runs(*span):
                tokens[done : done + count].copy_(self.blocks[block][start : start + count], non_blocking=True)
                done += count
        return tokens.permute(1, 2, 3, 0, 4)

    def _runs(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """The range as (block, first token in it, number of tokens)."""
        while start < stop:
            block, first = divmod(start, self.size.block)
            count = min(stop - start, self.size.block - first)
            yield block, first, count
            start += count

    def _new_block(self) -> Tensor:
        shape = self.size.shape
        dimensions = (self.size.block, shape.layers, 2, shape.kv_heads, shape.head_dim)
        return torch.empty(dimensions, dtype=self.size.dtype, pin_memory=self.size.device.type == "cuda")
