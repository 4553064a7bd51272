"""What the cells of a benchmark say together: slopes over length, and a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


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

    batches = sorted({cell["batch"] for cell in cells})
    figure, panels = plt.subplots(1, len(batches), figsize=(4.5 * len(batches), 3.2), squeeze=False)
    for panel, batch in zip(panels[0], batches, strict=True):
        for policy in ("zoomr", "full", "dynamic_cache", "active_only"):
            points = sorted(
                (cell["seen_tokens"], cell["tokens_per_s"])
                for cell in cells
                if (cell["policy"], cell["batch"]) == (policy, batch)
            )
            panel.plot(*zip(*points, strict=True), marker="o", label=policy.replace("_", " "))
        panel.set(title=f"batch {batch}", xlabel="tokens seen", ylabel="tokens per second", xscale="log", yscale="log")
        panel.grid(alpha=0.3)
    panels[0][0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
