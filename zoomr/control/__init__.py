"""Deciding, step by step, which rows are refreshed, and carrying the policy's choice to the store."""

from zoomr.control.evicting import EvictionControl
from zoomr.control.recalling import RecallControl

__all__ = ["EvictionControl", "RecallControl"]
