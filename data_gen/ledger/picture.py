"""Draw a ledger: python -m data_gen.ledger.picture        (writes data_gen/ledger/ledger.svg)"""

import random
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "zoomr"

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

from data_gen.ledger.teacher import summarize_paragraph  # noqa: E402
from data_gen.ledger.world import Problem, draw  # noqa: E402

PARAGRAPH, SUMMARY, INK = "#CC5500", "#228833", "#222222"
WIDTH, GAP = 10.6, 0.8  # of a column, and between two


def column(axes: Axes, problem: Problem, index: int) -> None:
    """Draw a paragraph with the summary below it, and the arc of its look-up."""
    left, middle = index * (WIDTH + GAP), index * (WIDTH + GAP) + WIDTH / 2
    text: Any = {"fontsize": 7.0, "family": "monospace", "va": "top", "linespacing": 1.35}
    box: Any = {"boxstyle": "square,pad=0.4", "facecolor": "white", "linewidth": 1.1}
    said = problem.paragraphs[index].replace(". See", ".\nSee").replace(" for ", "\nfor ", 1)
    axes.text(left, 0, said, color=INK, bbox=box | {"edgecolor": PARAGRAPH}, **text)
    summary = summarize_paragraph(problem.paragraphs[index]).replace(" above", "\nabove")
    axes.text(left, -6.4, summary, color=SUMMARY, bbox=box | {"edgecolor": SUMMARY}, **text)
    needs = problem.dependencies[index]
    if needs is not None:
        target = needs * (WIDTH + GAP) + WIDTH / 2
        arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 0.9, "connectionstyle": "arc3,rad=0.28"}
        axes.annotate("", (target, 0.7), (middle, 0.7), arrowprops=arrow)


def main() -> None:
    """Draw a ledger of five lines and save it."""
    problem = draw(random.Random("picture 36"), 5)
    count = len(problem.paragraphs)
    figure, axes = plt.subplots(figsize=(11, 2.7))
    for index in range(count):
        column(axes, problem, index)
    axes.set_xlim(-0.5, count * (WIDTH + GAP))
    axes.set_ylim(-8.3, 4.2)
    axes.axis("off")
    figure.subplots_adjust(0.0, 0.0, 1.0, 1.0)
    path = Path(__file__).with_name("ledger.svg")
    figure.savefig(path, metadata={"Date": None})
    print(f"-> {path}   next: open data_gen/ledger/README.md")


if __name__ == "__main__":
    main()
