"""How much of a trace each method keeps, by arithmetic (the paper's section 3.5)."""

from __future__ import annotations

from eval.bench.trace import TraceForm
from zoomr.policies import Budgeted, Policy, Summarized
from zoomr.policies.base import Shape


def active_tokens(policy: Policy, form: TraceForm, seen: int) -> float:
    """KVs of a row on the device after `seen` tokens.

    A full cache holds N_p + N_g; ZoomR N_p + c L_R + (N - c) L_S + N_w, every one of the N summaries voted for unless
    `most_shown` says otherwise; a budget is what it says.
    """
    if isinstance(policy, Budgeted):
        return min(policy.tokens, seen)
    if not isinstance(policy, Summarized):
        return seen
    segments = segments_of(form, seen)
    zoomed = min(getattr(policy, "c", 0), segments)
    most = getattr(policy, "most_shown", None)
    shown = segments - zoomed if most is None else min(most, segments - zoomed)
    held = form.prompt + zoomed * form.paragraph + shown * (form.summary + policy.tail) + policy.window
    return min(held, seen)


def state_bytes(policy: Policy, form: TraceForm, seen: int, shape: Shape, hidden_bytes: int = 4) -> float:
    """Bytes a row of what a summary method remembers to choose by: a mean key for each summary, layer and KV head.

    Or a learned index's key for each summary; and with contrast one query for each layer and head.
    """
    if not isinstance(policy, Summarized) or policy.votes_by == "nobody":
        return 0
    segments = segments_of(form, seen)
    if policy.index is not None:
        return segments * policy.index.rank * hidden_bytes
    habits = shape.query_heads if policy.votes_by == "contrast" else 0
    return shape.layers * (segments * shape.kv_heads + habits) * shape.key_dim * hidden_bytes


def segments_of(form: TraceForm, seen: int) -> float:
    """Paragraphs with their summaries among the first `seen` tokens."""
    return (seen - form.prompt) / (form.paragraph + form.summary)
