"""Table 1: accuracy of each method on each benchmark, ours beside the paper's."""

from typing import Any

from eval.reporting.cells import ScoredCell
from eval.statistics import Difference

NAMES = {
    "full": "Full KV",
    "streaming_llm": "StreamingLLM",
    "h2o": "H2O",
    "sumr": "SumR",
    "zoomr": "ZoomR",
    "random_zoom": "Random zoom",
    "recency_zoom": "Recency zoom",
    "oracle_zoom": "Oracle zoom, by attention",
    "given_zoom": "Oracle zoom, by dependency",
    "random_attention": "Random eviction",
    "snapkv": "SnapKV, decoding",
    "snapkv_rkv": "SnapKV, R-KV's form",
    "streaming_llm_reassigned": "StreamingLLM, positions re-assigned",
    "full_offload": "Full KV, offloaded",
}
BENCHMARKS = {
    "gpqa_diamond": "GPQA-D",
    "aime2025": "AIME25",
    "math500": "MATH500",
    "aime2024": "AIME24",
    "gsm8k": "GSM8K",
    "ledger": "Ledger",
    "stories": "Stories",
    "word_problems": "Word problems",
}


def method_name(method: str) -> str:
    """Name of a method for people."""
    name = NAMES.get(method.removesuffix("_prompt"), method)
    return name + (" + prompt" if method.endswith("_prompt") else "")


def title(cell: ScoredCell) -> str:
    """Name of a cell's method for people."""
    name = NAMES.get(cell.method, cell.method)
    parts = [f"{key}={cell.policy[key]}" for key in ("c", "k") if key in cell.policy]
    suffix = " + prompt" if cell.policy.get("keep_prompt") else ""
    return f"{name}{suffix}" + (f" ({', '.join(parts)})" if parts else "")


def problem_count(cells: list[ScoredCell]) -> str:
    """Number of problems of some cells, as a range where they differ."""
    counts = sorted({cell.summary["n_problems"] for cell in cells})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def accuracy_text(cell: ScoredCell) -> str:
    """Accuracy in per cent with its interval."""
    s = cell.summary
    return f"{100 * s['accuracy']:.1f} [{100 * s['ci_low']:.1f}, {100 * s['ci_high']:.1f}]"


def points(difference: Difference) -> str:
    """A paired difference in points with its interval and p."""
    chance = "p < 0.001" if difference.p < 0.001 else f"p = {difference.p:.3f}"
    return f"{100 * difference.mean:+.1f} [{100 * difference.low:.1f}, {100 * difference.high:.1f}], {chance}"


def comparison(cell: ScoredCell, paper: float | None) -> dict[str, Any]:
    """Our value, the paper's, their difference in points and a mark.

    Parameters
    ----------
    cell : ScoredCell
        Our cell.
    paper : float or None
        The paper's accuracy in per cent.

    Returns
    -------
    dict
        ``mark`` is reproduced where the paper's value lies in our 95% interval, differs where it does not.
    """
    if paper is None:
        return {"ours": accuracy_text(cell), "paper": "", "difference": "", "mark": ""}
    s = cell.summary
    inside = 100 * s["ci_low"] <= paper <= 100 * s["ci_high"]
    return {
        "ours": accuracy_text(cell),
        "paper": f"{paper:.1f}",
        "difference": f"{100 * s['accuracy'] - paper:+.1f}",
        "mark": "reproduced" if inside else "differs",
    }


def paper_rows(cells: list[ScoredCell], paper: dict[str, Any], models: dict[str, str]) -> list[dict[str, Any]]:
    """All cells of the paper's table 1 with ours where it was run.

    Parameters
    ----------
    cells : list of ScoredCell
        Our cells.
    paper : dict
        ``results/paper.yaml``.
    models : dict of str to str
        Names of our models to the paper's.

    Returns
    -------
    list of dict
        One row for each model, method and benchmark of the paper; ``mark`` is ``not run`` where we have no cell.
    """
    ours = {
        (models.get(cell.model["name"]), cell.method, cell.benchmark): cell
        for cell in reversed(cells)
        if cell.model["checkpoint"] == "export" and not cell.policy.get("keep_prompt")
    }
    rows = []
    for model, methods in paper["table1"].items():
        for method, values in methods.items():
            for benchmark in ("gpqa_diamond", "aime2025", "math500"):
                cell = ours.get((model, method, benchmark))
                value = values[benchmark]
                found = (
                    comparison(cell, value)
                    if cell
                    else {"ours": "", "paper": f"{value:.1f}", "difference": "", "mark": "not run"}
                )
                rows.append({"model": model, "method": NAMES[method], "benchmark": BENCHMARKS[benchmark]} | found)
    return rows


def own_rows(cells: list[ScoredCell]) -> list[dict[str, Any]]:
    """Our cells with what they used of the cache."""
    return [
        {
            "benchmark": BENCHMARKS.get(cell.benchmark, cell.benchmark),
            "model": cell.model_title,
            "method": title(cell),
            "accuracy": accuracy_text(cell),
            "problems": cell.summary["n_problems"],
            "missing": cell.summary["expected_samples"] - cell.summary["n_samples"],
            "cap hits": f"{100 * cell.summary['statuses']['truncated'] / cell.summary['n_samples']:.1f}%",
            "tokens": f"{cell.summary['meters']['generated_tokens']:.0f}",
            "active, mean": f"{cell.summary['meters']['active_tokens_mean']:.0f}",
            "active, peak": f"{cell.summary['meters']['active_tokens_peak']:.0f}",
            "saving": f"{cell.summary['meters']['kv_saving']:.2f}x",
        }
        for cell in cells
    ]


def latex(rows: list[dict[str, Any]]) -> str:
    """Rows with equal keys as a LaTeX table (booktabs)."""
    escape = str.maketrans({"%": r"\%", "&": r"\&", "_": r"\_", "#": r"\#"})
    lines = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    head, *body = (" & ".join(cell.translate(escape) for cell in line) + r" \\" for line in lines)
    frame = [f"\\begin{{tabular}}{{{'l' * len(rows[0])}}}", r"\toprule", head, r"\midrule", *body]
    return "\n".join([*frame, r"\bottomrule", r"\end{tabular}", ""])


def markdown(rows: list[dict[str, Any]]) -> str:
    """Rows with equal keys as a Markdown table."""
    if not rows:
        return "No cells.\n"
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
