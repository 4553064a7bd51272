"""Stage 1: rows of a public reasoning dataset -> traces.jsonl, the thoughts cut into paragraphs.

`python -m data_gen.prepare dataset.path=traces.jsonl`
"""

import itertools
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from data_gen.configuration import is_whole, make, plain
from data_gen.conversations import Conversation, read_conversations
from data_gen.lengths import token_counter
from data_gen.records import Skip
from data_gen.report import describe, histogram
from pipeline import Run, progress, write_atomic, write_json, write_rows
from pipeline.cli import stage
from pipeline.page import render
from zoomr.errors import UserError


@stage("data_gen")
def prepare(cfg: DictConfig) -> None:
    """Cut the thoughts of a dataset into paragraphs."""
    config = plain(cfg)
    dataset = config["dataset"]
    source = make(cfg, "dataset.source")
    settings = {
        # A local file counts by its content, wherever it lies.
        "source": None if source.file else dataset["source"],
        "segmentation": dataset["segmentation"],
        "tokens": cfg.model.name if dataset["tokens"] == "model" else dataset["tokens"],
        "limit": cfg.limit,
    }
    settings |= {name: dataset[name] for name in ("longest", "paragraphs") if dataset[name] is not None}
    run = Run.open(
        cfg.paths.runs,
        stage="prepare",
        label=cfg.dataset.name,
        settings=settings,
        inputs=source.inputs,
        config=config,
        next_command=f"python -m data_gen.summarize preset={cfg.preset.name}",
    )
    if is_whole(run):
        return run.say_done()

    segmentation = make(cfg, "dataset.segmentation")
    count = token_counter(dataset["tokens"], cfg.model)
    skipped: list[dict[str, str]] = []
    lengths = {"paragraphs a trace": array("i"), "tokens a paragraph": array("i")}

    usable = read_conversations(source.rows(), segmentation, count, skipped)
    found = itertools.islice(within(usable, dataset["longest"], dataset["paragraphs"], skipped), cfg.limit)
    # The first trace comes before the bar, so that a source that cannot be used is the first thing said.
    first = list(itertools.islice(found, 1))
    if not first:
        reasons = ", ".join(f"{number} {reason}" for reason, number in _by_reason(skipped)) or "no rows"
        raise UserError(f"dataset.path: none of the rows is a usable trace ({reasons}).")

    def rows() -> Iterator[dict[str, Any]]:
        total = min((number for number in (source.count, cfg.limit) if number is not None), default=None)
        for trace in progress(itertools.chain(first, found), total=total, unit="trace", description="prepare"):
            lengths["paragraphs a trace"].append(len(trace.paragraphs))
            lengths["tokens a paragraph"].extend(map(count, trace.paragraphs))
            yield asdict(trace)

    traces = write_rows(run.dir / "traces.jsonl", rows())
    write_rows(run.dir / "skipped.jsonl", skipped)
    described = {name: describe(values) for name, values in lengths.items()}
    write_json(run.dir / "statistics.json", described)
    page = render(
        Path(__file__).with_name("prepare.html"),
        title=f"Segmentation of {cfg.dataset.name}",
        lengths=[{"series": name, **values} for name, values in described.items()],
        histograms=[histogram(values, name) for name, values in lengths.items()],
        skipped=[{"skipped rows": reason, "count": number} for reason, number in _by_reason(skipped)],
    )
    write_atomic(run.dir / "statistics.html", page)
    counts = {"commit": source.commit} if source.commit else {}
    counts |= {
        "traces": traces,
        "paragraphs": len(lengths["tokens a paragraph"]),
        "skipped": dict(_by_reason(skipped)),
    }
    run.finish(counts, ["traces.jsonl", "skipped.jsonl", "statistics.json", "statistics.html"])
    return None


def _by_reason(skipped: list[dict[str, str]]) -> list[tuple[str, int]]:
    return Counter(row["reason"] for row in skipped).most_common()


def within(
    traces: Iterable[Conversation], longest: int | None, paragraphs: int | None, skipped: list[dict[str, str]]
) -> Iterator[Conversation]:
    """Let traces pass that have no more than so many paragraphs, each and all together; None is no bound."""
    passed = 0
    for trace in traces:
        count = len(trace.paragraphs)
        if longest is not None and count > longest:
            skipped.append(Skip("over dataset.longest", f"{count} paragraphs").row(trace.id))
        elif paragraphs is not None and passed + count > paragraphs:
            skipped.append(Skip("over dataset.paragraphs", f"{count} paragraphs").row(trace.id))
        else:
            passed += count
            yield trace


if __name__ == "__main__":
    prepare()
