"""The methods. One file each; a policy's fields are its hyper-parameters."""

from zoomr.policies.base import Evicting, Needs, Recalling, RefreshView, Selection, SlotView
from zoomr.policies.full import Full, FullOffload
from zoomr.policies.given_zoom import GivenZoom
from zoomr.policies.h2o import H2O
from zoomr.policies.oracle_zoom import OracleZoom
from zoomr.policies.random_attention import RandomAttention
from zoomr.policies.random_zoom import RandomZoom
from zoomr.policies.recency_zoom import RecencyZoom
from zoomr.policies.snapkv import SnapKV
from zoomr.policies.streaming_llm import StreamingLLM
from zoomr.policies.sumr import SumR
from zoomr.policies.zoomr import ZoomR

Policy = Recalling | Evicting

__all__ = [
    "H2O",
    "Evicting",
    "Full",
    "FullOffload",
    "GivenZoom",
    "Needs",
    "OracleZoom",
    "Policy",
    "RandomAttention",
    "RandomZoom",
    "Recalling",
    "RecencyZoom",
    "RefreshView",
    "Selection",
    "SlotView",
    "SnapKV",
    "StreamingLLM",
    "SumR",
    "ZoomR",
]
