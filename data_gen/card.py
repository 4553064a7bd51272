"""The card of a built dataset: where it comes from and how it was made."""

from typing import Any

from omegaconf import DictConfig

from zoomr.prompts import DAY


def card(cfg: DictConfig, manifest: dict[str, Any], counts: dict[str, Any], teacher: str) -> str:
    """Return the card as Markdown with the metadata block that the hub reads."""
    rows = "\n".join(f"| {split} | {number:,} |" for split, number in counts["rows"].items())
    dropped = "\n".join(f"| {reason} | {number:,} |" for reason, number in counts["dropped"].items())
    inputs = "\n".join(f"- {name}: sha256 {entry['sha256'][:16]}" for name, entry in manifest["inputs"].items())
    source = cfg.dataset.get("path") or cfg.dataset.name
    return f"""---
pretty_name: {cfg.dataset.name} with paragraph summaries
task_categories: [text-generation]
tags: [reasoning, summaries, zoomr]
---
# {cfg.dataset.name} with paragraph summaries

Reasoning traces of `{source}`. After each paragraph of the thought stands a short summary of it, between
`<|begin_of_summary|>` and `<|end_of_summary|>`, written by `{teacher}` (see ZoomR, arXiv 2604.10898, section
3.2). The rest of each text is the source's, byte for byte; the source's licence applies to it.

| split | rows |
|---|---|
{rows}

`train/` and `validation/` load with `datasets.load_from_disk`: `input_ids` and `labels` (-100 in the prompt) for the
tokenizer of `{cfg.model.name}`, at most {cfg.build.max_length:,} tokens a row. `train.jsonl` and `validation.jsonl`
hold the texts.

| left out | rows |
|---|---|
{dropped or "| nothing | 0 |"}

`dropped.jsonl` names each. Problems of {", ".join(cfg.dataset.benchmarks) or "no benchmark"} were looked
for and left out; see `validation.html`. Prompts of a template that writes the date tell {DAY:%d %B %Y}.

Made from
{inputs}
"""
