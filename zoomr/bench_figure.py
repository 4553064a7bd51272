"""What the cells of a benchmark say together: slopes over length, and a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
LINES = {
    "zoomr": ("ZoomR", "#D55E00", "o"),
    "active_only": ("a plain cache of ZoomR's active set alone", "#E69F00", "D"),
    "full": ("our full cache", "#000000", "s"),
    "dynamic_cache": ("transformers' DynamicCache", "#0072B2", "v"),
}


def slopes(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Milliseconds that a step grows by with every 1,000 tokens seen, by policy and batch (least squares)."""
    found = []
    for policy, batch in sorted({(cell["policy"], cell["batch"]) for cell in cells}):
        points = [cell for cell in cells if (cell["policy"], cell["batch"]) == (policy, batch)]
        if len(points) > 1:
            seen = [cell["seen_tokens"] / 1000 for cell in points]
            slope = float(np.polyfit(seen, [cell["step_ms"] for cell in points], 1)[0])
            found.append({"policy": policy, "batch": batch, "step_ms_per_1000_tokens": round(slope, 3)})
    return found


def draw(cells: list[dict[str, Any]], path: Path) -> None:
    """Tokens per second against tokens seen, a panel a batch size."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullLocator, ScalarFormatter

    batches = sorted({cell["batch"] for cell in cells})
    figure, panels = plt.subplots(
        1, len(batches), figsize=(3.6 * len(batches), 3.2), squeeze=False, layout="constrained"
    )
    for panel, batch in zip(panels[0], batches, strict=True):
        for policy, (label, colour, marker) in LINES.items():
            points = sorted(
                (cell["seen_tokens"], cell["tokens_per_s"])
                for cell in cells
                if (cell["policy"], cell["batch"]) == (policy, batch)
            )
            panel.plot(*zip(*points, strict=True), color=colour, marker=marker, label=label)
        seen = sorted({cell["seen_tokens"] for cell in cells if cell["batch"] == batch})
        panel.set(title=f"batch {batch}", xlabel="tokens seen", xscale="log", yscale="log")
        panel.set_xticks(seen, [f"{tokens // 1024}K" for tokens in seen])
        panel.set_yticks([tick for tick in TICKS if panel.get_ylim()[0] < tick < panel.get_ylim()[1]])
        panel.yaxis.set_major_formatter(ScalarFormatter())
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_minor_locator(NullLocator())
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("tokens per second")
    figure.legend(
        *panels[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False, fontsize=9
    )
    figure.savefig(path)
    plt.close(figure)
