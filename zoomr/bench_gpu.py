"""Equality and speed on a GPU, in one run of under six minutes.

python -m zoomr.bench_gpu --out results/bench/gpu.json

First, tiny random models: every policy's eviction against its mask, in fp32 and bf16. Then a random model of
Llama-3.1-8B's shape in bf16, its caches filled with random KVs of 16K tokens: the full cache, transformers' cache and
its offloaded cache, and ZoomR with both residencies; peak memory beside the weights, tokens/s, bytes moved, and how
far layerwise copies hide behind computation. A cell that does not fit is recorded with its reason.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

from pipeline import write_atomic
from zoomr.batch import Batch
from zoomr.bench import Contender, Ours, Plain
from zoomr.compat import DynamicCache, shape_of
from zoomr.errors import UserError
from zoomr.forcing import Forcing
from zoomr.plan import Plan
from zoomr.policies import H2O, Full, Policy, RandomAttention, SnapKV, StreamingLLM, SumR, ZoomR
from zoomr.rows import Request
from zoomr.stores import LayerwiseStore
from zoomr.synthetic import BEGIN, BOUNDARY, END, Structure

CELL_SECONDS = 12.0
SMALL = Structure(prompt=9, paragraph=24, summary=6, gap=7)
POLICIES: dict[str, Policy] = {
    "full": Full(),
    "zoomr": ZoomR(window=16),
    "sumr": SumR(window=16),
    "streaming_llm": StreamingLLM(budget=40),
    "h2o": H2O(budget=40),
    "snapkv": SnapKV(budget=48, interval=16, history=8),
    "random_attention": RandomAttention(budget=48, interval=16, recent=8),
}


def random_model(dtype: torch.dtype, **shape: Any) -> LlamaForCausalLM:
    """A random Llama model on the GPU."""
    torch.manual_seed(0)
    with torch.device("cuda"):
        return LlamaForCausalLM._from_config(LlamaConfig(**shape), dtype=dtype).eval()


def forced_logits(model: Any, policy: Policy, mode: str, residency: str = "active") -> torch.Tensor:
    """Logits of two rows that are fed the small structure, (2, n, V)."""
    targets = [[SMALL.token(SMALL.prompt + number, row) for number in range(160)] for row in range(2)]
    generator = torch.Generator().manual_seed(0)
    words = torch.randint(10, 60, (2, 160), generator=generator).tolist()
    targets = [
        [word if token == 4 else token for token, word in zip(*pair, strict=True)]
        for pair in zip(targets, words, strict=True)
    ]
    forcing = Forcing(targets, keep_logits=True)
    plan = Plan(policy, frozenset({BOUNDARY}), frozenset(), (BEGIN, END), mode, residency)  # type: ignore[arg-type]
    batch = Batch(model, plan, forcing, 2)
    batch.admit([Request(row, 0, row, words[row][: 9 - 4 * row], 160, True) for row in range(2)])
    while batch.rows:
        batch.step()
    return torch.stack([torch.stack(logits) for logits in forcing.logits])


def equalities() -> list[dict[str, Any]]:
    """Gather against mask for every policy, in fp32 and bf16."""
    rows = []
    shape: dict[str, Any] = {"vocab_size": 64, "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 4}
    shape |= {"num_attention_heads": 8, "num_key_value_heads": 2, "initializer_range": 0.1}
    for dtype in (torch.float32, torch.bfloat16):
        model = random_model(dtype, **shape)
        for name, policy in POLICIES.items():
            expected = forced_logits(model, policy, "mask")
            for residency in ("active", "layerwise") if policy.recalls else ("active",):
                found = forced_logits(model, policy, "gather", residency)
                rows.append(
                    {
                        "policy": name,
                        "residency": residency,
                        "dtype": str(dtype).removeprefix("torch."),
                        "largest_difference": float((found - expected).abs().max()),
                        "logits_std": float(expected.std()),
                        "top1_agreement": float((found.argmax(-1) == expected.argmax(-1)).float().mean()),
                    }
                )
    return rows


class Offloaded(Plain):
    """transformers' offloaded `DynamicCache`."""

    def __init__(self, model: Any, batch: int, length: int):
        super().__init__(model, batch, 1)
        self.length, self.cache = length, DynamicCache(offloading=True)
        shape = shape_of(model.config)
        for layer in range(shape.layers):
            kv = torch.randn(2, batch, shape.kv_heads, length, shape.head_dim, dtype=model.dtype, device=model.device)
            self.cache.update(kv[0], kv[1], layer)


def make(name: str, model: Any, batch: int, seen: int) -> Contender:
    """A contender of the large model."""
    if name == "dynamic_cache":
        return Plain(model, batch, seen)
    if name == "full_offload":
        return Offloaded(model, batch, seen)
    if name == "full":
        return Ours(model, batch, seen, Full(), Structure())
    return Ours(model, batch, seen, ZoomR(), Structure(), "layerwise" if name == "zoomr_layerwise" else "active")


def measure(name: str, model: Any, batch: int, seen: int) -> dict[str, Any]:
    """One cell: speed within `CELL_SECONDS`, and memory beside what was there before it."""
    cell: dict[str, Any] = {"policy": name, "batch": batch, "seen_tokens": seen}
    before = torch.cuda.memory_allocated()
    try:
        contender = make(name, model, batch, seen)
        model.set_attn_implementation("zoomr" if isinstance(contender, Ours) else "sdpa")
        contender.step()
        torch.cuda.reset_peak_memory_stats()
        times: list[float] = []
        started = time.perf_counter()
        while len(times) < 70 and time.perf_counter() - started < CELL_SECONDS:
            start = time.perf_counter()
            contender.step()  # ends with the tokens on the host
            times.append(time.perf_counter() - start)
    except torch.cuda.OutOfMemoryError as error:
        return cell | {"tokens_per_s": None, "reason": str(error).split(".")[0]}
    held = contender.kv_bytes()
    cell |= {
        "steps": len(times),
        "active_tokens": contender.active(),
        "step_ms": statistics.mean(times) * 1e3,
        "tokens_per_s": batch / statistics.mean(times),
        "weights_bytes": before,
        "peak_allocated_beside_weights": torch.cuda.max_memory_allocated() - before,
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "device_kv_bytes": held["device"],
        "host_kv_bytes": held["host"],
    }
    if isinstance(contender, Ours):
        rows = contender.batch.rows
        refreshes = sum(row.refreshes for row in rows)
        moved = sum(row.moved_bytes for row in rows)
        cell |= {"refreshes": refreshes, "moved_bytes_per_refresh": moved / refreshes if refreshes else None}
        if isinstance(contender.batch.store, LayerwiseStore):
            cell["copy_only_ms"] = copy_only(contender.batch.store) * 1e3
    return cell


def copy_only(store: LayerwiseStore) -> float:
    """Seconds to fetch all layers with nothing to compute."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for layer in range(store.size.shape.layers):
        store.buffers[layer % 2][0].copy_(store.kv[layer], non_blocking=True)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def with_ratios(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the ratios to the full caches of the same batch, and the overlap of copies with computation."""
    for cell in cells:
        same = {other["policy"]: other for other in cells if other["batch"] == cell["batch"]}
        if cell["tokens_per_s"] is None:
            continue
        for name, field in (("dynamic_cache", "tokens_per_s"), ("dynamic_cache", "peak_allocated_beside_weights")):
            other = same[name].get(field)
            cell[f"{field}_to_{name}"] = cell[field] / other if other else None
        cell["kv_tokens_saved"] = cell["seen_tokens"] / cell["active_tokens"]
        active = same.get("zoomr", {})
        if "copy_only_ms" in cell and active.get("step_ms"):
            serial = cell["copy_only_ms"] + active["step_ms"]
            hidden = serial - cell["step_ms"]
            cell["overlap"] = hidden / min(cell["copy_only_ms"], active["step_ms"])
    return cells


def main() -> None:
    """Run everything and write it to a JSON file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/bench/gpu.json"))
    parser.add_argument("--seen", type=int, default=16384)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 16])
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise UserError("bench_gpu needs a CUDA device; zoomr.bench measures on the CPU")
    report: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "equalities": equalities(),
        "cells": [],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    shape = {"vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
    shape |= {"num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072}
    model = random_model(torch.bfloat16, **shape)
    for batch in options.batch:
        for name in ("dynamic_cache", "full", "zoomr", "zoomr_layerwise", "full_offload"):
            report["cells"].append(measure(name, model, batch, options.seen))
            print(json.dumps(report["cells"][-1]), flush=True)
            torch.cuda.empty_cache()  # between cells: each starts from the weights alone
            write_atomic(options.out, json.dumps(report, indent=1) + "\n")
    with_ratios(report["cells"])
    write_atomic(options.out, json.dumps(report, indent=1) + "\n")
    print(f"-> {options.out}")


if __name__ == "__main__":
    main()
