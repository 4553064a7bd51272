"""ZoomR: decoding of long reasoning with summaries as an index into the KV cache.

>>> from zoomr import ZoomR, generate, load
>>> model, tokenizer = load("path-or-hub-id")
>>> outputs = generate(model, tokenizer, prompts, policy=ZoomR(c=2, k=2, window=512), max_new_tokens=16384)

Names are imported when they are first used, so that `import zoomr` does not load torch.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "generate": "zoomr.generation",
    "stream": "zoomr.generation",
    "decode": "zoomr.custom",
    "Sampling": "zoomr.sampling",
    "Generation": "zoomr.results",
    "Usage": "zoomr.results",
    "Fidelity": "zoomr.comparison",
    "Forced": "zoomr.forcing",
    "fidelity": "zoomr.comparison",
    "teacher_forced": "zoomr.forcing",
    "load": "zoomr.loading",
    "load_index": "zoomr.summaries.index",
    "resolve_budget": "zoomr.budgets",
    "Full": "zoomr.policies",
    "ZoomR": "zoomr.policies",
    "SumR": "zoomr.policies",
    "StreamingLLM": "zoomr.policies",
    "H2O": "zoomr.policies",
    "RandomAttention": "zoomr.policies",
    "RandomZoom": "zoomr.policies",
    "SnapKV": "zoomr.policies",
    "Quest": "zoomr.policies",
    "Zipage": "zoomr.policies",
    "CORM": "zoomr.policies",
    "RPC": "zoomr.policies",
    "RKV": "zoomr.policies",
    "RecencyZoom": "zoomr.policies",
    "OracleZoom": "zoomr.policies",
    "GivenZoom": "zoomr.policies",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'zoomr' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
