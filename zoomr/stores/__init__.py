"""Where KVs live while a batch is decoded: one store a mode."""

from zoomr.stores.base import Store, group_counts
from zoomr.stores.mask import MaskStore

__all__ = ["group_counts", "MaskStore", "Store"]
