"""The sections whose heart is a table or a list of sentences."""

from pathlib import Path
from typing import Any

from eval.reporting import html
from eval.reporting.cells import ScoredCell
from eval.reporting.claims import Finding, unanswered
from eval.reporting.origins import anchor, link
from eval.reporting.sections import Section
from eval.reporting.table1 import BENCHMARKS, NAMES, accuracy_text, own_rows, problem_count, title

MODELS = {"llama": "R1-Distill-Llama-8B", "qwen": "R1-Distill-Qwen-7B"}


def orderings(found: dict[tuple[str, str], list[Finding]]) -> Section:
    """The questions and their answers."""
    parts = [
        html.paragraph(
            "Yes and no need an interval without zero and p < 0.05; else undecided. Paired over problems.", "soft"
        )
    ]
    for (benchmark, model), answers in found.items():
        parts.append(f"<h3>{html.escape(BENCHMARKS.get(benchmark, benchmark))}, {html.escape(model)}</h3>\n")
        rows = [
            f"<dt>{html.escape(one.question)}</dt>\n<dd>{verdict(one)} "
            f"{html.sources(link(cell, title(cell)) for cell in one.cells)}</dd>\n"
            for one in answers
            if one.cells
        ]
        parts.append(f'<dl class="answers">\n{"".join(rows)}</dl>\n')
        if missing := unanswered(answers):
            parts.append(html.paragraph(missing, "soft"))
    return Section("orderings", "Do the paper's orderings show here?", "".join(parts))


def verdict(finding: Finding) -> str:
    """The sentence with its verdict coloured."""
    word, colon, rest = finding.sentence.partition(":")
    css = finding.answer.replace(" ", "-")
    return f'<span class="mark {css}">{html.escape(word + colon)}</span>{html.escape(rest)}'


def table1(cells: list[ScoredCell], paper: list[dict[str, Any]], models: dict[str, str]) -> Section:
    """The paper's table with ours in it, and all of our cells."""
    rows = [row | {"method": link(cell, row["method"])} for row, cell in zip(own_rows(cells), cells, strict=True)]
    note = "Reproduced: the paper's value lies in our 95% interval. Differs: it does not. Accuracy in per cent."
    return Section(
        "table1",
        "Table 1: accuracy",
        "<h3>The paper's table, and ours beside it</h3>\n"
        + html.paragraph(note, "soft")
        + html.table(linked_pivot(cells, paper, models))
        + "<h3>All that was run</h3>\n"
        + html.paragraph("The name of a row leads to the command, commit and settings of its numbers.", "soft")
        + html.table(rows),
    )


def linked_pivot(cells: list[ScoredCell], rows: list[dict[str, Any]], models: dict[str, str]) -> list[dict[str, Any]]:
    """The paper's table as the paper has it, our values leading to their cells."""
    ours = {(models.get(cell.model["name"]), title_of(cell), BENCHMARKS.get(cell.benchmark)): cell for cell in cells}
    lines = beside_paper(rows)
    for line in lines:
        for key in [key for key in line if key.endswith(", ours")]:
            cell = ours.get((line["model"], line["method"], key.removesuffix(", ours")))
            if cell is not None and line[key] != "not run":
                line[key] = link(cell, line[key])
    return [{"": f"{MODELS[line.pop('model')]}, {line.pop('method')}"} | line for line in lines]


def title_of(cell: ScoredCell) -> str | None:
    """The paper's name of a cell's method; None where the paper has none."""
    published = cell.model["checkpoint"] == "export" and not cell.policy.get("keep_prompt")
    return NAMES.get(cell.method) if published else None


def beside_paper(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a model and method, one column a benchmark: the paper's value, ours, and the mark."""
    pivot: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        line = pivot.setdefault((row["model"], row["method"]), {"model": row["model"], "method": row["method"]})
        line[f"{row['benchmark']}, paper"] = row["paper"]
        line[f"{row['benchmark']}, ours"] = f"{row['ours']} {row['mark']}".strip()
    return list(pivot.values())


def against_active(cells: list[ScoredCell], curves: list[ScoredCell], drawing: Path) -> Section:
    """Accuracy against active KV entries, with budget curves where the baselines ran at other budgets."""
    lines = "Lines: the same methods at other budgets. " if curves else ""
    caption = (
        f"Accuracy against active KV tokens, {problems(cells)}. Open markers keep the whole prompt; bars: 95% "
        f"interval, and from the mean to the peak. {lines}Values and their origins stand in table 1 above."
    )
    rows = [
        {"benchmark": BENCHMARKS.get(cell.benchmark, cell.benchmark), "model": cell.model["name"]}
        | {"method": link(cell, title(cell)), "budget": cell.policy["budget"]}
        | {"accuracy": accuracy_text(cell), "active, mean": f"{cell.summary['meters']['active_tokens_mean']:.0f}"}
        for cell in sorted(
            curves, key=lambda cell: (cell.benchmark, cell.label.rpartition(" ")[0], cell.policy["budget"])
        )
    ]
    table = "<h3>Budget curves</h3>\n" + html.table(rows) if rows else not_run_curves()
    return Section("active", "Accuracy against active KV tokens", html.figure(drawing, caption) + table)


def not_run_curves() -> str:
    """What would make budget curves."""
    return '<p class="soft">Budget curves not run: <code>python -m eval.generate -m sweep=budgets</code></p>\n'


def problems(cells: list[ScoredCell]) -> str:
    """How many problems are behind the cells, in words."""
    return ", ".join(
        f"n = {problem_count([cell for cell in cells if cell.benchmark == name])} {BENCHMARKS.get(name, name)} problems"
        for name in sorted({cell.benchmark for cell in cells})
    )


def lengths(cells: list[ScoredCell]) -> Section:
    """Lengths, cap hits, repetition and adherence to the format."""
    rows = []
    for cell in cells:
        summary, meters = cell.summary, cell.summary["meters"]
        shares = {key: 100 * count / summary["n_samples"] for key, count in summary["statuses"].items()}
        rows.append(
            {
                "benchmark": BENCHMARKS.get(cell.benchmark, cell.benchmark),
                "model": cell.model_title,
                "method": html.Link(title(cell), anchor(cell)),
                "generated tokens": f"{meters['generated_tokens']:.0f}",
                "cap hits": f"{shares['truncated']:.1f}%",
                "cap hits, repeating": f"{100 * summary['repetition_share']:.1f}%",
                "no answer": f"{shares['unparsed']:.1f}%",
                "grader errors": f"{shares['grader_error']:.1f}%",
                "balanced delimiters": f"{100 * summary['balanced_share']:.1f}%",
                "summaries per 1k tokens": f"{1000 * meters['summaries'] / meters['generated_tokens']:.1f}",
                "refreshes": f"{meters['refreshes']:.1f}",
                "forced": f"{meters['forced_refreshes']:.1f}",
            }
        )
    return Section("lengths", "Lengths, cap hits, repetition and format", html.table(rows))
