"""What a preset costs before it is run: python -m eval.plan preset=paper (see configs/plan.yaml)."""

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from configs.cli import stage
from eval.reporting.profile import largest, load_points, longest
from eval.reporting.table1 import markdown

MILLION = 1_000_000


@stage("plan")
def main(cfg: DictConfig) -> None:
    """Print one line for each stage and cell, and the totals."""
    settings: Any = OmegaConf.to_container(cfg.plan, resolve=True)
    points = load_points(Path(cfg.paths.runs) / "profile")
    print(markdown(plan(settings, points)))
    print("Rates and prices are plan.rate and plan.price; a dash is an unknown rate.")


def plan(settings: dict[str, Any], points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Work out tokens, device hours, endpoint cost and disk.

    Parameters
    ----------
    settings : dict
        See configs/plan.yaml.
    points : list of dict
        Measured points of eval.profile; they give the rates of generation where none is set.

    Returns
    -------
    list of dict
        One row for the data, one for training, one for each cell, and the sum.
    """
    rows = [data_row(settings), train_row(settings)]
    for name, benchmark in settings["benchmarks"].items():
        for method in settings["methods"]:
            tokens = benchmark["problems"] * benchmark["samples"] * benchmark["tokens"]
            rate = settings["rate"]["generate"] or measured_rate(points, method)
            rows.append(row("generate", f"{method} on {name}", tokens, rate, 0.0, tokens * settings["bytes_per_token"]))
    hours = [line["hours"] for line in rows if line["hours"] is not None]
    total = {
        "stage": "all",
        "cell": "",
        "tokens": sum(line["tokens"] for line in rows),
        "hours": sum(hours) if len(hours) == len(rows) - 1 else None,
        "cost": sum(line["cost"] for line in rows),
        "disk": sum(line["disk"] for line in rows),
    }
    return [readable(line) for line in [*rows, total]]


def data_row(settings: dict[str, Any]) -> dict[str, Any]:
    """Tokens that the endpoint reads and writes, and their price."""
    data, price = settings["data"], settings["price"]
    requests = data["traces"] * data["paragraphs"]
    read = requests * (data["paragraph_tokens"] + data["instruction_tokens"])
    written = requests * data["summary_tokens"]
    cost = (read * price["input"] + written * price["output"]) / MILLION
    return row("data_gen", f"{requests:,} requests", read + written, None, cost, written * 40)


def train_row(settings: dict[str, Any]) -> dict[str, Any]:
    """Tokens of all epochs."""
    data = settings["data"]
    per_trace = data["paragraphs"] * (data["paragraph_tokens"] + data["summary_tokens"]) + data["instruction_tokens"]
    tokens = data["traces"] * per_trace * settings["train"]["epochs"]
    return row("train", f"{settings['train']['epochs']} epochs", tokens, settings["rate"]["train"], 0.0, 0)


def measured_rate(points: list[dict[str, Any]], method: str) -> float | None:
    """Tokens per second of the longest, largest measured point; the full cache's for a method that was not measured."""
    for variant in (method, "full"):
        for point in largest(points) if points else []:
            if point["variant"] == variant and point["length"] == longest(points):
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
