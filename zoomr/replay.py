"""What each token of a given row would attend to under a policy, from queries and keys that saw everything."""

from __future__ import annotations

import torch
from torch import Tensor

from zoomr.errors import UserError
from zoomr.memory import BatchView, decide
from zoomr.notes import Notes
from zoomr.policies.base import Policy, Records, Site
from zoomr.rows import Request, Row
from zoomr.tiers import MaskTiers, Size


def check_replay(policy: Policy) -> None:
    """Refuse a policy whose choice is not one for all heads, or follows from attention that saw everything.

    Raises
    ------
    UserError
    """
    looks = Records.ATTENTION | Records.HISTORY
    if policy.scope != "shared" or policy.records & looks or policy.chooses or policy.lower.startswith("int"):
        raise UserError(f"policy={type(policy).__name__}: one that chooses for all heads together is needed.")


def visible_under(
    policy: Policy,
    site: Site,
    ids: list[int],
    prompt: int,
    boundaries: frozenset[int],
    delimiters: tuple[int | None, int | None],
    queries: list[Tensor],
    keys: list[Tensor],
    scaling: float,
) -> Tensor:
    """What each token attends to.

    Parameters
    ----------
    policy : Policy
        See `check_replay`.
    site : Site
        Of one row.
    ids : list of int
        The row, T tokens.
    prompt : int
        How many of them are the prompt.
    boundaries, delimiters
        Token ids.
    queries : list of (1, Hq, T, d)
        One a layer, after the rotation.
    keys : list of (H, T, d)
    scaling : float

    Returns
    -------
    (T, T) bool
    """
    length, device = len(ids), site.device
    tiers = MaskTiers(Size(site.shape, 1, keys[0].dtype, device))
    tiers.admit(0, keys, [torch.empty(site.shape.kv_heads, length, site.shape.value_dim, device=device)] * len(keys))
    tiers.valid[:, :, :, prompt:] = False
    tiers.lengths[0] = prompt
    notes = Notes(site, history=0)
    notes.queries, notes.scaling = list(queries), scaling
    row = Row.start(Request(0, 0, 0, ids[:prompt], length - prompt, True), delimiters, ids[prompt:])
    state = policy.start(site)
    state.admit(0, row)
    visible = torch.ones(length, length, dtype=torch.bool, device=device).tril()

    def change() -> None:
        if state.due(row):
            decide(state.decide, BatchView([0], [row], tiers, notes), tiers.apply, None)

    change()
    for position in range(prompt, length):
        row.token = ids[position]
        row.feed(boundaries)
        tiers.open([position])
        visible[position, : position + 1] = tiers.valid[0, 0, 0, : position + 1]
        notes.at[0] = position
        change()
    return visible
