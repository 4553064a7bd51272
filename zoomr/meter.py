"""The meter of a run, budgets in tokens, and the paper's analytic memory model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from zoomr.errors import UserError

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@dataclass
class RunMeter:
    """What a run of `generate` cost, all rows together; pass one as `meter=` and read it afterwards.

    Attributes
    ----------
    prefill_tokens, decode_tokens : int
        Prompt tokens run through the model, and tokens made by decoding steps.
    prefill_seconds, decode_seconds, refresh_seconds : float
        Refreshes (votes, moves, evictions) are a part of decoding.
    device_kv_bytes, host_kv_bytes : int
        Largest bytes of the storages that hold KVs, by tier.
    """

    prefill_tokens: int = 0
    prefill_seconds: float = 0.0
    decode_tokens: int = 0
    decode_seconds: float = 0.0
    refresh_seconds: float = 0.0
    device_kv_bytes: int = 0
    host_kv_bytes: int = 0

    def held(self, tensors: dict[str, list[Any]]) -> None:
        """Note the KV tensors of a store, by tier."""
        sizes = {tier: sum(tensor.untyped_storage().nbytes() for tensor in held) for tier, held in tensors.items()}
        self.device_kv_bytes = max(self.device_kv_bytes, sizes["device"])
        self.host_kv_bytes = max(self.host_kv_bytes, sizes["host"])

    @property
    def decode_tokens_per_s(self) -> float:
        """Tokens made by decoding steps, a second of these."""
        return self.decode_tokens / self.decode_seconds if self.decode_seconds else 0.0

    @property
    def refresh_share(self) -> float:
        """Share of the decoding time that refreshes took."""
        return self.refresh_seconds / self.decode_seconds if self.decode_seconds else 0.0


def resolve_budget(
    budget: int | float | str,
    *,
    bytes_per_token: int | None = None,
    seen_tokens: float | None = None,
    matched: float | None = None,
) -> int:
    """Turn a policy's budget into tokens a row.

    Parameters
    ----------
    budget : int, float or str
        Tokens; a share of the full cache, between 0 and 1; bytes, e.g. "64MB" or "0.5GiB"; or "match".
    bytes_per_token : int or None
        Of the model's KVs (`kv_shape(config).bytes_per_token(dtype.itemsize)`), for a budget in bytes.
    seen_tokens : float or None
        Tokens a full cache would hold, for a share.
    matched : float or None
        Tokens of the method to match.

    Raises
    ------
    UserError
        The budget is of no known form, or what it is relative to was not given.
    """
    if isinstance(budget, bool):
        raise UserError(f"policy.budget: {budget!r} is not a budget")
    if isinstance(budget, int):
        return _at_least_one(budget, budget)
    if isinstance(budget, float):
        if not 0 < budget <= 1:
            raise UserError(f"policy.budget: a share must be in (0, 1], not {budget}")
        return _at_least_one(budget * _given(seen_tokens, budget, "the full cache's tokens"), budget)
    if budget == "match":
        return _at_least_one(_given(matched, budget, "a finished run of the method to match"), budget)
    size = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([KMG]i?B)", budget)
    if size is None:
        raise UserError(f"policy.budget: {budget!r} is not tokens, a share, bytes like 64MB, or match")
    total = float(size[1]) * UNITS[size[2]]
    return _at_least_one(total / _given(bytes_per_token, budget, "the model's KV size"), budget)


def _given(value: float | None, budget: Any, what: str) -> float:
    if value is None:
        raise UserError(f"policy.budget: {budget!r} needs {what}")
    return value


def _at_least_one(tokens: float, budget: Any) -> int:
    if tokens < 1:
        raise UserError(f"policy.budget: {budget!r} is less than one token")
    return int(tokens)


def memory_saving(
    prompt: float, generated: float, window: float, c: float, paragraph: float, summary: float, candidates: float
) -> float:
    """The paper's memory model (section 3.5): tokens of the full cache over tokens of ZoomR's active set.

    MS = (N_p + N_g) / (N_p + c L_R + (|I_all| - c) L_S + N_w)

    Parameters
    ----------
    prompt, generated, window : float
        Tokens: N_p, N_g, N_w.
    c : float
        Zoomed paragraphs.
    paragraph, summary : float
        Mean tokens of a paragraph and of a summary: L_R, L_S.
    candidates : float
        Voted segments: |I_all|.
    """
    active = prompt + c * paragraph + (candidates - c) * summary + window
    return (prompt + generated) / active
