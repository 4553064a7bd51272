"""What a preset costs before it is run: python -m eval.plan preset=paper (see configs/plan.yaml)."""

from collections.abc import Sequence
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from eval.hardware import Device, Shape
from eval.reporting.table1 import markdown
from eval.sweeps import PlannedCell, planned_cells
from pipeline.cli import stage
from zoomr.errors import UserError

MILLION = 1_000_000
SUMMED = ("tokens", "hours", "cost", "disk")


@stage("plan")
def print_plan(cfg: DictConfig) -> None:
    """Print one line for each stage and cell, then the sums."""
    settings: Any = OmegaConf.to_container(cfg.plan, resolve=True)
    own = {"plan", "hydra"}
    given = [line for line in HydraConfig.get().overrides.task if line.lstrip("+~").partition(".")[0] not in own]
    rows = plan(settings, planned_cells(cfg.preset.stages, given))
    print(markdown([readable(row) for row in rows]))
    print(markdown([readable(row) for row in sums(rows)]))
    device, price = settings["device"], settings["price"]
    print(
        f"~ is an estimate: {device['name']} at ${device['price']:.2f} an hour, the teacher at ${price['input']:.2f} "
        f"and ${price['output']:.2f} for a million tokens read and written (list prices, {settings['priced']}), every "
        "method at the full cache's speed. plan.rate, plan.device and plan.price hold your own."
    )


def plan(settings: dict[str, Any], wanted: Sequence[PlannedCell]) -> list[dict[str, Any]]:
    """Work out tokens, device hours, cost and disk.

    Parameters
    ----------
    settings : dict
        See configs/plan.yaml.
    wanted : sequence of PlannedCell
        The cells to generate.

    Returns
    -------
    list of dict
        One row for the data, one for the training of each model, one for each cell.
    """
    device = Device(**settings["device"])
    trained = {cell.config.model.name: cell.config.model for cell in wanted if not cell.base}
    rows = [data_row(settings), *(train_row(settings, model, device) for model in trained.values())]
    return rows + [cell_row(settings, cell, device) for cell in wanted]


def sums(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sum the rows of each stage, and all."""
    stages = [*dict.fromkeys(line["stage"] for line in rows), "all"]
    found = []
    for name in stages:
        here = [line for line in rows if name in (line["stage"], "all")]
        counted = {key: sum(line[key] for line in here) for key in SUMMED}
        found.append(
            {"stage": name, "cell": f"{len(here)} lines", "estimate": any(r["estimate"] for r in here)} | counted
        )
    return found


def cell_row(settings: dict[str, Any], cell: PlannedCell, device: Device) -> dict[str, Any]:
    """Tokens of all samples of a cell, their time and their room on the disk.

    Raises
    ------
    UserError
        When plan.tokens does not know the benchmark.
    """
    benchmark, generation = cell.config.benchmark, cell.config.generation
    if benchmark.name not in settings["tokens"]:
        raise UserError(f"plan.tokens does not say how long an answer on {benchmark.name} is: add it.")
    length, prompt = min(settings["tokens"][benchmark.name], generation.max_new_tokens), settings["prompt_tokens"]
    samples = min(benchmark.count, cell.config.limit or benchmark.count) * generation.samples
    shape = shape_of(cell.config.model)
    rate = settings["rate"]["generate"] or device.decode_rate(shape, prompt, length, cell.config.batch_size)
    seconds = samples * (prompt / device.prefill_rate(shape, prompt) + length / rate)
    name = f"generate {cell.stage}".strip()
    disk = samples * length * settings["bytes_per_token"]
    return row(name, cell.label, samples * length, seconds, device, disk, not settings["rate"]["generate"])


def train_row(settings: dict[str, Any], model: DictConfig, device: Device) -> dict[str, Any]:
    """Tokens of all epochs of one model."""
    data, epochs = settings["data"], settings["train"]["epochs"]
    length = data["paragraphs"] * (data["paragraph_tokens"] + data["summary_tokens"]) + data["instruction_tokens"]
    tokens = data["traces"] * length * epochs
    rate = settings["rate"]["train"] or device.training_rate(shape_of(model), length)
    return row(
        "train", f"{model.name}, {epochs} epochs", tokens, tokens / rate, device, 0, not settings["rate"]["train"]
    )


def data_row(settings: dict[str, Any]) -> dict[str, Any]:
    """Tokens that the endpoint reads and writes, and their price; its time is not the device's."""
    data, price = settings["data"], settings["price"]
    requests = data["traces"] * data["paragraphs"]
    read = requests * (data["paragraph_tokens"] + data["instruction_tokens"])
    written = requests * data["summary_tokens"]
    cost = (read * price["input"] + written * price["output"]) / MILLION
    line = {"stage": "data_gen", "cell": f"{requests:,} requests", "tokens": read + written, "hours": 0.0}
    return line | {"cost": cost, "disk": written * 40, "estimate": True}


def shape_of(model: DictConfig) -> Shape:
    """The shape that configs/model gives."""
    return Shape(**model.shape, bytes_per_number=4 if model.dtype == "float32" else 2)


def row(
    stage_name: str, cell: str, tokens: float, seconds: float, device: Device, disk: float, estimate: bool
) -> dict[str, Any]:
    """One line of the plan."""
    hours = seconds / 3600
    line = {"stage": stage_name, "cell": cell, "tokens": tokens, "hours": hours, "cost": hours * device.price}
    return line | {"disk": disk, "estimate": estimate}


def readable(line: dict[str, Any]) -> dict[str, str]:
    """A line with units."""
    about = "~" if line["estimate"] else ""
    return {
        "stage": line["stage"],
        "cell": line["cell"],
        "tokens, millions": f"{line['tokens'] / MILLION:,.1f}",
        "device hours": f"{about}{line['hours']:,.1f}" if line["hours"] else "-",
        "cost, $": f"{about}{line['cost']:,.2f}",
        "disk, MB": f"{line['disk'] / MILLION:,.0f}",
    }


if __name__ == "__main__":
    print_plan()
