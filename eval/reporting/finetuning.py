"""The fine-tuning that the cells' checkpoint went through: settings beside the paper's (its table 2), and curves."""

from pathlib import Path
from typing import Any

from eval.reporting import html
from eval.reporting.cells import ScoredCell
from eval.reporting.learning import learning_curves
from eval.reporting.origins import Origin, of_manifest
from eval.reporting.sections import Section, not_run
from pipeline import read_manifest

ANCHOR, TITLE = "table2", "Table 2: fine-tuning"
CAPTION = "Losses; held-out problems answered with a full cache at each evaluation; summaries in these answers."


def section(cells: list[ScoredCell], runs: Path, paper: dict[str, Any], results: Path) -> tuple[Section, list[Origin]]:
    """Settings and curves of each fine-tuned checkpoint, and where they come from.

    Parameters
    ----------
    cells : list of ScoredCell
        The cells that are compared.
    runs : Path
        The directory of the preset's stages.
    paper : dict
        ``training`` of results/paper.yaml.
    results : Path
        Gets the curves.

    Returns
    -------
    tuple of Section and list of Origin
        Not run, and no origin, where no checkpoint's fine-tuning is on disk.
    """
    origins, body = [], ""
    for name, adapter in adapters(cells, runs).items():
        origin = of_manifest(f"Fine-tuning of {name}", f"sft-{adapter.name}", read_manifest(adapter))
        drawing = learning_curves(adapter, results / f"finetuning_{name}")
        body += html.table(settings_rows(origin, paper)) + (html.figure(drawing, CAPTION) if drawing else "")
        body += html.sources([link(origin)])
        origins.append(origin)
    if not origins:
        return not_run(ANCHOR, TITLE, "python -m train.sft"), []
    return Section(ANCHOR, TITLE, body), origins


def link(origin: Origin) -> html.Link:
    """A link to an origin by its name."""
    return html.Link(origin.name, origin.anchor)


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
