"""Stage 2: every paragraph of traces.jsonl -> one short summary by the teacher.

`python -m data_gen.summarize teacher=openai_compatible teacher.base_url=http://localhost:8000/v1 teacher.model=name`
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from data_gen.configuration import is_whole, make, plain
from data_gen.jsonl import read_rows, write_rows
from data_gen.teacher.prompt import Prompt, Request, requests, teacher_identity
from data_gen.teacher.settings import Patience, Teacher
from pipeline import Run, progress, read_manifest, resolve_run
from pipeline.cli import stage
from zoomr.errors import UserError

KEPT = ("id", "trace", "paragraph", "summary", "finish_reason", "usage", "model")


@stage("data_gen")
def summarize(cfg: DictConfig) -> None:
    """Summarise the paragraphs of a prepared dataset."""
    setup = cfg.summarize
    teacher: Teacher = make(cfg, "teacher")
    prompt = Prompt.load(setup.prompt, setup.context, setup.previous)
    identity = teacher_identity(teacher, setup.summary_tokens)
    prepared = resolve_run(setup.traces, setting="summarize.traces", command="python -m data_gen.prepare")
    run = Run.open(
        cfg.paths.runs,
        stage="summarize",
        label=teacher.name,
        settings={**identity, "prompt": prompt.parts, "context": prompt.context, "limit": cfg.limit}
        | ({"previous": prompt.previous} if prompt.context == "previous" else {}),
        inputs={"summarize.traces": prepared},
        config=plain(cfg),
        next_command=f"python -m data_gen.build preset={cfg.preset.name}",
    )
    if is_whole(run) and run.manifest["counts"]["failed_share"] <= setup.failed_share:
        return run.say_done()

    from data_gen.store import ReplyStore

    def traces() -> Iterator[dict[str, Any]]:
        return itertools.islice(read_rows(prepared / "traces.jsonl"), cfg.limit)

    def row_ids() -> Iterator[str]:
        return (row_id for trace in traces() for row_id in prompt.ids(trace, identity))

    with closing(run), closing(ReplyStore(run.dir / "replies.jsonl")) as store:
        missing = (request for trace in traces() for request in requests(trace, prompt, identity, store))
        if setup.dry_run:
            from data_gen.estimate import Estimate

            print(Estimate.of(missing, teacher, setup.latency))
            return None
        total = _paragraphs(prepared, cfg.limit)
        patience: Patience = make(cfg, "summarize.patience")
        failures = asyncio.run(_ask(teacher, patience, setup.summary_tokens, run.dir, missing, store, total))
        counts = _write_outputs(run.dir, store, failures, row_ids)
        if counts["failed_share"] > setup.failed_share:
            reasons = ", ".join(f"{number} {reason}" for reason, number in counts["failed"].items())
            raise UserError(
                f"{sum(counts['failed'].values())} of {counts['paragraphs']} paragraphs have no summary ({reasons}): "
                f"see {run.dir / 'failures.jsonl'}, run the same command to try them again, or raise "
                "summarize.failed_share."
            )
        run.finish(counts, ["summaries.jsonl", "failures.jsonl"])
    return None


async def _ask(
    teacher: Teacher,
    patience: Patience,
    summary_tokens: int,
    directory: Path,
    missing: Iterator[Request],
    store: Any,
    total: int,
) -> dict[str, dict[str, Any]]:
    from data_gen.dispatch import Dispatch
    from data_gen.teacher.client import Client
    from data_gen.teacher.served import endpoint

    with endpoint(teacher, directory / "server.log") as base_url:
        client = Client(teacher, base_url, patience, summary_tokens)
        done = len(store.offsets)
        try:
            with progress(total=total, initial=done, unit="paragraph", description="summarize") as bar:
                dispatch = Dispatch(client, store, bar, total)
                await dispatch.run(missing)
                bar.set_postfix_str(dispatch.status(), refresh=False)
        finally:
            await client.close()
    return dispatch.failures


def _write_outputs(
    directory: Path, store: Any, failures: dict[str, dict[str, Any]], row_ids: Callable[[], Iterator[str]]
) -> dict[str, Any]:
    """Write summaries and failures in the order of the input, so that they do not depend on who answered first."""
    spent: Counter[str] = Counter()

    def kept() -> Iterator[dict[str, Any]]:
        for row in store.read(row_ids()):
            spent.update(row["spent"])
            yield {key: row[key] for key in KEPT}

    summaries = write_rows(directory / "summaries.jsonl", kept())
    if len(store.offsets) > summaries:
        print(f"warning: {len(store.offsets) - summaries} stored replies belong to no paragraph of the traces")
    write_rows(
        directory / "failures.jsonl",
        (failures[row_id] for row_id in (row_ids() if failures else ()) if row_id in failures),
    )
    reasons = Counter(row["reason"] for row in failures.values())
    for row in failures.values():
        spent.update(row["spent"])
    paragraphs = summaries + len(failures)
    return {
        "paragraphs": paragraphs,
        "summaries": summaries,
        "failed": dict(reasons.most_common()),
        "failed_share": len(failures) / max(paragraphs, 1),
        "spent": dict(spent),
    }


def _paragraphs(prepared: Path, limit: int | None) -> int:
    if limit is None:
        return read_manifest(prepared)["counts"]["paragraphs"]
    return sum(len(trace["paragraphs"]) for trace in itertools.islice(read_rows(prepared / "traces.jsonl"), limit))


if __name__ == "__main__":
    summarize()
