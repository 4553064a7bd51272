"""Draw the picture of the method: python -m eval.picture        (writes results/method.svg and .png)"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "zoomr"

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402

PROMPT, PARAGRAPH, SUMMARY, WINDOW, INK = "#4477AA", "#CC5500", "#228833", "#AA3377", "#222222"
VOTES = (3, 0, 9, 2, 11, 0)
ZOOMED = {2, 4}  # the two with most votes
HOST, DEVICE = 0.0, 2.3  # heights of the two rows


def block(axes: Axes, left: float, bottom: float, width: float, color: str, text: str, present: bool = True) -> None:
    """Draw a run of tokens; an outline where its keys and values are not chosen."""
    face = color if present else "white"
    axes.add_patch(Rectangle((left, bottom), width, 1.0, facecolor=face, edgecolor=color, linewidth=1.2))
    ink = "white" if present else color
    axes.text(left + width / 2, bottom + 0.5, text, ha="center", va="center", fontsize=9, color=ink)


def lift(axes: Axes, left: float, width: float, color: str, text: str) -> None:
    """Draw the same run on the device, with an arrow from the host."""
    middle = left + width / 2
    block(axes, left, DEVICE, width, color, text)
    arrow = {"arrowstyle": "-|>", "color": color, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (middle, DEVICE - 0.08), (middle, HOST + 1.08), arrowprops=arrow)


def draw(axes: Axes) -> None:
    """Draw everything generated (host), what the next token attends to (device), and the votes that decide it."""
    block(axes, 0, HOST, 6, PROMPT, "prompt")
    lift(axes, 0, 6, PROMPT, "prompt")
    left = 6.7
    for index, votes in enumerate(VOTES):
        zoomed, voted = index in ZOOMED, votes > 0 and index not in ZOOMED
        name = f"paragraph {index + 1}"
        block(axes, left, HOST, 9.0, PARAGRAPH, name, zoomed)
        block(axes, left + 9.0, HOST, 1.8, SUMMARY, f"s{index + 1}", voted)
        if zoomed:
            lift(axes, left, 9.0, PARAGRAPH, name)
        if voted:
            lift(axes, left + 9.0, 1.8, SUMMARY, f"s{index + 1}")
        axes.add_patch(Rectangle((left + 9.4, -0.2 - 0.1 * votes), 1.0, 0.1 * votes, facecolor=INK))
        axes.text(left + 9.9, -0.3 - 0.1 * votes, str(votes), ha="center", va="top", fontsize=8, color=INK)
        left += 11.5
    block(axes, left, HOST, 6, WINDOW, "window")
    lift(axes, left, 6, WINDOW, "window")
    axes.text(7.0, DEVICE + 1.2, "Device: what the next token attends to", fontsize=9, color=INK)
    axes.text(17.4, HOST + 1.25, "Host: every key and value so far", fontsize=9, color=INK)
    axes.text(0.0, HOST - 0.75, "Votes of all heads for\nsummaries:", fontsize=9, color=INK, va="center")
    axes.set_xlim(-0.4, left + 6.4)
    axes.set_ylim(-1.75, DEVICE + 1.8)


def main() -> None:
    """Draw and save."""
    figure, axes = plt.subplots(figsize=(11, 2.9))
    draw(axes)
    axes.axis("off")
    figure.subplots_adjust(0.005, 0.0, 0.995, 1.0)
    for suffix in ("svg", "png"):
        metadata = {"Date": None} if suffix == "svg" else None
        figure.savefig(Path("results") / f"method.{suffix}", dpi=150, metadata=metadata)
    print("-> results/method.svg   next: open README.md")


if __name__ == "__main__":
    main()
