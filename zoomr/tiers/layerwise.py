"""The paper's pipeline: active KVs stay on the host, and each layer's are fetched while the one before computes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from zoomr.tiers.base import Size, resized
from zoomr.tiers.slots import SlotTiers


class LayerwiseTiers(SlotTiers):
    """As `SlotTiers`, with the slots in host memory and room for two layers on the device (paper, section 3.4).

    On CUDA the next layer is copied on a side stream; events keep a buffer from being overwritten while it is read.
    On the CPU the same copies run in line.

    Parameters
    ----------
    size : Size
    host : bool
        Keep every KV of a row below the slots too, so that what left can come back.
    """

    def __init__(self, size: Size, host: bool):
        super().__init__(size, host=host, place=torch.device("cpu"))
        shape, cuda = size.shape, size.device.type == "cuda"
        self.buffers = [size.buffers() for _ in range(2)]
        self.new = [  # the step's KVs on their way to the host
            torch.zeros(shape.layers, size.batch, shape.kv_heads, width, dtype=size.dtype, pin_memory=cuda)
            for width in size.widths
        ]
        self.side = torch.cuda.Stream(size.device) if cuda else None
        self._unsettled = False

    def admit(self, row: int, keys: list[Tensor], values: list[Tensor], received: Tensor | None = None) -> None:
        """See `Tiers.admit`."""
        self._settle()
        super().admit(row, keys, values, received)

    def move(self, source: int, target: int) -> None:
        """See `Tiers.move`."""
        self._settle()
        super().move(source, target)

    def open(self, positions: list[int]) -> None:
        """See `Tiers.open`."""
        self._settle()
        super().open(positions)
        self._fetch(0)

    def append(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """See `Tiers.append`."""
        rows = keys.shape[0]
        if self.side is not None:
            torch.cuda.current_stream().wait_stream(self.side)
        for held, tensor in zip(self.new, (keys, values), strict=True):
            held[layer, :rows].copy_(tensor[:, :, 0], non_blocking=True)
        self._unsettled = True
        if layer + 1 < self.size.shape.layers:
            self._fetch(layer + 1)
        self._append(self.buffers[layer % 2], keys, values)

    def read(self, layer: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """See `Tiers.read`."""
        return self._read(self.buffers[layer % 2], layer)

    def keys_of(self, row: int, start: int, stop: int) -> Tensor:
        """See `Tiers.keys_of`."""
        self._settle()
        return super().keys_of(row, start, stop)

    def tensors(self) -> dict[str, list[Tensor]]:
        """See `Tiers.tensors`."""
        held = super().tensors()
        return held | {"device": [part for pair in self.buffers for part in pair], "host": [*self.kv, *held["host"]]}

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
        for buffer, held in zip(self.kv, self.new, strict=True):
            buffer[:, rows, :, slots] = held[:, rows].transpose(0, 1)

    def _fetch(self, layer: int) -> None:
        """Start copying a layer's slots into its buffer, once the layer two before has been read."""
        stream: AbstractContextManager = nullcontext()
        if self.side is not None:
            self.side.wait_stream(torch.cuda.current_stream())
            stream = torch.cuda.stream(self.side)
        with stream:
            for target, source in zip(self.buffers[layer % 2], self.kv, strict=True):
                target.copy_(source[layer], non_blocking=True)

    def _resize(self, capacity: int) -> None:
        self._settle()
        super()._resize(capacity)
        if self.side is not None:
            self.side.synchronize()  # it may still be writing to a buffer that is about to be replaced
        self.buffers = [[resized(part, capacity) for part in pair] for pair in self.buffers]
