"""Stage 2: every paragraph of traces.jsonl -> one short summary by the teacher.

`python -m data_gen.summarize teacher=openai_compatible teacher.base_url=http://localhost:8000/v1 teacher.model=name`
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from data_gen import control, lengths
from data_gen.by_trace import ByTrace
from data_gen.configuration import is_whole, make, plain
from data_gen.conversations import Conversation
from data_gen.teacher import answer
from data_gen.teacher.prompt import Prompt, Request, teacher_identity
from data_gen.teacher.settings import Patience, Teacher
from pipeline import AppendLog, Run, fingerprint, iterate_rows, progress, read_manifest, resolve_run, sha256, write_rows
from pipeline.cli import stage
from pipeline.objects import model_path
from zoomr.errors import UserError

REPLIES = "replies.jsonl"
KEPT = ("id", "trace", "paragraph", "summary", "finish_reason", "usage", "model")
# A paragraph, its index in its trace, the id of its request, and the stored reply with its summary, if there is one.
Paragraph = tuple[Conversation, int, str, dict[str, Any] | None]


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
    if is_whole(run):
        counts = run.manifest["counts"]
        if counts["read_by"] == _reader() and counts["failed_share"] <= setup.failed_share:
            return run.say_done()

    def traces() -> Iterator[Conversation]:
        return (Conversation(**row) for row in itertools.islice(iterate_rows(prepared / "traces.jsonl"), cfg.limit))

    def paragraphs(stored: ByTrace) -> Iterator[Paragraph]:
        for trace in traces():
            # Summaries are read from what was answered, so that what reads them can change and no answer be paid twice.
            read = (
                (row, answer.stored_summary(row, teacher.answer, setup.summary_tokens)) for row in stored.of(trace.id)
            )
            replies = {row["id"]: {**row, "summary": summary} for row, summary in read if summary is not None}
            for index, request in enumerate(prompt.ids(trace, identity)):
                yield trace, index, request, replies.get(request)

    with closing(run), AppendLog(run.dir / REPLIES) as log, closing(ByTrace(run.dir / REPLIES)) as stored:
        missing = (
            Request(request, trace.id, index, prompt.messages(trace, index, teacher.answer))
            for trace, index, request, reply in paragraphs(stored)
            if reply is None
        )
        if setup.dry_run:
            from data_gen.estimate import estimate

            print(estimate(missing, teacher, setup.latency))
            return None
        model_path(cfg.model)  # the teacher may be the model itself
        total = read_manifest(prepared)["counts"]["paragraphs"]
        if cfg.limit is not None:
            total = sum(len(trace.paragraphs) for trace in traces())
        with progress(total=total, initial=len(stored), unit="paragraph", description="summarize") as bar:
            failures = asyncio.run(_ask(setup, teacher, make(cfg, "summarize.patience"), log, missing, bar))
        with closing(ByTrace(run.dir / REPLIES)) as stored:
            counts = _write_outputs(run.dir, paragraphs(stored), failures)
            if unused := len(stored) - counts["summaries"]:
                print(f"warning: {unused} stored replies belong to no paragraph of the traces, or were asked for anew")
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
    setup: DictConfig, teacher: Teacher, patience: Patience, log: AppendLog, missing: Iterator[Request], bar: Any
) -> dict[str, dict[str, Any]]:
    from data_gen.dispatch import Dispatch
    from data_gen.teacher.client import Client
    from data_gen.teacher.served import endpoint

    with endpoint(teacher, log.path.with_name("server.log")) as base_url:
        client = Client(teacher, base_url, patience, setup.summary_tokens)
        try:
            dispatch = Dispatch(client, log, bar)
            await dispatch.run(missing)
            bar.set_postfix_str(dispatch.status(), refresh=False)
        finally:
            await client.close()
    return dispatch.failures


def _write_outputs(
    directory: Path, paragraphs: Iterable[Paragraph], failures: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Write summaries and failures in the order of the input, so that they do not depend on who answered first."""
    spent: Counter[str] = Counter()
    failed: list[dict[str, Any]] = []

    def kept() -> Iterator[dict[str, Any]]:
        for _, _, request, reply in paragraphs:
            if reply is not None:
                spent.update(reply["spent"])
                yield {key: reply[key] for key in KEPT}
            elif request in failures:
                failed.append(failures[request])

    summaries = write_rows(directory / "summaries.jsonl", kept())
    write_rows(directory / "failures.jsonl", failed)
    for row in failed:
        spent.update(row["spent"])
    count = summaries + len(failed)
    return {
        "paragraphs": count,
        "summaries": summaries,
        "failed": dict(Counter(row["reason"] for row in failed).most_common()),
        "failed_share": len(failed) / max(count, 1),
        # A kill loses the attempts at work and those that failed: they were paid, and nothing tells of them.
        "spent_at_least": dict(spent),
        "read_by": _reader(),
    }


def _reader() -> str:
    """Digest of the code that reads a summary from a reply: when it changes, summaries are read anew."""
    return fingerprint([sha256(str(module.__file__)) for module in (answer, control, lengths)])


if __name__ == "__main__":
    summarize()
