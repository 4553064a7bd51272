"""What a preset costs before it is run: python -m eval.plan preset=paper (see configs/plan.yaml)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from eval.reporting.profile import largest, load_points, longest
from eval.reporting.table1 import markdown
from eval.sweeps import Cell, cells
from pipeline.cli import stage
from zoomr.errors import UserError

MILLION = 1_000_000


@stage("plan")
def main(cfg: DictConfig) -> None:
    """Print one line for each stage and cell, then the sums."""
    settings: Any = OmegaConf.to_container(cfg.plan, resolve=True)
    points = load_points(Path(cfg.paths.runs) / "bench.json")
    rows = plan(settings, cells(settings["cells"], cfg, HydraConfig.get().runtime.choices["model"]), points)
    print(markdown([readable(row) for row in rows]))
    print(markdown([readable(row) for row in sums(rows)]))
    print("Rates and prices are plan.rate and plan.price; a dash is an unknown rate.")


def plan(settings: dict[str, Any], wanted: Sequence[Cell], points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Work out tokens, device hours, endpoint cost and disk.

    Parameters
    ----------
    settings : dict
        See configs/plan.yaml.
    wanted : sequence of Cell
        The cells to generate.
    points : list of dict
        Measured rows of eval.bench; they give the rates of generation where none is set.

    Returns
    -------
    list of dict
        One row for the data, one for the training of each model, one for each cell.
    """
    trained = dict.fromkeys(cell.config.model.name for cell in wanted if not cell.base)
    rows = [data_row(settings), *(train_row(settings, model) for model in trained)]
    return rows + [cell_row(settings, cell, points) for cell in wanted]


def sums(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sum the rows of each stage, and all; hours are unknown where one of a sum's are."""
    stages = [*dict.fromkeys(line["stage"] for line in rows), "all"]
    found = []
    for name in stages:
        here = [line for line in rows if name in (line["stage"], "all")]
        # the endpoint's time is not the device's
        timed = [line["hours"] for line in here if line["stage"] != "data_gen"]
        found.append(
            {"stage": name, "cell": f"{len(here)} lines", "hours": sum(timed) if timed and None not in timed else None}
            | {key: sum(line[key] for line in here) for key in ("tokens", "cost", "disk")}
        )
    return found


def cell_row(settings: dict[str, Any], cell: Cell, points: list[dict[str, Any]]) -> dict[str, Any]:
    """Tokens of all samples of a cell, their time and their room on the disk.

    Raises
    ------
    UserError
        When plan.tokens does not know the benchmark.
    """
    benchmark, generation = cell.config.benchmark, cell.config.generation
    if benchmark.name not in settings["tokens"]:
        raise UserError(f"plan.tokens does not say how long an answer on {benchmark.name} is: add it.")
    length = min(settings["tokens"][benchmark.name], generation.max_new_tokens)
    tokens = benchmark.count * generation.samples * length
    rate = settings["rate"]["generate"] or measured_rate(points, cell.config.method.name)
    return row(f"generate {cell.sweep}", cell.label, tokens, rate, 0.0, tokens * settings["bytes_per_token"])


def data_row(settings: dict[str, Any]) -> dict[str, Any]:
    """Tokens that the endpoint reads and writes, and their price."""
    data, price = settings["data"], settings["price"]
    requests = data["traces"] * data["paragraphs"]
    read = requests * (data["paragraph_tokens"] + data["instruction_tokens"])
    written = requests * data["summary_tokens"]
    cost = (read * price["input"] + written * price["output"]) / MILLION
    return row("data_gen", f"{requests:,} requests", read + written, None, cost, written * 40)


def train_row(settings: dict[str, Any], model: str) -> dict[str, Any]:
    """Tokens of all epochs of one model."""
    data = settings["data"]
    per_trace = data["paragraphs"] * (data["paragraph_tokens"] + data["summary_tokens"]) + data["instruction_tokens"]
    tokens = data["traces"] * per_trace * settings["train"]["epochs"]
    return row("train", f"{model}, {settings['train']['epochs']} epochs", tokens, settings["rate"]["train"], 0.0, 0)


def measured_rate(points: list[dict[str, Any]], method: str) -> float | None:
    """Tokens per second of the longest, largest measured point; the full cache's for a method that was not measured."""
    for name in (method, "full"):
        for point in largest(points) if points else []:
            if point["method"] == name and point["seen_tokens"] == longest(points):
                return float(point["tokens_per_s"])
    return None


def row(stage_name: str, cell: str, tokens: float, rate: float | None, cost: float, disk: float) -> dict[str, Any]:
    """One line of the plan; hours are those of one device at the given rate."""
    hours = tokens / rate / 3600 if rate else None
    return {"stage": stage_name, "cell": cell, "tokens": tokens, "hours": hours, "cost": cost, "disk": disk}


def readable(line: dict[str, Any]) -> dict[str, str]:
    """A line with units."""
    return {
        "stage": line["stage"],
        "cell": line["cell"],
        "tokens, millions": f"{line['tokens'] / MILLION:,.1f}",
        "device hours": "-" if line["hours"] is None else f"{line['hours']:,.1f}",
        "endpoint cost": f"{line['cost']:,.2f}",
        "disk, MB": f"{line['disk'] / MILLION:,.0f}",
    }


if __name__ == "__main__":
    main()
