"""The card beside the micro base model: how it was made, and how often it is right."""

import json
from pathlib import Path
from typing import Any

from zoomr.runs import sha256, write_atomic
from zoomr.runs.provenance import commit, versions

COMMAND = "python -m train.base"
GENERATORS = ("data_gen/ledger/world.py", "data_gen/ledger/tokens.py", "train/lessons.py")


def write_card(
    directory: Path, recipe: dict[str, Any], parameters: int, minutes: float, problems: int, accuracy: dict[int, float]
) -> None:
    """Write training.json, for programs, and README.md, for people.

    Parameters
    ----------
    directory : Path
        Where the model lies.
    recipe : dict
        Everything that shaped it, its seed and steps among them.
    parameters : int
        Number of weights.
    minutes : float
        Wall time of the training.
    problems : int
        Validation problems of each length.
    accuracy : dict of int to float
        Share of right answers by number of entries.
    """
    facts = {
        "command": COMMAND,
        "recipe": recipe,
        "parameters": parameters,
        "minutes": round(minutes, 1),
        "problems_a_length": problems,
        "accuracy_by_entries": accuracy,
        "generators_sha256": {name: sha256(name) for name in GENERATORS},
        "weights_sha256": sha256(directory / "model.safetensors"),
        "commit": commit(),
        "versions": versions(),
    }
    write_atomic(directory / "training.json", json.dumps(facts, indent=2) + "\n")
    write_atomic(directory / "README.md", page(facts))


def page(facts: dict[str, Any]) -> str:
    """Return the card as Markdown."""
    recipe = facts["recipe"]
    parts = [
        ", ".join(f"{part['curriculum'][f'{kind}_steps']} of {kind}" for kind in ("induction", "recall", "ledger"))
        for part in recipe["rounds"]
    ]
    rows = "\n".join(f"| {size} | {100 * share:.0f} |" for size, share in facts["accuracy_by_entries"].items())
    return f"""# Base model of the micro preset

A Llama of {facts["parameters"]:,} parameters ({recipe["layers"]} layers, width {recipe["width"]},
{recipe["heads"]} query and {recipe["kv_heads"]} KV heads, untied) that solves ledgers
([the world](../../data_gen/ledger/world.py)) step by step. It has never seen a summary.

Made by `{facts["command"]}` with seed {recipe["seed"]}, in {facts["minutes"]} minutes on two CPU cores:
in steps: {"; then ".join(parts)} ([lessons](../lessons.py)).
[training.json](training.json) has the whole recipe, hashes and versions.

Right answers, greedy and free-running with the full cache, {facts["problems_a_length"]} validation problems a length:

| entries | right, per cent |
| --- | --- |
{rows}
"""
