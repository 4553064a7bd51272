"""Speed and memory of decoding after long traces: python -m eval.bench (see configs/bench.yaml)."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from eval.bench.figure import draw
from eval.bench.measure import Bench
from eval.bench.trace import TraceForm
from eval.checkpoint import find_checkpoint
from pipeline import progress, write_atomic
from pipeline.cli import stage
from pipeline.provenance import commit, versions
from zoomr.errors import UserError


def measure(cfg: DictConfig) -> None:
    """Measure every length and batch anew, write the card after each, and draw it.

    Parameters
    ----------
    cfg : DictConfig
        The composed configuration of configs/bench.yaml.

    Raises
    ------
    UserError
        When a setting or the checkpoint cannot be used.
    """
    settings: Any = OmegaConf.to_container(cfg.bench, resolve=True)
    form = TraceForm(**settings["form"])
    refuse(settings, form)
    torch.set_num_threads(settings["threads"] or os.cpu_count() or 1)
    model, named = model_of(cfg, settings)
    bench, output = Bench(model, form, settings["methods"]), Path(settings["output"])
    card = described(settings, named, model.device) | {"rows": [], "growth": []}
    cells = [(seen, batch) for seen in sorted(settings["lengths"]) for batch in sorted(settings["batches"])]
    with progress(total=len(cells) + 1, unit="cell", description="bench") as bar:
        card["growth"] = bench.growth(settings["growth"]["methods"], settings["growth"]["lengths"])
        bar.update()
        for seen, batch in cells:
            card["rows"] += bench.cell(settings["contenders"], batch, seen, settings["steps"], settings["rounds"])
            card["ended"] = now()
            write_atomic(output, json.dumps(card, indent=1) + "\n")
            bar.update()
    print(*map(line, card["rows"]), sep="\n")
    print("->", output, draw(card, output.with_suffix("")))


def refuse(settings: dict[str, Any], form: TraceForm) -> None:
    """Refuse lengths that hold no trace, and counts below one.

    Raises
    ------
    UserError
    """
    for name in ("rounds", "steps"):
        if settings[name] < 1:
            raise UserError(f"bench.{name}={settings[name]}: at least 1 is needed.")
    shortest = min([*settings["lengths"], *settings["growth"]["lengths"]], default=form.prompt)
    if shortest < form.prompt:
        raise UserError(f"bench.lengths: {shortest} tokens are fewer than the prompt's {form.prompt}.")


def model_of(cfg: DictConfig, settings: dict[str, Any]) -> tuple[Any, str]:
    """The checkpoint, or a model of random weights; and what it is called."""
    if cfg.checkpoint != "random":
        checkpoint = find_checkpoint(cfg)
        return checkpoint.load(cfg.device)[0], f"{cfg.model.name}, {checkpoint.settings['checkpoint']}"
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    with torch.device(cfg.device or ("cuda" if torch.cuda.is_available() else "cpu")):
        dtype = getattr(torch, settings["dtype"])
        return LlamaForCausalLM._from_config(LlamaConfig(**settings["shape"]), dtype=dtype).eval(), "random weights"


def described(settings: dict[str, Any], model: str, device: torch.device) -> dict[str, Any]:
    """What the measurements were made with."""
    cuda = device.type == "cuda"
    return {
        "command": shlex.join(["python", "-m", "eval.bench", *sys.argv[1:]]),
        "commit": commit(),
        "versions": versions(),
        "host": platform.node(),
        "device": torch.cuda.get_device_name(device) if cuda else platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "model": model,
        "settings": settings,
        "started": now(),
    }


def line(row: dict[str, Any]) -> str:
    """A row for people."""
    ratios = ", ".join(f"{ratio:.2f}x {name}" for name, ratio in row["speed_over"].items() if name != row["method"])
    return (
        f"{row['seen_tokens']:>7,} x {row['batch']:<3} {row['method']:<15} {row['active_tokens']:>8,.0f} active "
        f"{row['step_ms']:>9.1f} ms a step   speed: {ratios}"
    )


def now() -> str:
    """The time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


main = stage("bench")(measure)

if __name__ == "__main__":
    main()
