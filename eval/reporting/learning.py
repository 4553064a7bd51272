"""The curves of a fine-tuning: losses, and how the model answers held-out problems in the format."""

from pathlib import Path

from eval.reporting.figures import house_style, save
from pipeline.figures import read_figures

SHARES = {
    "eval/finished": ("answers that end", "#000000", "s"),
    "eval/balanced": ("balanced delimiters", "#E69F00", "o"),
}


def learning_curves(adapter: Path, stem: Path) -> Path | None:
    """Draw the figures that a run of train.sft noted.

    Parameters
    ----------
    adapter : Path
        The run.
    stem : Path
        Where to write, without suffix.

    Returns
    -------
    Path or None
        The SVG; None where the run noted none.
    """
    rows = read_figures(adapter)
    if not any("train/loss" in row for row in rows):
        return None
    plt = house_style()
    figure, (losses, shares, rate) = plt.subplots(1, 3, figsize=(7.2, 2.3))
    losses.plot(*curve(rows, "train"), color="#0072B2", label="training")
    losses.plot(*curve(rows, "eval"), color="#D55E00", marker="o", label="validation")
    losses.set(ylabel="loss, nats a token", yscale="log")
    for key, (label, colour, marker) in SHARES.items():
        steps, values = curve(rows, "eval", key)
        shares.plot(steps, [100 * value for value in values], color=colour, marker=marker, label=label)
    shares.set(ylabel="held-out answers (%)", ylim=(-5, 105))
    rate.plot(*curve(rows, "eval", "eval/summaries_per_1k"), color="#009E73", marker="D")
    rate.set(ylabel="summaries per 1,000 tokens", ylim=(0, None))
    for axis in (losses, shares, rate):
        axis.set(xlabel="step", xlim=(0, None))
    for axis in (losses, shares):
        axis.legend()
    return save(figure, stem)[0]


def curve(rows: list[dict[str, float]], axis: str, key: str | None = None) -> tuple[list[float], list[float]]:
    """Steps and values of one figure, the loss by default."""
    name = key or f"{axis}/loss"
    points = [(row[f"{axis}/step"], row[name]) for row in rows if name in row]
    return [step for step, _ in points], [value for _, value in points]
