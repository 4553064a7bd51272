"""The full cache of one row, written and read by many tokens at once: for teacher forcing in chunks."""

from __future__ import annotations

from torch import Tensor

from zoomr.stores.base import StoreSize
from zoomr.stores.mask import MaskStore


class ChunkStore(MaskStore):
    """A full cache whose chunks of tokens attend to the columns that any of them sees.

    Parameters
    ----------
    size : StoreSize
        Of one row.
    """

    def __init__(self, size: StoreSize):
        super().__init__(size)
        self._start = self._stop = 0
        self._columns: Tensor | None = None

    def open_chunk(self, start: int, visible: Tensor) -> Tensor:
        """Prepare a forward of the n tokens from position `start` on.

        Parameters
        ----------
        start : int
        visible : (n, start + n) bool
            What each token attends to, itself included.

        Returns
        -------
        (n, S) bool
            The same for the S columns that `write` returns.
        """
        self._start, self._stop = start, visible.shape[1]
        self._reserve(self._stop)
        seen = visible.any(0)
        self._columns = None if bool(seen.all()) else seen.nonzero()[:, 0]
        return visible if self._columns is None else visible[:, self._columns]

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write the chunk's KVs (1, H, n, d) and return what is attended to, (1, H, S, d) each."""
        held = self.kv[layer, :, :1]
        held[0, :, :, self._start : self._stop] = keys
        held[1, :, :, self._start : self._stop] = values
        held = held[..., : self._stop, :]
        if self._columns is not None:
            held = held.index_select(3, self._columns)
        return held[0], held[1]
