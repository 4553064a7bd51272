"""The card beside the micro base model: how it was made, and how often it is right."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from data_gen.ledger import problems as draw_problems
from pipeline import sha256, write_atomic
from pipeline.provenance import commit, versions

GENERATORS = ("data_gen/ledger/world.py", "data_gen/ledger/tokens.py", "train/lessons.py")


def write_card(
    directory: Path,
    recipe: dict[str, Any],
    parameters: int,
    runs: list[dict[str, Any]],
    problems: int,
    accuracy: dict[int, float],
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
    runs : list of dict
        The trainings behind it in their order, as `this_run` says them.
    problems : int
        Validation problems of each length.
    accuracy : dict of int to float
        Share of right answers by number of entries.
    """
    facts = {
        "runs": runs,
        "recipe": recipe,
        "parameters": parameters,
        "problems_a_length": problems,
        "accuracy_by_entries": accuracy,
        "generators_sha256": {name: sha256(name) for name in GENERATORS},
        "weights_sha256": sha256(directory / "model.safetensors"),
    }
    write_atomic(directory / "training.json", json.dumps(facts, indent=2) + "\n")
    write_atomic(directory / "README.md", page(facts))


def this_run(minutes: float) -> dict[str, Any]:
    """Command, wall time, a line of the world as it was worded, commit and versions of this process's training."""
    _, problem = next(draw_problems("train", 1, [4]))
    return {
        "command": shlex.join(["python", "-m", "train.base", *sys.argv[1:]]),
        "minutes": round(minutes, 1),
        "line": problem.lines[1],
        "commit": commit(),
        "versions": versions(),
    }


def runs_behind(directory: Path) -> list[dict[str, Any]]:
    """The trainings that a model's card tells of."""
    return json.loads((directory / "training.json").read_text())["runs"]


def page(facts: dict[str, Any]) -> str:
    """Return the card as Markdown."""
    recipe = facts["recipe"]
    parts = [
        ", ".join(f"{part['curriculum'][f'{kind}_steps']} of {kind}" for kind in ("induction", "recall", "ledger"))
        for part in recipe["rounds"]
    ]
    runs = "\n".join(
        f"| `{run['command']}` | {run['minutes']} | `{run['line']}` | {run['commit'][:12]} |" for run in facts["runs"]
    )
    rows = "\n".join(f"| {size} | {100 * share:.0f} |" for size, share in facts["accuracy_by_entries"].items())
    return f"""# Base model of the micro preset

A Llama of {facts["parameters"]:,} parameters ({recipe["layers"]} layers, width {recipe["width"]},
{recipe["heads"]} query and {recipe["kv_heads"]} KV heads, untied) that solves ledgers
([the world](../../data_gen/ledger/world.py)) step by step. It has never seen a summary.

Made with seed {recipe["seed"]} on two CPU cores. The recipe's rounds, in steps: {"; then ".join(parts)}
([lessons](../lessons.py)). [training.json](training.json) has the whole recipe, hashes and versions. Runs behind it:

| command | minutes | a line of its ledgers | commit |
| --- | --- | --- | --- |
{runs}

Right answers, greedy and free-running with the full cache, {facts["problems_a_length"]} validation problems a length:

| entries | right, per cent |
| --- | --- |
{rows}
"""
