"""The methods. One file each; a policy's fields are its hyper-parameters."""

from zoomr.policies.base import Change, Keeps, Policy, Reading, Records, Shape, Site, State
from zoomr.policies.budgeted import Budgeted
from zoomr.policies.corm import CORM
from zoomr.policies.full import Full
from zoomr.policies.given_zoom import GivenZoom
from zoomr.policies.h2o import H2O
from zoomr.policies.oracle_zoom import OracleZoom
from zoomr.policies.quest import Quest
from zoomr.policies.random_attention import RandomAttention
from zoomr.policies.random_zoom import RandomZoom
from zoomr.policies.recency_zoom import RecencyZoom
from zoomr.policies.rkv import RKV
from zoomr.policies.rpc import RPC
from zoomr.policies.snapkv import SnapKV
from zoomr.policies.streaming_llm import StreamingLLM
from zoomr.policies.summarized import Summarized
from zoomr.policies.sumr import SumR
from zoomr.policies.views import Resident, SlotView, View
from zoomr.policies.zipage import Zipage
from zoomr.policies.zoomr import ZoomR

__all__ = [
    "Quest",
    "Zipage",
    "CORM",
    "RPC",
    "H2O",
    "RKV",
    "Budgeted",
    "Change",
    "Full",
    "GivenZoom",
    "Keeps",
    "OracleZoom",
    "Policy",
    "RandomAttention",
    "RandomZoom",
    "Reading",
    "RecencyZoom",
    "Records",
    "Resident",
    "Shape",
    "Site",
    "SlotView",
    "SnapKV",
    "State",
    "StreamingLLM",
    "SumR",
    "Summarized",
    "View",
    "ZoomR",
]
