"""The README's section on fidelity, from the table that eval.report writes."""

import csv
import textwrap
from pathlib import Path

from eval.reporting.table1 import method_name

Line = dict[str, str]
LIMITS = (
    "What this proves: the whole pipeline, every policy and its accounting run on a real model and real text, and which "
    "policies change that model's predictions least. What it does not prove: that reasoning survives. The tokens are "
    "given, so that an error is never built upon; the model and the teacher of its summaries have 135M parameters each, "
    "so that summaries say little about their paragraphs; and the next token of a text depends mostly on what is near, "
    "which favours methods that spend their budget on recent tokens."
)


def fidelity_section(directory: Path) -> list[str]:
    """Lines of Markdown: how it was measured, the figure, what it says and what it does not.

    Parameters
    ----------
    directory : Path
        A preset's results, with fidelity.csv and fidelity.svg.
    """
    with open(directory / "fidelity.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    full = next(line for line in lines if line["method"] == "full")
    measured = (
        f"`make reproduce PRESET={directory.name}` on {full['n_traces']} held-out reasoning traces of another model, "
        f"{float(full['seen_tokens_mean']):,.0f} tokens on average, with the summaries of a served teacher in them: "
        f"what each method adds to the negative log-likelihood that {full['model']} gives the traces' tokens. "
        f"{full['note']}"
    )
    figure = f"![Added NLL and KL divergence against active KV tokens]({directory}/fidelity.svg)"
    found = " ".join([beside_zooms(lines), beside_evicting(lines)])
    pages = f"All rows: [{directory}/fidelity.csv]({directory}/fidelity.csv)."
    return ["## On a real model", "", *wrap(measured), "", figure, "", *wrap(f"{found} {LIMITS} {pages}")]


def budgets(lines: list[Line], method: str) -> list[Line]:
    """A method's lines, from the smallest budget on."""
    return [line for line in lines if line["method"] == method]


def beside_zooms(lines: list[Line]) -> str:
    """ZoomR at its middle window beside what zooms elsewhere, or nowhere."""
    own = budgets(lines, "zoomr")
    place = len(own) // 2
    others = ", ".join(
        f"{method_name(method)} {added(budgets(lines, method)[place])}"
        for method in ("random_zoom", "recency_zoom", "sumr")
    )
    return (
        f"With a {own[place]['budget'].replace('window', 'window of')} tokens ZoomR has "
        f"{float(own[place]['active_tokens_mean']):,.0f} active tokens and adds {added(own[place])} nats a token "
        f"(95% interval over traces); {others}."
    )


def beside_evicting(lines: list[Line]) -> str:
    """At how many budgets methods that evict, given as many active tokens, do less damage than ZoomR."""
    own = budgets(lines, "zoomr")
    sentences = []
    for method in ("h2o_prompt", "streaming_llm_prompt"):
        pairs = list(zip(budgets(lines, method), own, strict=True))
        less = [theirs for theirs, ours in pairs if float(theirs["delta_nll"]) < float(ours["delta_nll"])]
        span = " to ".join(f"{float(theirs['delta_nll']):.3f}" for theirs, _ in (pairs[-1], pairs[0]))
        sentences.append(
            f"{method_name(method)} with as many active tokens adds {span}, less than ZoomR at {len(less)} of "
            f"{len(pairs)} budgets."
        )
    return " ".join(sentences)


def added(line: Line) -> str:
    """Added NLL with its interval."""
    mean, low, high = (float(line[key]) for key in ("delta_nll", "ci_low", "ci_high"))
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]"


def wrap(text: str) -> list[str]:
    """A paragraph in lines of the README's width."""
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)
