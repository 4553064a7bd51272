"""Where KVs live while a batch is decoded: one store a mode and kind of policy."""

from zoomr.stores.base import EvictStore, RecallStore, Scope, Store, StoreSize, group_counts
from zoomr.stores.evict import SlotEvictStore
from zoomr.stores.layerwise import LayerwiseStore
from zoomr.stores.mask import MaskStore
from zoomr.stores.slots import SlotStore

__all__ = [
    "EvictStore",
    "LayerwiseStore",
    "MaskStore",
    "RecallStore",
    "Scope",
    "SlotEvictStore",
    "SlotStore",
    "Store",
    "StoreSize",
    "group_counts",
]
