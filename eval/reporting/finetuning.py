"""The fine-tuning that the cells' checkpoint went through: settings beside the paper's (its table 2), and curves."""

from pathlib import Path
from typing import Any

from eval.reporting.cells import ScoredCell
from eval.reporting.figures import BLUE, GREEN, RED, house_style, save
from eval.reporting.sections import Figure, Origin, Part, Section, Sources, Table, not_run
from pipeline import read_manifest
from pipeline.figures import read_figures

TITLE = "Table 2: fine-tuning"
CAPTION = "Losses; held-out problems answered with a full cache at each evaluation; summaries in these answers."
SHARES = {
    "eval/finished": ("answers that end", "#000000", "s"),
    "eval/balanced": ("balanced delimiters", "#E69F00", "o"),
}


def section(cells: list[ScoredCell], runs: Path, paper: dict[str, Any], results: Path) -> Section:
    """Settings and curves of each fine-tuned checkpoint behind the cells."""
    parts: list[Part] = []
    origins = []
    for name, adapter in adapters(cells, runs).items():
        origin = Origin.of_run(adapter, f"Fine-tuning of {name}")
        svg = learning_curves(adapter, results / f"finetuning_{name}")
        parts += [Table(settings_rows(origin, paper)), *([Figure(svg, CAPTION)] if svg else [])]
        parts.append(Sources([origin.link]))
        origins.append(origin)
    if not origins:
        return not_run("table2", TITLE, "python -m train.sft")
    return Section("table2", TITLE, parts, origins)


def adapters(cells: list[ScoredCell], runs: Path) -> dict[str, Path]:
    """The run of train.sft behind each model, found through the manifests of its cells and of its export."""
    found = {}
    for cell in cells:
        for directory in cell.summary["directories"]:
            checkpoint = read_manifest(runs / "generate" / directory)["inputs"].get("checkpoint", {}).get("path", "")
            export = runs / "export" / Path(checkpoint).name
            if cell.model["checkpoint"] == "export" and (export / "manifest.json").exists():
                adapter = runs / "sft" / Path(read_manifest(export)["inputs"]["export.adapter"]["path"]).name
                if (adapter / "manifest.json").exists():
                    found[cell.model["name"]] = adapter
    return found


def settings_rows(origin: Origin, paper: dict[str, Any]) -> list[dict[str, Any]]:
    """One row a setting that the paper names."""
    sft, lora = origin.settings["sft"], origin.settings["lora"]
    ours = {
        "LoRA rank": (lora["r"], paper["rank"]),
        "LoRA alpha": (lora["alpha"], paper["alpha"]),
        "epochs": (sft["epochs"], paper["epochs"]),
        "learning rate": (sft["learning_rate"], paper["learning_rate"]),
        "batch size a device": (sft["batch_size"], paper["batch_size"]),
        "gradient accumulation": (sft["accumulation"], paper["gradient_accumulation"]),
        "longest sequence, tokens": (sft["max_length"], paper["max_length"]),
    }
    return [{"setting": name, "ours": f"{own:g}", "paper": f"{theirs:g}"} for name, (own, theirs) in ours.items()]


def learning_curves(adapter: Path, stem: Path) -> Path | None:
    """Draw what a run of train.sft noted; None where it noted no losses."""
    rows = read_figures(adapter)
    if not any("train/loss" in row for row in rows):
        return None
    plt = house_style()
    figure, (losses, shares, rate) = plt.subplots(1, 3, figsize=(7.2, 2.3))
    losses.plot(*curve(rows, "train"), color=BLUE, label="training")
    losses.plot(*curve(rows, "eval"), color=RED, marker="o", label="validation")
    losses.set(ylabel="loss, nats a token", yscale="log")
    for key, (label, colour, marker) in SHARES.items():
        steps, values = curve(rows, "eval", key)
        shares.plot(steps, [100 * value for value in values], color=colour, marker=marker, label=label)
    shares.set(ylabel="held-out answers (%)", ylim=(-5, 105))
    rate.plot(*curve(rows, "eval", "eval/summaries_per_1k"), color=GREEN, marker="D")
    rate.set(ylabel="summaries per 1,000 tokens", ylim=(0, None))
    for axis in (losses, shares, rate):
        axis.set(xlabel="step", xlim=(0, None))
    for axis in (losses, shares):
        axis.legend()
    return save(figure, stem)


def curve(rows: list[dict[str, float]], axis: str, key: str | None = None) -> tuple[list[float], list[float]]:
    """Steps and values of one figure, the loss by default."""
    name = key or f"{axis}/loss"
    points = [(row[f"{axis}/step"], row[name]) for row in rows if name in row]
    return [step for step, _ in points], [value for _, value in points]
