"""Decoding speed and KV bytes of ZoomR, the full cache and transformers' own, side by side.

python -m zoomr.bench --out results/bench/decode.json
python -m zoomr.bench --seen 2048 16384 --batch 1 --steps 16 --repeats 2

The model is random, of SmolLM2-135M's shape; caches are filled with random KVs in a synthetic structure. All methods
of a cell take turns within one run, so that ratios compare like with like.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

from pipeline import write_atomic
from zoomr.batch import Batch
from zoomr.bench_figure import draw, slopes
from zoomr.compat import CACHE_KWARG, DynamicCache, layer_tensors, shape_of
from zoomr.plan import Plan, Residency
from zoomr.policies import Full, Policy, ZoomR
from zoomr.synthetic import BEGIN, BOUNDARY, END, Script, Structure, fill


class Contender(Protocol):
    """One way to decode."""

    def step(self) -> None:
        """Make one token a row."""

    def active(self) -> float:
        """Tokens that a row's next query attends to, itself included; the mean over rows."""
        ...

    def kv_bytes(self) -> dict[str, int]:
        """Bytes of KVs, by tier."""
        ...


class Plain:
    """A transformers forward with a `DynamicCache` of `length` tokens."""

    def __init__(self, model: Any, batch: int, length: int):
        self.model, self.length = model, length
        self.cache = DynamicCache()
        shape = shape_of(model.config)
        for layer in range(shape.layers):
            kv = torch.randn(2, batch, shape.kv_heads, length, shape.head_dim, dtype=model.dtype, device=model.device)
            self.cache.update(kv[0], kv[1], layer)
        self.ids = torch.full((batch, 1), BOUNDARY, device=model.device)

    @torch.inference_mode()
    def step(self) -> None:
        """See `Contender.step`."""
        positions = torch.full_like(self.ids, self.length)
        output = self.model(input_ids=self.ids, position_ids=positions, use_cache=True, **{CACHE_KWARG: self.cache})
        output.logits[:, -1].argmax(-1).tolist()
        self.length += 1

    def active(self) -> float:
        """See `Contender.active`."""
        return self.length + 1

    def kv_bytes(self) -> dict[str, int]:
        """See `Contender.kv_bytes`."""
        tensors = [tensor for pair in layer_tensors(self.cache) for tensor in pair]
        return {"device": sum(map(storage_bytes, tensors)), "host": 0}


class Ours:
    """Our loop with a policy."""

    def __init__(
        self,
        model: Any,
        batch: int,
        seen: int,
        policy: Policy,
        structure: Structure,
        residency: Residency = "active",
    ):
        plan = Plan(policy, frozenset({BOUNDARY}), frozenset(), (BEGIN, END), residency=residency)
        self.batch = Batch(model, plan, Script(structure, seen + 1), batch)
        fill(self.batch, structure, seen, batch)

    def step(self) -> None:
        """See `Contender.step`."""
        self.batch.step()

    def active(self) -> float:
        """See `Contender.active`."""
        return statistics.mean(row.held + 1 for row in self.batch.rows)

    def kv_bytes(self) -> dict[str, int]:
        """See `Contender.kv_bytes`."""
        return {tier: sum(map(storage_bytes, held)) for tier, held in self.batch.store.tensors().items()}


def storage_bytes(tensor: torch.Tensor) -> int:
    """Bytes of the storage behind a tensor."""
    return tensor.untyped_storage().nbytes()


def smol_model(dtype: torch.dtype = torch.float32) -> LlamaForCausalLM:
    """A random model of SmolLM2-135M's shape."""
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=2**17,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    return LlamaForCausalLM._from_config(config, dtype=dtype).eval()


def take_turn(model: Any, contender: Contender, steps: int) -> tuple[float, list[float]]:
    """Seconds a step over `steps` steps, and the active tokens after each."""
    model.set_attn_implementation("zoomr" if isinstance(contender, Ours) else "sdpa")
    contender.step()  # the first step after a change of places finds cold caches, or buffers that must grow
    active = []
    start = time.perf_counter()
    for _ in range(steps):
        contender.step()
        active.append(contender.active())
    return (time.perf_counter() - start) / steps, active


def measure(
    model: Any, batch: int, seen: int, policy: ZoomR, steps: int, repeats: int, full_steps: int
) -> list[dict[str, Any]]:
    """Time one cell; returns a row a method.

    Parameters
    ----------
    steps : int
        Timed steps of ZoomR and of the cache of its active set in each repeat: enough for its share of refreshes.
    full_steps : int
        Timed steps of the full caches, whose steps are all alike.
    """
    makers: dict[str, Callable[[], Contender]] = {
        "zoomr": lambda: Ours(model, batch, seen, policy, Structure()),
        "full": lambda: Ours(model, batch, seen, Full(), Structure()),
        "dynamic_cache": lambda: Plain(model, batch, seen),
        "active_only": lambda: Plain(model, batch, round(contenders["zoomr"].active()) - 1),
    }
    timed = {name: full_steps if name in ("full", "dynamic_cache") else steps for name in makers}
    contenders: dict[str, Contender] = {}
    for name, make in makers.items():
        contenders[name] = make()
        take_turn(model, contenders[name], 1)  # buffers grow before the next cache needs memory
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    active: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, contender in contenders.items():
            step_seconds, counts = take_turn(model, contender, timed[name])
            seconds[name].append(step_seconds)
            active[name] += counts
    step = {name: statistics.median(times) for name, times in seconds.items()}
    rows = []
    for name, contender in contenders.items():
        held = contender.kv_bytes()
        rows.append(
            {
                "policy": name,
                "batch": batch,
                "seen_tokens": seen,
                "timed_steps": timed[name],
                "active_tokens": round(statistics.mean(active[name]), 1),
                "step_ms": round(step[name] * 1e3, 2),
                "tokens_per_s": round(batch / step[name], 2),
                "ratio_to_dynamic_cache": round(step["dynamic_cache"] / step[name], 3),
                "ratio_to_own_full": round(step["full"] / step[name], 3),
                "step_cost_to_active_only": round(step[name] / step["active_only"], 3),
                "kv_saving": round(seen / statistics.mean(active[name]), 2),
                "device_kv_bytes": held["device"],
                "host_kv_bytes": held["host"],
                "analytic_device_kv_bytes": int(
                    batch * statistics.mean(active[name]) * shape_of(model.config).bytes_per_token(model.dtype.itemsize)
                ),
            }
        )
    return rows


def main() -> None:
    """Measure all cells and write them to a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/bench/decode.json"))
    parser.add_argument("--seen", type=int, nargs="+", default=[2048, 4096, 8192, 16384, 32768])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--full-steps", type=int, default=16, help="steps of the full caches, which are all alike")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--largest", type=int, default=16384 * 8, help="cells of more tokens, all rows, are left out")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = smol_model()
    report: dict[str, Any] = {
        "model": "random weights, SmolLM2-135M's shape",
        "dtype": str(model.dtype).removeprefix("torch."),
        "policy": "ZoomR(c=2, k=2, window=512)",
        "structure": vars(Structure()),
        "repeats": options.repeats,
        "threads": options.threads,
        "peak_memory_bytes": None,
        "peak_memory_reason": "only CUDA counts its allocations: python -m zoomr.bench_gpu",
        "processor": platform.processor() or platform.machine(),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "cells": [],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for batch in options.batch:
        for seen in options.seen:
            if batch * seen > options.largest:
                continue
            rows = measure(model, batch, seen, ZoomR(), options.steps, options.repeats, options.full_steps)
            report["cells"] += rows
            report["slopes"] = slopes(report["cells"])
            write_atomic(options.out, json.dumps(report, indent=1) + "\n")
            print(*map(json.dumps, rows), sep="\n", flush=True)
    draw(report["cells"], options.out.with_suffix(".svg"))
    print(f"-> {options.out} and {options.out.with_suffix('.svg')}")


if __name__ == "__main__":
    main()
