"""The sections of report.html, in the order of the paper's tables and figures."""

import json
from pathlib import Path
from typing import Any

from eval.reporting import html
from eval.reporting.cells import ScoredCell
from eval.reporting.table1 import BENCHMARKS, own_rows, title

ENTRIES = (
    ("orderings", "Orderings"),
    ("table1", "Table 1"),
    ("fig3a", "Fig. 3a, b: memory and throughput"),
    ("fig3c", "Fig. 3c, f: c and k"),
    ("fig3d", "Fig. 3d, e: agreeability"),
    ("lengths", "Lengths and format"),
    ("cells", "Where each number comes from"),
)


def anchor(cell: ScoredCell) -> str:
    """The anchor of a cell's origin."""
    return f"cell-{cell.directory.name}"


def navigation(present: set[str]) -> str:
    """Links to the sections; those without data are drawn dashed and say so."""
    items = []
    for name, text in ENTRIES:
        css, note = ("", "") if name in present else (' class="missing"', " (not run)")
        items.append(f'<li><a href="#{name}"{css}>{text}{note}</a></li>\n')
    return f'<nav aria-label="Sections"><ul>\n{"".join(items)}</ul></nav>\n'


def orderings(found: list[dict[str, Any]]) -> str:
    """The questions and their answers."""
    rows = []
    for row in found:
        where = f"{BENCHMARKS.get(row['benchmark'], row['benchmark'])}, {row['model']}"
        question = f"<dt>{html.escape(row['question'])} <small>{html.escape(where)}</small></dt>"
        rows.append(f"{question}\n<dd>{answer_text(row)}</dd>\n")
    note = "Yes and no need an interval without zero and p < 0.05; else undecided. Paired over problems."
    return html.section(
        "orderings",
        "Do the paper's orderings show here?",
        html.paragraph(note, "soft"),
        f'<dl class="answers">\n{"".join(rows)}</dl>\n',
    )


def answer_text(row: dict[str, Any]) -> str:
    """The sentence with its verdict coloured."""
    verdict, colon, rest = row["sentence"].partition(":")
    css = row["answer"].replace(" ", "-")
    return f'<span class="mark {css}">{html.escape(verdict + colon)}</span>{html.escape(rest)}'


def beside_paper(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a model and method, one column a benchmark: the paper's value, ours, and the mark."""
    pivot: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        line = pivot.setdefault((row["model"], row["method"]), {"model": row["model"], "method": row["method"]})
        line[f"{row['benchmark']}, paper"] = row["paper"]
        line[f"{row['benchmark']}, ours"] = f"{row['ours']} {row['mark']}".strip()
    return list(pivot.values())


def table1(cells: list[ScoredCell], paper: list[dict[str, Any]], drawing: Path) -> str:
    """Our cells, the figure, and the paper's table beside ours."""
    links = [anchor(cell) for cell in cells]
    return html.section(
        "table1",
        "Table 1: accuracy",
        html.figure(
            drawing,
            "Accuracy against active KV tokens. Open markers keep the whole prompt; bars: 95% interval, and peak.",
        ),
        html.table(own_rows(cells), links, "accuracy"),
        "<h3>The paper's table beside ours</h3>\n",
        html.paragraph("Reproduced: the paper's value lies in our 95% interval. Differs: it does not.", "soft"),
        html.table(beside_paper(paper)),
    )


def ablation(rows: list[dict[str, Any]], sentences: list[str], drawing: Path | None) -> str:
    """The ablations over c and k."""
    if drawing is None:
        return html.section("fig3c", "Fig. 3c, f: ablations over c and k", html.NOT_RUN)
    return html.section(
        "fig3c",
        "Fig. 3c, f: ablations over c and k",
        "".join(html.paragraph(sentence) for sentence in sentences),
        html.figure(drawing, "Accuracy and active KV tokens over c and k; random and recency zoom as controls."),
        html.table(rows),
    )


def consensus(sentence: str, drawing: Path | None) -> str:
    """Agreeability for correct and incorrect answers."""
    parts = [html.NOT_RUN]
    if drawing is not None:
        caption = "Share of the votes that fell on the consensus set; steps with no more than c summaries are left out."
        parts = [html.paragraph(sentence), html.figure(drawing, caption)]
    return html.section("fig3d", "Fig. 3d, e: agreeability", *parts)


def profile(rows: list[dict[str, Any]], sentences: list[str], drawing: Path | None) -> str:
    """Memory and throughput."""
    parts = [html.NOT_RUN]
    if drawing is not None:
        caption = (
            "KV memory and throughput against length at the largest batch. Dotted: the analytic model (section 3.5)."
        )
        text = "".join(html.paragraph(sentence) for sentence in sentences)
        parts = [text, html.figure(drawing, caption), html.table(rows)]
    return html.section("fig3a", "Fig. 3a, b: memory and throughput", *parts)


def lengths(cells: list[ScoredCell]) -> str:
    """Lengths, cap hits, repetition and adherence to the format."""
    rows = []
    for cell in cells:
        summary, meters = cell.summary, cell.summary["meters"]
        shares = {key: 100 * count / summary["n_samples"] for key, count in summary["statuses"].items()}
        rows.append(
            {
                "benchmark": BENCHMARKS.get(cell.benchmark, cell.benchmark),
                "method": title(cell),
                "generated tokens": f"{meters['generated_tokens']:.0f}",
                "cap hits": f"{shares['truncated']:.1f}%",
                "of these repeating": f"{100 * summary['repetition_share']:.1f}%",
                "no answer": f"{shares['unparsed']:.1f}%",
                "grader errors": f"{shares['grader_error']:.1f}%",
                "balanced delimiters": f"{100 * summary['balanced_share']:.1f}%",
                "summaries per 1k tokens": f"{1000 * meters['summaries'] / meters['generated_tokens']:.1f}",
                "refreshes": f"{meters['refreshes']:.1f}",
                "forced": f"{meters['forced_refreshes']:.1f}",
            }
        )
    return html.section("lengths", "Lengths and format", html.table(rows, [anchor(cell) for cell in cells], "method"))


def origins(cells: list[ScoredCell]) -> str:
    """The command, commit and settings behind each cell."""
    blocks = [
        html.details(
            anchor(cell),
            f"{BENCHMARKS.get(cell.benchmark, cell.benchmark)}, {cell.model['name']}, {title(cell)}",
            f"{cell.summary['command']}\ncommit {cell.summary['commit']}\n"
            + json.dumps(cell.summary["settings"], indent=2, sort_keys=True),
        )
        for cell in cells
    ]
    return html.section("cells", "Where each number comes from", *blocks)
