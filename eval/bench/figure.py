"""The figure of a benchmark's card: tokens per second and active tokens against tokens seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eval.reporting.figures import house_style, save

LOOKS = {  # name, colour, marker
    "dynamic_cache": ("transformers' DynamicCache", "#0072B2", "v"),
    "full": ("our full cache", "#000000", "s"),
    "active_only": ("a plain cache of ZoomR's active set", "#999933", "*"),
    "zoomr": ("ZoomR", "#D55E00", "o"),
    "contrast": ("ZoomR, contrast votes", "#E69F00", "D"),
    "bounded": ("ZoomR, 16 summaries at most", "#CC79A7", "P"),
    "streaming_llm": ("StreamingLLM", "#56B4E9", "X"),
    "h2o": ("H2O", "#009E73", "^"),
    "snapkv": ("SnapKV", "#666666", "<"),
}


def draw(card: dict[str, Any], stem: Path) -> Path:
    """Draw a panel a batch size, and one of how active sets grow; returns the drawing."""
    plt = house_style()
    batches = sorted({row["batch"] for row in card["rows"]})
    panels = [(f"batch {batch}", "tokens_per_s", [r for r in card["rows"] if r["batch"] == batch]) for batch in batches]
    if card["growth"]:
        panels.append(("one row", "active_tokens", card["growth"]))
    figure, axes = plt.subplots(1, len(panels), figsize=(2.6 * len(panels) + 0.6, 3.2), squeeze=False)
    handles: dict[str, Any] = {}
    for axis, (title, quantity, rows) in zip(axes[0], panels, strict=True):
        for method in dict.fromkeys(row["method"] for row in rows):
            label, colour, marker = LOOKS.get(method, (method.replace("_", " "), "#666666", "h"))
            points = sorted((row["seen_tokens"], row[quantity]) for row in rows if row["method"] == method)
            (handles[label],) = axis.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=4)
        seen = sorted({row["seen_tokens"] for row in rows})
        axis.set(title=title, xlabel="tokens seen", ylabel=quantity.replace("_per_s", "/s").replace("_", " "))
        axis.set(xscale="log", yscale="log")
        axis.set_xticks(seen, [f"{tokens / 1024:g}K" for tokens in seen], minor=False)
        axis.xaxis.minorticks_off()
    figure.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=3, fontsize=7)
    return save(figure, stem)
