"""Budgets in tokens."""

from __future__ import annotations

import re
from typing import Any

from zoomr.errors import UserError

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


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
        Of the model's KVs (`zoomr.compat.shape_of(config).bytes_per_token(dtype.itemsize)`), for a budget in bytes.
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
        raise UserError(f"budget={budget!r}: not a budget.")
    if isinstance(budget, int):
        return _at_least_one(budget, budget)
    if isinstance(budget, float):
        if not 0 < budget <= 1:
            raise UserError(f"budget={budget}: a share must be above 0 and at most 1.")
        return _at_least_one(budget * _given(seen_tokens, budget, "the full cache's tokens"), budget)
    if budget == "match":
        return _at_least_one(_given(matched, budget, "a finished run of the method to match"), budget)
    size = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([KMG]i?B)", budget)
    if size is None:
        raise UserError(f"budget={budget}: tokens, a share, bytes like 64MB, or match are needed.")
    total = float(size[1]) * UNITS[size[2]]
    return _at_least_one(total / _given(bytes_per_token, budget, "the model's KV size"), budget)


def _given(value: float | None, budget: Any, what: str) -> float:
    if value is None:
        raise UserError(f"budget={budget}: this needs {what}.")
    return value


def _at_least_one(tokens: float, budget: Any) -> int:
    if tokens < 1:
        raise UserError(f"budget={budget}: less than one token.")
    return int(tokens)
