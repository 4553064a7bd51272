"""The paper's pipeline: active KVs stay on the host, and each layer's are fetched while the one before computes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from zoomr.stores.base import StoreSize, grown
from zoomr.stores.slots import SlotStore


class LayerwiseStore(SlotStore):
    """As `SlotStore`, with the slots in host memory and room for two layers on the device (paper, section 3.4).

    On CUDA the next layer is copied on a side stream; events keep a buffer from being overwritten while it is read.
    On the CPU the same copies run in line.

    Parameters
    ----------
    size : StoreSize
    """

    def __init__(self, size: StoreSize):
        super().__init__(size, tier=torch.device("cpu"))
        shape, cuda = size.shape, size.device.type == "cuda"
        self.buffers = [size.empty(1) for _ in range(2)]
        dimensions = (shape.layers, 2, size.batch, shape.kv_heads, shape.head_dim)
        self.new = torch.zeros(dimensions, dtype=size.dtype, pin_memory=cuda)  # the step's KVs on their way to the host
        self.side = torch.cuda.Stream(size.device) if cuda else None
        self._unsettled = False

    def open(self, positions: list[int]) -> None:
        """See `Store.open`."""
        self._settle()
        super().open(positions)
        self._fetch(0)

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """See `Store.write`."""
        rows = keys.shape[0]
        if self.side is not None:
            torch.cuda.current_stream().wait_stream(self.side)
        self.new[layer, 0, :rows].copy_(keys[:, :, 0], non_blocking=True)
        self.new[layer, 1, :rows].copy_(values[:, :, 0], non_blocking=True)
        self._unsettled = True
        if layer + 1 < self.size.shape.layers:
            self._fetch(layer + 1)
        return self._write(self.buffers[layer % 2][0], keys, values)

    def move(self, source: int, target: int) -> None:
        """See `Store.move`."""
        self._settle()
        super().move(source, target)

    def admit(self, row: int, keys: list[Tensor], values: list[Tensor], ledger: Tensor | None = None) -> None:
        """See `Store.admit`."""
        self._settle()
        super().admit(row, keys, values, ledger)

    def tensors(self) -> dict[str, list[Tensor]]:
        """See `Store.tensors`."""
        return {"device": self.buffers, "host": [self.kv, *super().tensors()["host"]]}

    def keys_of(self, row: int, start: int, stop: int) -> Tensor:
        """See `RecallStore.keys_of`."""
        self._settle()
        return super().keys_of(row, start, stop)

    def _save(self, row: int) -> int:
        self._settle()
        return super()._save(row)

    def _settle(self) -> None:
        """Put the last step's KVs, which have arrived in `new`, into their slots."""
        if not self._unsettled:
            return
        self._unsettled = False
        if self.side is not None:
            torch.cuda.current_stream().synchronize()
        rows, slots = self._rows.cpu(), self._slots.cpu()
        self.kv[:, :, rows, :, slots] = self.new[:, :, rows].permute(2, 0, 1, 3, 4)

    def _fetch(self, layer: int) -> None:
        """Start copying a layer's slots into its buffer, once the layer two before has been read."""
        stream: AbstractContextManager = nullcontext()
        if self.side is not None:
            self.side.wait_stream(torch.cuda.current_stream())
            stream = torch.cuda.stream(self.side)
        with stream:
            self.buffers[layer % 2][0].copy_(self.kv[layer], non_blocking=True)

    def _reserve(self, slots: int) -> None:
        super()._reserve(slots)
        capacity = self.kv.shape[4]
        if capacity > self.buffers[0].shape[4]:
            if self.side is not None:
                self.side.synchronize()  # it may still be writing to a buffer that is about to be replaced
            self.buffers = [grown(buffer, capacity, 4) for buffer in self.buffers]
