"""Table 1: accuracy of each method on each benchmark, ours beside the paper's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.reporting.cells import ScoredCell, groups, saving
from eval.reporting.names import benchmark_title, look
from eval.reporting.questions import Answers, unanswered
from eval.reporting.sections import Heading, Link, Mark, Part, Section, Table, Text, cell_link, not_run
from eval.reporting.tables import accuracy, latex, markdown, times, to_csv
from pipeline import write_atomic, write_json

BENCHMARKS = ("gpqa_diamond", "aime2025", "math500")
BOUND = 5.0  # points: a wider interval cannot say that two values agree
RULE = (
    "Agrees within ±x: the paper's value lies in our 95% interval, no end of which is more than x points from it, and "
    f"half of the interval is less than {BOUND:.0f} points. Not told apart: it lies in a wider interval. Differs: it "
    "lies outside. Accuracy in per cent."
)
TITLE = "Table 1: accuracy"
Row = dict[str, Any]


def agreement(low: float, high: float, paper: float) -> str:
    """What an interval says of the paper's value, all in per cent: agrees, not told apart or differs.

    Parameters
    ----------
    low, high : float
        Ends of our 95% interval.
    paper : float
        The paper's value.
    """
    if not low <= paper <= high:
        return "differs"
    return "agrees" if (high - low) / 2 < BOUND else "not told apart"


def paper_rows(cells: Sequence[ScoredCell], paper: Mapping[str, Any], models: Mapping[str, str]) -> list[Row]:
    """All cells of the paper's table 1, with ours where it was run.

    Parameters
    ----------
    cells : sequence of ScoredCell
        Our cells.
    paper : mapping
        ``results/paper.yaml``.
    models : mapping of str to str
        Names of our models to the paper's.

    Returns
    -------
    list of dict
        One row a model, method and benchmark of the paper, in per cent and points; ``cell`` names our cell.
    """
    ours = {
        (models.get(cell.model["name"]), cell.method, cell.benchmark): cell
        for cell in reversed(cells)
        if cell.model["checkpoint"] == "export" and not cell.keeps_prompt
    }
    return [
        {"model": paper["models"][model], "method": look(method).title, "benchmark": benchmark_title(benchmark)}
        | beside(ours.get((model, method, benchmark)), values[benchmark])
        for model, methods in paper["table1"].items()
        for method, values in methods.items()
        for benchmark in BENCHMARKS
    ]


def beside(cell: ScoredCell | None, paper: float) -> Row:
    """A value of the paper beside our cell, if there is one."""
    if cell is None:
        missing = dict.fromkeys(("ours", "ci_low", "ci_high", "difference", "within", "cell"))
        return {"paper": paper} | missing | {"verdict": "not run"}
    ours, low, high = (100 * cell.summary[key] for key in ("accuracy", "ci_low", "ci_high"))
    said = agreement(low, high, paper)
    within = max(high - paper, paper - low) if said == "agrees" else None
    figures = {"ours": ours, "ci_low": low, "ci_high": high, "difference": ours - paper, "within": within}
    return {"paper": paper} | figures | {"cell": cell_link(cell).anchor, "verdict": said}


def own_text(row: Row) -> str:
    """Our value with its interval and what it says of the paper's."""
    if row["ours"] is None:
        return str(row["verdict"])
    said = row["verdict"] + (f" within ±{row['within']:.1f}" if row["within"] is not None else "")
    return f"{row['ours']:.1f} [{row['ci_low']:.1f}, {row['ci_high']:.1f}] {said}"


def pivot(rows: Sequence[Row]) -> list[Row]:
    """The paper's table as the paper has it: a row a model and method, two columns a benchmark."""
    lines: dict[tuple[str, str], Row] = {}
    for row in rows:
        line = lines.setdefault((row["model"], row["method"]), {"": f"{row['model']}, {row['method']}"})
        line[f"{row['benchmark']}, paper"] = f"{row['paper']:.1f}"
        text = own_text(row)
        line[f"{row['benchmark']}, ours"] = Link(text, row["cell"]) if row["cell"] else Mark(text, "not-run")
    return list(lines.values())


def own_rows(cells: Sequence[ScoredCell]) -> list[Row]:
    """Our cells with what they used of the cache."""
    return [
        {
            "benchmark": benchmark_title(cell.benchmark),
            "model": cell.model_title,
            "method": cell_link(cell),
            "accuracy": accuracy(cell),
            "problems": cell.summary["n_problems"],
            "missing": cell.summary["expected_samples"] - cell.summary["n_samples"],
            "cap hits": f"{100 * cell.summary['statuses']['truncated'] / cell.summary['n_samples']:.1f}%",
            "tokens": round(cell.meters["generated_tokens"]),
            "active, mean": round(cell.meters["active_tokens_mean"]),
            "active, peak": round(cell.meters["active_tokens_peak"]),
            "saving": times(saving(cell, cells)),
        }
        for cell in cells
    ]


def warnings(cells: Sequence[ScoredCell]) -> list[str]:
    """What makes a comparison of some of the cells empty."""
    found = []
    for (benchmark, model), here in groups(cells).items():
        name = f"{benchmark_title(benchmark)}, {model}"
        if not any(cell.summary["accuracy"] for cell in here):
            found.append(f"{name}: nothing is answered rightly by any method, so that none can be told from another.")
        zooming = [cell for cell in here if "window" in cell.policy]
        if zooming and not any(cell.summary["summarised_share"] for cell in zooming):
            found.append(f"{name}: no answer has a summary, so that there was nothing to zoom into.")
    return found


def write_table1(cells: Sequence[ScoredCell], rows: list[Row], found: Answers, intro: str, results: Path) -> None:
    """Write table1.json, and the CSV, Markdown and LaTeX made from it."""
    write_json(results / "table1.json", {"rule": RULE, "rows": rows})
    write_atomic(results / "table1.csv", to_csv(rows))
    write_atomic(results / "table1.tex", latex(pivot(rows)))
    answers = [
        f"\n{benchmark_title(benchmark)}, {model}:\n\n"
        + "".join(f"- {one.question} {one.sentence}\n" for one in here if one.links)
        + f"\n{unanswered(here)}\n"
        for (benchmark, model), here in found.items()
    ]
    parts = ["# Table 1\n", f"{intro}\n", "## Ours\n", *(f"{line}\n" for line in warnings(cells))]
    parts.append(markdown(own_rows(cells)))
    parts += ["## Do the paper's orderings show here?", *answers, "## The paper's table beside ours\n", f"{RULE}\n"]
    write_atomic(results / "table1.md", "\n".join([*parts, markdown(pivot(rows))]))


def section(cells: Sequence[ScoredCell], rows: Sequence[Row]) -> Section:
    """All of our cells, and the paper's table with ours in it where any of it was run."""
    if not cells:
        return not_run("table1", TITLE, "python -m eval.generate -m sweep=table1 preset=paper")
    note = (
        "The name of a row leads to the command, commit and settings of its numbers. Saving, comparable from row to "
        "row: tokens that the full cache holds at the peak of its own answers over those that the method holds at its."
    )
    parts: list[Part] = [
        *map(Text, warnings(cells)),
        Text(note, soft=True),
        Table(own_rows(cells)),
        Heading("The paper's table, and ours beside it"),
    ]
    if all(row["ours"] is None for row in rows):
        return Section("table1", TITLE, [*parts, Text("None of the paper's cells was run.", soft=True)])
    return Section("table1", TITLE, [*parts, Text(RULE, soft=True), Table(pivot(rows))])
