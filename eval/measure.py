"""One point of the profile, measured in a process of its own."""

import resource
import time
from dataclasses import dataclass
from typing import Any

from hydra.utils import instantiate

from eval.checkpoint import Checkpoint
from eval.workload import Form, Given, analytic_tokens, write_row


@dataclass(frozen=True)
class Point:
    """What is measured: a variant (policy and residency) at a length and a batch."""

    variant: str
    policy: dict[str, Any]
    residency: str
    length: int
    batch: int

    @property
    def id(self) -> str:
        """Key of the point."""
        return f"{self.variant}-{self.length}-{self.batch}"


def measure(point: Point, form: Form, checkpoint: Checkpoint, device: str | None) -> dict[str, Any]:
    """Decode text of a fixed form and read the meters.

    Parameters
    ----------
    point : Point
        What to measure.
    form : Form
        The text.
    checkpoint : Checkpoint
        The model.
    device : str or None
        Where to run.

    Returns
    -------
    dict
        Bytes of the weights, of the KVs on the device and on the host at the last step; ``transient_peak_bytes``, what
        the allocator held at its peak beyond weights and KVs (CUDA only, else None); ``rss_peak_bytes`` of the process
        (CPU only, else None); tokens per second of all rows together, prefill left out; the analytic model beside.
    """
    import torch
    from zoomr.batch import Batch, serve
    from zoomr.plan import Plan

    from zoomr.compat import shape_of
    from zoomr.rows import Request
    from zoomr.summaries.segments import boundary_table, delimiter_ids

    model, tokenizer = checkpoint.load(device)
    boundaries = frozenset(boundary_table(tokenizer))
    delimiters: Any = delimiter_ids(tokenizer)
    reserved = boundaries | set(tokenizer.all_special_ids) | set(delimiters)
    words = [index for index in range(len(tokenizer)) if index not in reserved]
    rows = [write_row(form, point.length, words, min(boundaries), delimiters, seed) for seed in range(point.batch)]
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    on_cuda = model.device.type == "cuda"
    if on_cuda:
        torch.cuda.reset_peak_memory_stats()
    held: dict[str, int] = {}
    clock: list[float] = []
    left = point.batch * point.length

    def count(prompt: int, sample: int, token: int) -> None:
        nonlocal left
        left -= 1
        if left == point.batch * (point.length - 1):
            clock.append(time.perf_counter())
        if left == 0:
            if on_cuda:
                torch.cuda.synchronize()
            clock.append(time.perf_counter())
            held.update(stored_bytes(batch.store))

    plan = Plan(
        policy=instantiate(point.policy),
        boundaries=boundaries,
        stop_ids=frozenset(),
        delimiters=delimiters,
        residency=point.residency,  # type: ignore[arg-type]
        token_callback=count,
    )
    batch = Batch(model, plan, Given([continuation for _, continuation in rows]), point.batch)
    requests = [Request(n, 0, n, prompt, point.length, is_last_sample=True) for n, (prompt, _) in enumerate(rows)]
    usages = [row.usage() for row, _ in serve(batch, requests)]
    peak = torch.cuda.max_memory_allocated() if on_cuda else None
    token_bytes = shape_of(model.config).bytes_per_token(model.dtype.itemsize)
    return {
        "id": point.id,
        "variant": point.variant,
        "length": point.length,
        "batch": point.batch,
        "device": torch.cuda.get_device_name() if on_cuda else "cpu",
        "weights_bytes": weights,
        "device_kv_bytes": held["device"],
        "host_kv_bytes": held["host"],
        "transient_peak_bytes": peak - weights - held["device"] if peak is not None else None,
        "rss_peak_bytes": None if on_cuda else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "analytic_kv_bytes": round(analytic_tokens(form, point.length, point.policy) * token_bytes * point.batch),
        "active_tokens_mean": sum(usage.active_tokens_mean for usage in usages) / len(usages),
        "active_tokens_peak": max(usage.active_tokens_peak for usage in usages),
        "moved_bytes": sum(usage.moved_bytes for usage in usages),
        "tokens_per_s": point.batch * (point.length - 1) / (clock[1] - clock[0]),
    }


def stored_bytes(store: Any) -> dict[str, int]:
    """Bytes of the storages that hold KVs, by tier; tensors that share a storage count once."""
    sizes = {}
    for tier, tensors in store.tensors().items():
        storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
        sizes[tier] = sum(storages.values())
    return sizes
