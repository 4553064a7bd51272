"""Stage 1: rows of a public reasoning dataset -> traces.jsonl, the thoughts cut into paragraphs.

`python -m data_gen.prepare dataset.path=traces.jsonl`
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig

from data_gen.configuration import is_whole, make, plain
from data_gen.jsonl import write_rows
from data_gen.lengths import token_counter
from data_gen.segmentation import BLANK_LINES, cut
from data_gen.statistics import Statistics
from data_gen.traces import Trace, read_traces
from pipeline import Run, progress, write_atomic
from pipeline.cli import stage
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
    skipped: Counter[str] = Counter()
    statistics = Statistics(count)

    usable = read_traces(source.rows(), segmentation, count, skipped)
    found = itertools.islice(within(usable, dataset["longest"], dataset["paragraphs"], skipped), cfg.limit)
    # The first trace comes before the bar, so that a source that cannot be used is the first thing said.
    first = list(itertools.islice(found, 1))
    if not first:
        reasons = ", ".join(f"{number} {reason}" for reason, number in skipped.most_common()) or "no rows"
        raise UserError(f"dataset.path: none of the rows is a usable trace ({reasons}).")

    def rows() -> Iterator[dict[str, Any]]:
        total = min((number for number in (source.count, cfg.limit) if number is not None), default=None)
        for trace in progress(itertools.chain(first, found), total=total, unit="trace", description="prepare"):
            statistics.add(_blank_line_pieces(trace), trace.paragraphs)
            yield trace.row()

    traces = write_rows(run.dir / "traces.jsonl", rows())
    write_atomic(run.dir / "statistics.json", statistics.to_json())
    write_atomic(run.dir / "statistics.html", statistics.to_html(cfg.dataset.name, skipped))
    counts = {"commit": source.commit} if source.commit else {}
    counts |= {"traces": traces, "paragraphs": statistics.paragraphs, "skipped": dict(skipped)}
    run.finish(counts, ["traces.jsonl", "statistics.json", "statistics.html"])
    return None


def within(
    traces: Iterator[Trace], longest: int | None, paragraphs: int | None, skipped: Counter[str]
) -> Iterator[Trace]:
    """Let traces pass that have no more than so many paragraphs, each and all together; None is no bound."""
    passed = 0
    for trace in traces:
        if longest is not None and len(trace.paragraphs) > longest:
            skipped["over dataset.longest"] += 1
            continue
        if paragraphs is not None and passed + len(trace.paragraphs) > paragraphs:
            skipped["over dataset.paragraphs"] += 1
            continue
        passed += len(trace.paragraphs)
        yield trace


def _blank_line_pieces(trace: Trace) -> list[str]:
    return cut(trace.assistant[len(trace.before) : -len(trace.after) or None].rstrip(), BLANK_LINES)[0]


if __name__ == "__main__":
    prepare()
