"""What the README tells of the laptop preset: fidelity to the full cache, and what the paper leaves open."""

import textwrap
from pathlib import Path

from eval.reporting.csv_table import read_csv
from eval.reporting.table1 import method_name

Cell = dict[str, str]

COMMAND = "make reproduce PRESET=laptop DATA=dir BUDGET=100m"
PROVES = (
    "It shows that nothing in the pipeline leans on the micro world, and what each method's cache costs a real model "
    "on real reasoning, token by token. It does not show what happens to answers: teacher-forced, an error never feeds "
    "on itself, and a model of this size, trained on a dozen traces with a teacher as small, neither reasons at this "
    "length nor summarises well, so the votes have little to go by. How well it answers itself: "
    "[results/laptop/table1.md](results/laptop/table1.md). Whole report: "
    "[results/laptop/report.html](results/laptop/report.html)."
)


def laptop_section(results: Path) -> list[str]:
    """Lines of Markdown from results/laptop.

    Parameters
    ----------
    results : Path
        The results/laptop directory, with fidelity.csv and ambiguities.csv.

    Returns
    -------
    list of str
        The section with its heading.
    """
    methods, variants = (read_csv(results / f"{name}.csv") for name in ("fidelity", "ambiguities"))
    budgets = list(dict.fromkeys(cell["budget"] for cell in methods if cell["method"] == "zoomr"))
    text = (
        f"`{COMMAND}`: SmolLM2-135M-Instruct (weights dequantised from Q4_1), fine-tuned on its own summaries; "
        f"{methods[0]['n_traces']} held-out traces of Bespoke-Stratos-17k, "
        f"{float(methods[0]['seen_tokens_mean']):,.0f} tokens long, teacher-forced. Added NLL over the full cache "
        "in thousandths of a nat a token, with a bootstrap 95% interval over traces, and in brackets mean active "
        "tokens; a budget is ZoomR's window, and methods with a token budget get ZoomR's mean."
    )
    return [
        "## A real language model",
        "",
        *wrapped(text),
        "",
        "![Added NLL and KL divergence against active tokens, a line a method](results/laptop/fidelity.svg)",
        "",
        "| method | " + " | ".join(budgets) + " |",
        "| --- |" + " --- |" * len(budgets),
        *curve(methods, len(budgets)),
        "",
        *wrapped(f"{orders(methods)} {PROVES}"),
        "",
        "What the paper leaves open, on the same traces: ZoomR with one setting changed minus ZoomR with our defaults,",
        "added NLL in thousandths of a nat a token, paired over traces.",
        "",
        "| changed | difference | active tokens |",
        "| --- | --- | --- |",
        *(
            f"| {cell['method'].replace('_', ' ')} "
            f"| {thousandths(cell, 'minus_zoomr', 'minus_zoomr_low', 'minus_zoomr_high')} "
            f"| {float(cell['active_tokens_mean']):,.0f} |"
            for cell in variants
            if cell["minus_zoomr"] and cell["budget"]
        ),
        "",
        *wrapped(price(methods, variants)),
    ]


def orders(cells: list[Cell]) -> str:
    """Who adds least at ZoomR's middle budget, and how ZoomR's active tokens grow there."""
    rows = by_method(cells)
    place = len(rows["zoomr"]) // 2
    middle = rows["zoomr"][place]
    least = min(rows, key=lambda method: float(rows[method][place]["delta_nll"]))
    sizes = {name.removeprefix("active_at_"): middle[name] for name in middle if name.startswith("active_at_")}
    known = [f"{float(size):,.0f} of {int(seen):,} seen tokens" for seen, size in sizes.items() if size]
    longer = [f"{int(seen):,}" for seen, size in sizes.items() if not size]
    return (
        f"At {middle['budget']} ZoomR keeps {' and '.join(known)} active"
        + (f" (no trace has {' or '.join(longer)})" if longer else "")
        + f", a refresh every {float(middle['refresh_gap']):.0f} tokens (paper: 35); least is added by "
        f"{method_name(least)}."
    )


def price(methods: list[Cell], variants: list[Cell]) -> str:
    """Which changes are told apart from the defaults, and what the same tokens buy as a wider window."""
    apart = [cell for cell in variants if cell["minus_zoomr"] and not includes_zero(cell)]
    default = next(cell for cell in variants if cell["method"] == "zoomr")
    narrow, wide = by_method(methods)["zoomr"][-2:]
    names = (f"{cell['method'].replace('_', ' ')} ({difference(cell, default):+.0f} active tokens)" for cell in apart)
    changed = 1000 * (float(wide["delta_nll"]) - float(narrow["delta_nll"]))
    return (
        f"Told apart from the defaults: {'; '.join(names) or 'none'}. For comparison, {wide['budget']} instead of "
        f"{narrow['budget'].removeprefix('window ')} changes the added NLL by {changed:+.1f} for "
        f"{difference(wide, narrow):+.0f} active tokens. The defaults keep to the paper's words."
    )


def includes_zero(cell: Cell) -> bool:
    """Whether the interval of the difference from ZoomR has zero in it."""
    return float(cell["minus_zoomr_low"]) <= 0 <= float(cell["minus_zoomr_high"])


def difference(cell: Cell, other: Cell) -> float:
    """Mean active tokens of a cell minus those of another."""
    return float(cell["active_tokens_mean"]) - float(other["active_tokens_mean"])


def curve(cells: list[Cell], budgets: int) -> list[str]:
    """A row a method with its cells from the smallest budget on."""
    return [
        f"| {method_name(method)} | "
        + " | ".join(
            f"{thousandths(cell, 'delta_nll', 'ci_low', 'ci_high')} ({float(cell['active_tokens_mean']):,.0f})"
            for cell in found[:budgets]
        )
        + " |"
        for method, found in by_method(cells).items()
    ]


def by_method(cells: list[Cell]) -> dict[str, list[Cell]]:
    """Cells of each method from the smallest budget on; the full cache left out."""
    rows: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell["budget"]:
            rows.setdefault(cell["method"], []).append(cell)
    return rows


def thousandths(cell: Cell, mean: str, low: str, high: str) -> str:
    """A figure of a cell with its interval, times 1,000."""
    middle, below, above = (1000 * float(cell[key]) for key in (mean, low, high))
    return f"{middle:+.1f} [{below:+.1f}, {above:+.1f}]"


def wrapped(text: str) -> list[str]:
    """Lines of at most 120 characters."""
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)
