"""The transformers cache that hands every layer's keys and values to a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from zoomr.compat import Cache, CacheLayerMixin
from zoomr.errors import UserError

if TYPE_CHECKING:
    from zoomr.stores.base import Store


class StoreLayer(CacheLayerMixin):
    """One layer of a store, seen as a transformers cache layer.

    Rows of a batch have different lengths, which the integers asked for here cannot say: positions are always passed
    to the model and the decode mask comes from the store, so that neither number decides anything.
    """

    is_sliding = False

    def __init__(self, store: Store, layer: int):
        super().__init__()
        self.store, self.layer = store, layer

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to prepare: the store exists before the first token."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Write one token a row and return the keys and values to attend to, (rows, KV heads, slots, d) each."""
        if key_states.shape[2] != 1:
            raise UserError("cache: after the prompt, zoomr takes one token a row and step")
        return self.store.write(self.layer, key_states, value_states)

    def get_seq_length(self) -> int:
        """Tokens seen by the longest row."""
        return self.store.longest

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length and offset a mask would have, were one made from them."""
        return self.store.longest + query_length, 0

    def get_max_length(self) -> int:
        """No maximum."""
        return -1

    def crop(self, tokens_to_remove: int) -> None:
        """Refuse: an evicted token cannot be put back by cropping."""
        raise UserError("cache: zoomr does not crop (assisted and speculative decoding are not supported)")

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Refuse: beams share one store."""
        raise UserError("num_beams: zoomr does not support beam search; use num_beams=1")


def store_cache(store: Store, layers: int) -> Cache:
    """A transformers cache over `store`."""
    return Cache(layers=[StoreLayer(store, layer) for layer in range(layers)])
