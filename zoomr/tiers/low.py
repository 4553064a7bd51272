"""Low precision: asymmetric quantisation of keys and values, and a tier on the device that keeps them so."""

from __future__ import annotations

import torch
from torch import Tensor

from zoomr.tiers.base import Size, resized

GROUP = 32  # KIVI (arXiv 2402.02750): 32 tokens share a key channel's scale, 32 channels a value's


def quantise(x: Tensor, bits: int, dim: int, group: int = GROUP) -> tuple[Tensor, Tensor, Tensor]:
    """Codes, scales and minima of groups along a dimension (KIVI, arXiv 2402.02750, section 3).

    Parameters
    ----------
    x : (..., n, ...)
    bits : int
    dim : int
        Along which `group` neighbours share a scale; a last group may be smaller.

    Returns
    -------
    codes : uint8, the shape of x
    scales, minima : dtype of x, n replaced by the number of groups
    """
    codes, scales, minima = [], [], []
    for part in x.split(min(group, x.shape[dim]), dim=dim):
        least = part.amin(dim=dim, keepdim=True)
        scale = (part.amax(dim=dim, keepdim=True) - least) / (2**bits - 1)
        steps = (part - least) / torch.where(scale > 0, scale, 1.0)
        codes.append(steps.clamp(0, 2**bits - 1).round().to(torch.uint8))
        scales.append(scale)
        minima.append(least)
    return tuple(torch.cat(parts, dim=dim) for parts in (codes, scales, minima))  # type: ignore[return-value]


def pack(codes: Tensor, bits: int) -> Tensor:
    """Codes (..., d) in bytes (..., ceil(d * bits / 8))."""
    each = 8 // bits
    padded = torch.nn.functional.pad(codes, (0, -codes.shape[-1] % each))
    grouped = padded.unflatten(-1, (-1, each)).to(torch.int32)
    shifts = torch.arange(0, 8, bits, device=codes.device, dtype=torch.int32)
    return (grouped << shifts).sum(-1).to(torch.uint8)


def unpack(packed: Tensor, bits: int, width: int) -> Tensor:
    """Codes (..., width) from bytes."""
    shifts = torch.arange(0, 8, bits, device=packed.device, dtype=torch.int32)
    codes = (packed[..., None].to(torch.int32) >> shifts) & (2**bits - 1)
    return codes.flatten(-2)[..., :width]


def rounded(keys: Tensor, values: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Keys and values (..., n, d) as they come back: keys by channel and tokens, values by token and channels."""
    found = []
    for x, dim in ((keys, -2), (values, -1)):
        codes, scales, minima = quantise(x, bits, dim)
        spread = [part.repeat_interleave(GROUP, dim=dim).narrow(dim, 0, x.shape[dim]) for part in (scales, minima)]
        found.append(codes.to(x.dtype) * spread[0] + spread[1])
    return found[0], found[1]


class LowPrecision:
    """KVs in a few bits, in the order in which they came, with their scales and minima.

    Tokens that come together share the scales of their key channels, at most `GROUP` at a time.

    Parameters
    ----------
    size : Size
    bits : int
        2, 4 or 8.
    """

    def __init__(self, size: Size, bits: int):
        self.size, self.bits = size, bits
        self.used = [0] * size.batch
        layers, heads = size.shape.layers, size.shape.kv_heads
        leading = (layers, size.batch, heads, 0)
        self.codes, self.scales = [], []
        for part, width in enumerate(size.widths):
            bytes_each = -(-width * bits // 8)
            self.codes.append(torch.zeros(*leading, bytes_each, dtype=torch.uint8, device=size.device))
            numbers = 2 * (width if part == 0 else -(-width // GROUP))
            self.scales.append(torch.zeros(*leading, numbers, dtype=size.dtype, device=size.device))
        self.group_of = torch.zeros(size.batch, 0, dtype=torch.int64, device=size.device)
        self.groups = [0] * size.batch

    def clear(self, row: int) -> None:
        """Start a row anew."""
        self.used[row] = self.groups[row] = 0

    def move(self, source: int, target: int) -> None:
        """Let the row at `source` continue at `target`."""
        for buffer in [*self.codes, *self.scales]:
            buffer[:, target] = buffer[:, source]
        self.group_of[target] = self.group_of[source]
        self.used[target], self.groups[target] = self.used[source], self.groups[source]

    def holds(self, rows: int) -> bool:
        """Whether any of the first rows holds something."""
        return any(self.used[:rows])

    def take(self, rows: list[int], kv: list[Tensor]) -> None:
        """Add keys and values (L, R, H, n, d), in order of position."""
        number = kv[0].shape[3]
        self._reserve(max(self.used[row] for row in rows) + number, max(self.groups[row] for row in rows) + number)
        for place, row in enumerate(rows):
            used, first = self.used[row], self.groups[row]
            here = slice(used, used + number)
            keys, values = (part[:, place] for part in kv)
            codes, scales, minima = quantise(keys, self.bits, -2)
            count = scales.shape[-2]
            self.codes[0][:, row, :, here] = pack(codes, self.bits)
            self.scales[0][:, row, :, first : first + count] = torch.cat([scales, minima], dim=-1)
            self.group_of[row, here] = first + torch.arange(number, device=keys.device) // GROUP
            codes, scales, minima = quantise(values, self.bits, -1)
            self.codes[1][:, row, :, here] = pack(codes, self.bits)
            self.scales[1][:, row, :, here] = torch.cat([scales, minima], dim=-1)
            self.used[row], self.groups[row] = used + number, first + count

    def read(self, layer: int, rows: int) -> tuple[list[Tensor], Tensor]:
        """Keys and values (n, H, S, d) of a layer, and which of them are in use, bool (n, S)."""
        filled = max(self.used[:rows])
        group = self.group_of[:rows, None, :filled, None]
        parts = []
        for part, width in enumerate(self.size.widths):
            codes = unpack(self.codes[part][layer, :rows, :, :filled], self.bits, width).to(self.size.dtype)
            if part == 0:
                held = self.scales[0][layer, :rows]
                scales = held.gather(2, group.expand(-1, held.shape[1], -1, held.shape[3]))
                scale, least = scales.chunk(2, dim=-1)
            else:
                scales = self.scales[1][layer, :rows, :, :filled]
                scale, least = (one.repeat_interleave(GROUP, -1)[..., :width] for one in scales.chunk(2, dim=-1))
            parts.append(codes * scale + least)
        used = torch.tensor(self.used[:rows], device=self.size.device)
        return parts, torch.arange(filled, device=self.size.device) < used[:, None]

    def tensors(self) -> list[Tensor]:
        """Codes and scales."""
        return [*self.codes, *self.scales]

    def _reserve(self, slots: int, groups: int) -> None:
        for buffers, needed in ((self.codes, slots), (self.scales[1:], slots), (self.scales[:1], groups)):
            for buffer in buffers:
                if needed > buffer.shape[-2]:
                    index = next(i for i, one in enumerate([*self.codes, *self.scales]) if one is buffer)
                    larger = resized(buffer, self.size.capacity(needed, buffer.shape[-2]))
                    (self.codes if index < 2 else self.scales)[index % 2] = larger
        if slots > self.group_of.shape[-1]:
            self.group_of = resized(self.group_of, self.size.capacity(slots, self.group_of.shape[-1]), dim=-1)
