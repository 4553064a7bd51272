"""One cell of the benchmark: all contenders at one length and batch; and how active sets grow with length."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from hydra.utils import instantiate

from eval.bench.clock import Turn, take_turn, take_turns
from eval.bench.contenders import Contender, Decoder, PlainCache
from eval.bench.memory_model import active_tokens, state_bytes
from eval.bench.trace import TraceForm
from zoomr.compat import shape_of
from zoomr.errors import UserError
from zoomr.policies import Full, Policy

PLAIN, ACTIVE_ONLY = "dynamic_cache", "active_only"  # contenders that are no method
COMPARED = (PLAIN, "full", ACTIVE_ONLY, "zoomr")  # ratios to these are told


class Bench:
    """Measures on one model.

    Parameters
    ----------
    model : transformers causal language model
    form : TraceForm
        Of what the caches hold.
    methods : dict
        Settings of a policy by name; budgets may be `match`: what zoomr holds.
    """

    def __init__(self, model: Any, form: TraceForm, methods: dict[str, dict[str, Any]]):
        self.model, self.form, self.methods = model, form, methods
        self.shape = shape_of(model.config)
        self.weights = sum(part.numel() * part.element_size() for part in model.parameters())

    def policy(self, name: str, matched: int | None) -> Policy:
        """A method's policy, with `matched` tokens where its budget is to match."""
        if name not in self.methods:
            known = ", ".join([PLAIN, ACTIVE_ONLY, *self.methods])
            raise UserError(f"bench.contenders: there is no {name}, but {known}.")
        settings = self.methods[name]
        if settings.get("budget") != "match":
            return instantiate(settings)
        if matched is None:
            raise UserError(f"bench.contenders: {name} matches the active set of zoomr, which must come before it.")
        return instantiate(settings, budget=matched)

    def cell(self, names: Sequence[str], batch: int, seen: int, steps: int, rounds: int) -> list[dict[str, Any]]:
        """Let the named contenders take turns; returns a row for each.

        Parameters
        ----------
        names : sequence of str
            Methods, `dynamic_cache` and `active_only`: a plain cache of just as many tokens as zoomr's active set.
        batch, seen : int
        steps : int
            Least timed steps of a turn.
        rounds : int

        Raises
        ------
        UserError
            When there is no such contender, or one comes before zoomr that needs its active set.
        """
        contenders: dict[str, Contender] = {}
        policies: dict[str, Policy] = {}
        matched = None
        for name in names:
            if name in (PLAIN, ACTIVE_ONLY):
                policies[name] = Full()
                if name == ACTIVE_ONLY and matched is None:
                    raise UserError("bench.contenders: active_only needs the active set of zoomr, before it.")
                contenders[name] = PlainCache(self.model, batch, seen if name == PLAIN else matched or seen)
            else:
                policies[name] = self.policy(name, matched)
                contenders[name] = Decoder(self.model, batch, seen, policies[name], self.form)
            take_turn(contenders[name], 1, self.model.device)  # buffers grow before the next one needs memory
            if name == "zoomr":
                matched = round(contenders[name].active())
        turns = take_turns(contenders, steps, rounds, self.model.device)
        modelled = {name: seen if name == PLAIN else matched or seen for name in (PLAIN, ACTIVE_ONLY)}
        rows = []
        for name, contender in contenders.items():
            held = {
                place: sum(tensor.untyped_storage().nbytes() for tensor in tensors)
                for place, tensors in contender.tensors().items()
            }
            tokens = modelled.get(name) or active_tokens(policies[name], self.form, seen)
            token_bytes = self.shape.bytes_per_token(self.model.dtype.itemsize)
            rows.append(
                {"method": name, "batch": batch, "seen_tokens": seen}
                | speed(name, turns, batch, seen)
                | {"weights_bytes": self.weights}
                | {"device_kv_bytes": held["device"], "host_kv_bytes": held["host"], "state_bytes": held["state"]}
                | {"transient_peak_bytes": max((turn.transient or 0 for turn in turns[name]), default=0) or None}
                | {"analytic_kv_bytes": round(batch * tokens * token_bytes)}
                | {"analytic_state_bytes": round(batch * state_bytes(policies[name], self.form, seen, self.shape))}
            )
        return rows

    def growth(self, names: Iterable[str], lengths: Iterable[int]) -> list[dict[str, Any]]:
        """Active tokens and the state's memory of one row at each length, measured and by arithmetic; nothing is timed.

        Methods that match the budget of zoomr cannot be among the names.
        """
        rows = []
        for name in names:
            policy = self.policy(name, None)
            for seen in lengths:
                contender = Decoder(self.model, 1, seen, policy, self.form)
                held = sum(tensor.untyped_storage().nbytes() for tensor in contender.tensors()["state"])
                rows.append(
                    {
                        "method": name,
                        "seen_tokens": seen,
                        "active_tokens": contender.active(),
                        "analytic_tokens": active_tokens(policy, self.form, seen),
                        "state_bytes": held,
                        "analytic_state_bytes": round(state_bytes(policy, self.form, seen, self.shape)),
                    }
                )
        return rows


def speed(name: str, turns: dict[str, list[Turn]], batch: int, seen: int) -> dict[str, Any]:
    """Step time, and speed over that of others: medians over rounds, the ratios' of the two turns of one round."""
    mine = [turn.seconds for turn in turns[name]]
    step, active = statistics.median(mine), statistics.mean(turn.active for turn in turns[name])
    faster, spread = {}, {}
    for other in COMPARED:
        if other in turns:
            ratios = [turn.seconds / own for turn, own in zip(turns[other], mine, strict=True)]
            faster[other] = round(statistics.median(ratios), 3)
            spread[other] = [round(min(ratios), 3), round(max(ratios), 3)]
    return {
        "active_tokens": round(active, 1),
        "kv_saving": round(seen / active, 2),
        "step_ms": round(1e3 * step, 2),
        "tokens_per_s": round(batch / step, 2),
        "speed_over": faster,
        "speed_over_range": spread,
    }
