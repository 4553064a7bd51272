"""Write the results block of README.md from results/: python -m eval.readme"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from eval.cells import has_settings
from eval.finetuned import sentence
from eval.readme_laptop import laptop_section, wrapped
from eval.reporting.csv_table import read_csv
from eval.reporting.table1 import BENCHMARKS, NAMES, method_name
from pipeline import write_atomic
from zoomr.errors import UserError

BEGIN = "<!-- results: written by python -m eval.readme -->"
END = "<!-- end of results -->"
CONFIGS = Path(__file__).parents[1] / "configs"
DEFAULT_C = 2  # of configs/method/zoomr.yaml
COLUMNS = ("gpqa_diamond", "aime2025", "math500")


def results_block(results: Path) -> str:
    """The README's tables, from the paper's numbers and what is committed of our own.

    Parameters
    ----------
    results : Path
        The results/ directory.

    Returns
    -------
    str
        Markdown, without the markers around it.
    """
    paper = yaml.safe_load((results / "paper.yaml").read_text())
    cells, masked = (cells_of(results / preset) for preset in ("micro", "micro_zoomed"))
    tuned = json.loads((results / "micro" / "finetuning.json").read_text())
    bench = json.loads((results / "bench" / "decode.json").read_text())
    parts = (
        paper_table(paper["table1"]),
        micro_table(cells),
        verdict(cells, masked, tuned),
        wrapped(long_ledgers(read_csv(results / "micro_long" / "steps.csv"))),
        laptop_section(results / "laptop"),
        speed_table(bench),
    )
    return "\n\n".join("\n".join(part) for part in parts)


def cells_of(results: Path) -> list[dict[str, str]]:
    """The cells of a preset that the README tells of; of a method those first in which all heads vote, by c."""
    cells = [cell for cell in read_csv(results / "cells.csv") if belongs(cell)]
    methods = [method_of(cell)[0] for cell in cells]

    def place(cell: dict[str, str]) -> tuple[int, bool, int]:
        method, c, few = method_of(cell)
        return methods.index(method), few, c or 0

    return sorted(cells, key=place)


def belongs(cell: dict[str, str]) -> bool:
    """Whether a cell is a row of the README: the fine-tuned model's, and of the ablations ZoomR's over c and voters."""
    method = json.loads(cell["settings"])["method"]
    settings = dict(reference())
    if method["name"] == "zoomr":
        del settings["c"], settings["voters"]
    return cell["checkpoint"] == "export" and has_settings(method["policy"], settings)


@cache
def reference() -> dict[str, Any]:
    """Settings of the rows of table 1, with the window of the micro preset."""
    settings = yaml.safe_load((CONFIGS / "base.yaml").read_text())["reference"]
    micro = yaml.safe_load((CONFIGS / "preset" / "micro.yaml").read_text())
    return settings | {"window": micro["generation"]["window"]}


def paper_table(table1: dict[str, Any]) -> list[str]:
    """Table 1 of the paper beside ours, which needs the paper's GPUs."""
    models = {"llama": "R1-Distill-Llama-8B", "qwen": "R1-Distill-Qwen-7B"}
    lines = [
        "## Paper and ours",
        "",
        "Accuracy in per cent. Ours will come from `make reproduce PRESET=paper`, which has not been run: it needs a",
        "Llama-70B endpoint and H100-class GPUs.",
        "",
        "| model | method | " + " | ".join(f"{BENCHMARKS[name]} paper / ours" for name in COLUMNS) + " |",
        "| --- | --- |" + " --- |" * len(COLUMNS),
    ]
    for model, methods in table1.items():
        for method, accuracy in methods.items():
            values = " | ".join(f"{accuracy[name]:.1f} / not run" for name in COLUMNS)
            lines.append(f"| {models[model]} | {NAMES[method]} | {values} |")
    return lines


def micro_table(cells: list[dict[str, str]]) -> list[str]:
    """What `make reproduce` measured, one row a method."""
    count = cells[0]["n_problems"]
    lines = [
        "## What `make reproduce` shows",
        "",
        *wrapped(
            f"The micro preset: ledgers of {ledger_lengths()} lines, greedy, a fine-tuned model of under a "
            "million parameters, two CPU cores (`make reproduce` asks fewer and lets all heads vote; "
            f"`make study ARGS=benchmark.count={count}` asks as many). Baselines have the KV budget that ZoomR used "
            "(mean over problems of the peak). Accuracy in per cent with a bootstrap 95% interval over problems; "
            "active tokens are what a step attends to."
        ),
        "",
        "| method | accuracy | active tokens, peak | mean | saving at the end | tokens seen | problems |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for cell in cells:
        low, high, accuracy = (100 * float(cell[key]) for key in ("ci_low", "ci_high", "accuracy"))
        peak, mean, seen = (
            float(cell[f"{key}"]) for key in ("active_tokens_peak", "active_tokens_mean", "seen_tokens_mean")
        )
        lines.append(
            f"| {name_of(cell)} | {accuracy:.1f} [{low:.1f}, {high:.1f}] | {peak:.0f} | {mean:.0f} | "
            f"{float(cell['kv_saving_mean']):.2f}x | {seen:.0f} | {cell['n_problems']} |"
        )
    return lines


def ledger_lengths() -> str:
    """The benchmark's numbers of lines, for people."""
    lengths = yaml.safe_load((CONFIGS / "benchmark" / "ledger.yaml").read_text())["lengths"]
    return f"{min(lengths)} to {max(lengths)}"


def method_of(cell: dict[str, str]) -> tuple[str, int | None, bool]:
    """A cell's method, c where it has one, and whether a few heads alone vote."""
    method = json.loads(cell["settings"])["method"]
    return method["name"], method["policy"].get("c"), bool(method["policy"].get("voters"))


def name_of(cell: dict[str, str]) -> str:
    """A cell's method for people."""
    method, c, few = method_of(cell)
    return method_name(method) + (f", c = {c}" if c else "") + (", looking heads vote" if few else "")


def verdict(cells: list[dict[str, str]], masked: list[dict[str, str]], tuned: dict[str, Any]) -> list[str]:
    """What the cells show, and where to read on: paragraphs, an empty line between two.

    Parameters
    ----------
    cells, masked : list of dict
        Of the presets micro and micro_zoomed.
    tuned : dict
        What eval.finetuned wrote.
    """
    accuracy = {method_of(cell): 100 * float(cell["accuracy"]) for cell in cells}
    saving = {method_of(cell): float(cell["kv_saving_mean"]) for cell in cells}
    evicting = {name: share for (name, *_), share in accuracy.items() if name.startswith(("streaming_llm", "h2o"))}
    rival = max(evicting, key=lambda name: evicting[name])
    told, all_vote, random, recency = (
        (name, DEFAULT_C, False) for name in ("given_zoom", "zoomr", "random_zoom", "recency_zoom")
    )
    few_vote = "zoomr", DEFAULT_C, True
    trained = {method_of(cell): 100 * float(cell["accuracy"]) for cell in masked}
    share = yaml.safe_load((CONFIGS / "preset" / "micro_zoomed.yaml").read_text())["sft"]["policy_share"]
    paragraphs = (
        f"When all heads vote, as in the paper, {accuracy[all_vote]:.1f} per cent are right at {saving[all_vote]:.2f} "
        f"times fewer active tokens (random zoom {accuracy[random]:.1f}, zoom into the latest {accuracy[recency]:.1f}, "
        f"summaries alone {accuracy['sumr', None, False]:.1f}, {method_name(rival)} {evicting[rival]:.1f}): few heads "
        "look anything up, and the others vote in blocks for something else. When only the heads vote that look "
        "something up (`option=looking_heads`, four of sixteen, found on validation problems by `python -m "
        f"eval.steps`), {accuracy[few_vote]:.1f} are right at {saving[few_vote]:.2f} times fewer; model and training "
        "are the same.",
        f"Told which paragraph each step needs, a zoom of ZoomR's size answers {accuracy[told]:.1f} where the full "
        f"cache answers {accuracy['full', None, False]:.1f}, since this model was trained with no paragraph ever "
        f"missing. Trained with {share:.0%} of the rows, drawn at each step, under what an oracle zoom leaves of the "
        "cache (`make reproduce PRESET=micro_zoomed`, ours, off by default, "
        f"[train/under_policy.py](train/under_policy.py)), it answers {trained[told]:.1f} when told, "
        f"{trained['full', None, False]:.1f} with its full cache, and {trained[few_vote]:.1f} when the looking heads "
        "vote ([results/micro_zoomed/cells.csv](results/micro_zoomed/cells.csv)).",
        f"What the summaries themselves cost (`make finetuned`, full cache): {sentence(tuned)}.",
        "Every ordering of the paper as a question to these data, with paired intervals: "
        "[results/micro/table1.md](results/micro/table1.md); what the paper leaves open: "
        "[results/micro/options.md](results/micro/options.md); single look-ups: "
        "[results/micro/steps.csv](results/micro/steps.csv). Commit and settings of every row: "
        "[results/micro/cells.csv](results/micro/cells.csv).",
    )
    return [line for paragraph in paragraphs for line in (*wrapped(paragraph), "")][:-1]


def long_ledgers(steps: list[dict[str, str]]) -> str:
    """What single look-ups become on ledgers longer than any of the fine-tuning, from their steps.csv."""
    rows = {row["method"]: row for row in steps}
    names = ("Full KV", "looking heads", "Oracle zoom, by dependency", "Random zoom")
    shares = "; ".join(
        f"{name} {rows[name]['look-ups right']} with {rows[name]['active tokens, peak']} active tokens"
        for name in names
    )
    return (
        f"Longer ledgers ({rows['Full KV']['problems']} of them, {rows['Full KV']['tokens seen']} tokens, twice the "
        f"lines that the model was fine-tuned on), given token by token, look-ups right in per cent: {shares} "
        "([results/micro_long/steps.csv](results/micro_long/steps.csv), `python -m eval.steps steps.problems=5 "
        "steps.lengths=[45,46,47,48] paths.results=results/micro_long paths.runs=runs/micro_long "
        "checkpoint=runs/micro/export/latest`)."
    )


def speed_table(bench: dict[str, Any]) -> list[str]:
    """What `make bench` measured of ZoomR, beside the caches that took turns with it."""
    text = (
        f"`make bench`: {bench['model']}, {bench['dtype']}, {bench['threads']} threads of a CPU, caches filled with "
        f"random KVs in the structure of a long trace, medians of {bench['repeats']} repeats in which the caches take "
        "turns. Tokens/s of ZoomR (c = 2, k = 2, window 512) over those of transformers' `DynamicCache`, of our own "
        "full cache, and of a plain cache that holds just ZoomR's active set; bytes of KVs on the device of "
        "`DynamicCache` over those of ZoomR. All rows: [results/bench/decode.json](results/bench/decode.json). On a "
        "GPU (`python -m zoomr.bench_gpu`): not run."
    )
    lines = [
        "## Speed",
        "",
        *wrapped(text),
        "",
        "| batch | tokens seen | active tokens | tokens/s | to DynamicCache | to our full cache | to the active set "
        "alone | KV bytes |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    cells = {(cell["policy"], cell["batch"], cell["seen_tokens"]): cell for cell in bench["cells"]}
    for (policy, batch, seen), cell in cells.items():
        if policy == "zoomr":
            plain = cells["dynamic_cache", batch, seen]
            lines.append(
                f"| {batch} | {seen:,} | {cell['active_tokens']:,.0f} | {cell['tokens_per_s']:.1f} "
                f"| {cell['ratio_to_dynamic_cache']:.2f}x | {cell['ratio_to_own_full']:.2f}x "
                f"| {1 / cell['step_cost_to_active_only']:.2f}x "
                f"| {plain['device_kv_bytes'] / cell['device_kv_bytes']:.1f}x |"
            )
    return lines


def updated(readme: str, block: str) -> str:
    """README text with the block between its markers replaced."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(f"README.md lacks the marks {BEGIN} and {END}.")
    return f"{before}{BEGIN}\n\n{block}\n\n{END}{after}"


def main() -> None:
    """Rewrite the block in place."""
    readme = Path("README.md")
    write_atomic(readme, updated(readme.read_text(), results_block(Path("results"))))
    print("-> README.md   next: git diff README.md")


if __name__ == "__main__":
    main()
