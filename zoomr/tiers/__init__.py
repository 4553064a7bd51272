"""Where KVs are: slots on the device and at most one tier below them; or a mask over all, the oracle."""

from zoomr.policies.base import Policy, Records, group_counts
from zoomr.tiers.base import Size, Tiers
from zoomr.tiers.layerwise import LayerwiseTiers
from zoomr.tiers.low import LowPrecision
from zoomr.tiers.mask import MaskTiers
from zoomr.tiers.slots import SlotTiers

__all__ = ["LayerwiseTiers", "LowPrecision", "MaskTiers", "Size", "SlotTiers", "Tiers", "make_tiers"]

BITS = {"int8": 8, "int4": 4, "int2": 2}


def make_tiers(policy: Policy, size: Size, mode: str) -> Tiers:
    """The tiers that a policy works on, in mode "gather" or "mask"."""
    groups = group_counts(policy.scope, size.shape)
    received = Records.ATTENTION in policy.records
    bits = BITS.get(policy.lower)
    if mode == "mask":
        return MaskTiers(size, groups, received, bits)
    if policy.lower == "layerwise":
        return LayerwiseTiers(size, host=True)
    low = None if bits is None else LowPrecision(size, bits)
    return SlotTiers(size, groups, received, host=policy.lower == "host", low=low)
