"""What every setting may be, checked as soon as a stage's configuration is composed.

A policy's settings are checked by the policy itself, see `pipeline.objects`; here are the stages' own. A setting of
configs/ that is neither fails a test.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipeline.allowed import (
    ABOVE_ZERO,
    BUDGET,
    COUNT,
    DEVICE,
    DTYPE,
    FLAG,
    NONE_OR_SEVERAL,
    NULL,
    POSITIVE_SHARE,
    RHYTHM,
    SHARE,
    STATISTIC,
    TEXT,
    Allowed,
    form,
    number,
    one_of,
    several,
    whole,
)
from pipeline.duration import seconds
from zoomr.errors import UserError

POLICIES = ("zoomr.", "eval.head_hits.")  # where the objects lie that check themselves
REFERENCE = {
    "c": whole(0),
    "k": COUNT,
    "window": COUNT,
    "voters": Allowed("a list of heads", lambda value: isinstance(value, list)) | NULL,
    "*": FLAG | whole(0) | TEXT | NULL,
}
# The first pattern that a setting's full name fits; * stands for any part of it.
SETTINGS: dict[str, Allowed] = {
    "seed": whole(0),
    "limit": COUNT | NULL,
    "time_limit": Allowed("a duration", lambda value: seconds(value) > 0),
    "batch_size": COUNT,
    "traces": whole(0),
    "table_rows": whole(0),
    "device": DEVICE,
    "shard": form("i/n", r"\d+/\d+") | NULL,
    "system_prompt": TEXT | NULL,
    "checkpoint": TEXT,
    "sample": TEXT | NULL,
    "only": TEXT | NULL,
    "paths.*": TEXT,
    "files.*": TEXT,
    "paper_models.*": one_of("llama", "qwen"),
    "preset.name": TEXT,
    "preset.*": several(TEXT),
    "model.shape.*": ABOVE_ZERO,
    "model.dtype": DTYPE,
    "model.*revision": TEXT | NULL,
    "model.*": TEXT,
    "generation.name": TEXT,
    "generation.temperature": number(0),
    "generation.top_p": POSITIVE_SHARE,
    "generation.*": COUNT,
    "tracker.mode": one_of("disabled", "offline", "online"),
    "tracker.*": TEXT | NULL,
    "match.checkpoint": TEXT | NULL,
    "match.method": TEXT,
    "*match.statistic": STATISTIC,
    "score.seconds": ABOVE_ZERO,
    "score.*": COUNT,
    # data_gen
    "dataset.segmentation.merge": FLAG,
    "dataset.segmentation.*": COUNT,
    "dataset.source.*lengths": several(COUNT),
    "dataset.source.seed": whole(0),
    "dataset.source.train": COUNT,
    "dataset.source.validation": whole(0),
    "dataset.benchmarks": NONE_OR_SEVERAL,
    "dataset.tokens": one_of("model", "approximate"),
    "dataset.longest": COUNT | NULL,
    "dataset.paragraphs": COUNT | NULL,
    "dataset.*": TEXT | NULL,
    "teacher.concurrency": COUNT,
    "teacher.*_per_minute": COUNT | NULL,
    "teacher.deadline": ABOVE_ZERO,
    "teacher.*_price": number(0) | NULL,
    "teacher.sampling.temperature": number(0),
    "teacher.sampling.max*tokens": COUNT,
    "teacher.serve": several(TEXT) | NULL,
    "teacher.*": Allowed("a text, a number or null", lambda value: not isinstance(value, list)),
    "summarize.context": one_of("problem", "none", "previous"),
    "summarize.previous": whole(0),
    "summarize.summary_tokens": COUNT,
    "summarize.failed_share": SHARE,
    "summarize.patience.answers": COUNT,
    "summarize.patience.faults": COUNT,
    "summarize.patience.*": number(0),
    "summarize.latency": ABOVE_ZERO,
    "build.max_length": COUNT,
    "build.over_length": one_of("drop", "cut"),
    "build.missing": one_of("drop", "leave"),
    "build.validation_share": SHARE,
    "build.samples": whole(0),
    "build.ngram": COUNT,
    "build.overlap": POSITIVE_SHARE | NULL,
    "build.benchmark_files.*": TEXT | NULL,
    "benchmark.samples": COUNT,
    "benchmark.count": COUNT,
    "benchmark.lengths": several(COUNT),
    "benchmark.people": several(COUNT),
    "benchmark.wrong": several(TEXT),
    "benchmark.*seed": whole(0),
    "benchmark.answer": one_of("math", "integer", "letter"),
    "benchmark.*": TEXT | NULL,
    # train
    "sft.learning_rate": ABOVE_ZERO,
    "sft.delimiter_rate": ABOVE_ZERO,
    "sft.epochs": ABOVE_ZERO,
    "sft.max_steps": COUNT | NULL,
    "sft.warmup": SHARE,
    "sft.weight_decay": number(0),
    "sft.max_grad_norm": ABOVE_ZERO,
    "sft.sampling": one_of("random", "group_by_length"),
    "sft.schedule": TEXT,
    "sft.*_every": RHYTHM,
    "sft.policy": NULL,
    "sft.policy_share": SHARE,
    "sft.adherence.problems": whole(0),
    "sft.adherence.temperature": number(0),
    "sft.data": TEXT,
    "sft.bf16": FLAG,
    "sft.gradient_checkpointing": FLAG,
    "sft.*": COUNT,
    "lora.dropout": number(0, 0.99),
    "lora.targets": TEXT | several(TEXT),
    "lora.*": COUNT,
    "export.dtype": DTYPE,
    "export.tolerance": ABOVE_ZERO,
    "export.adapter": TEXT,
    "index.target": one_of("contrast", "gradient", "labels"),
    "index.ranks": several(COUNT),
    "index.learning_rate": ABOVE_ZERO,
    "index.device": DEVICE,
    "index.checkpoint": TEXT,
    "index.data": TEXT,
    "index.*": COUNT,
    "bench.output": TEXT,
    "bench.contenders": several(TEXT),
    "bench.lengths": several(COUNT),
    "bench.batches": several(COUNT),
    "bench.growth.methods": NONE_OR_SEVERAL,
    "bench.growth.lengths": several(COUNT),
    "bench.threads": COUNT | NULL,
    "bench.dtype": one_of("float32", "bfloat16", "float16"),
    "bench.shape.tie_word_embeddings": FLAG,
    "bench.*": COUNT,
    # eval
    "fidelity.windows": several(COUNT),
    "fidelity.seen": several(COUNT),
    "fidelity.m*_tokens": COUNT,
    "fidelity.*": TEXT,
    "steps.problems": COUNT,
    "steps.world": one_of("ledger", "stories"),
    "steps.value": one_of("last", "anywhere"),
    "steps.lengths": several(COUNT),
    "plan.rate.*": ABOVE_ZERO | NULL,
    "plan.device.name": TEXT,
    "plan.device.step": number(0),
    "plan.device.price": number(0),
    "plan.device.*": ABOVE_ZERO,
    "plan.price.*": number(0),
    "plan.priced": TEXT,
    "plan.*": ABOVE_ZERO,
    **{f"{place}.{name}": kind for place in ("reference", "match.policy") for name, kind in REFERENCE.items()},
    "summarize.*": TEXT | FLAG,
    "build.*": TEXT,
    **dict.fromkeys(("push", "open", "install", "dry_run"), FLAG),
}


def leaves(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Full names and values of all settings; of a policy the budget alone, since it checks the rest itself."""
    policy = str(node.get("_target_", "")).startswith(POLICIES)
    for key, value in node.items():
        name = f"{prefix}{key}"
        if policy and key != "budget":
            continue
        if isinstance(value, Mapping):
            yield from leaves(value, f"{name}.")
        elif key != "_target_" and value != "???":
            yield name, value


@cache
def allowed(name: str) -> Allowed | None:
    """What the setting of a full name may be; None where nothing is said of it."""
    if name.endswith(".budget"):
        return BUDGET
    return SETTINGS.get(name) or next(
        (value for pattern, value in SETTINGS.items() if fnmatchcase(name, pattern)), None
    )


def check(config: DictConfig, overrides: Sequence[str] = ()) -> None:
    """Check every setting of a composed configuration.

    Parameters
    ----------
    config : DictConfig
    overrides : sequence of str
        As they were given on the command line: a text that Hydra took for something else is shown as it is quoted.

    Raises
    ------
    UserError
        Of the first setting that is not allowed: its name, its value and what is.
    """
    settings: Any = OmegaConf.to_container(config, resolve=True)
    written: Any = OmegaConf.to_container(config)
    own = {name for name, value in leaves(written) if "${" not in str(value)}
    # What follows from another setting comes after it, so that the one to change is named.
    for name, value in sorted(leaves(settings), key=lambda leaf: leaf[0] not in own):
        found = allowed(name)
        if found and not found.admits(value):
            shown = "null" if value is None else str(value).lower() if isinstance(value, bool) else value
            given = [override for override in overrides if override.partition("=")[0] == name]
            hint = f" Write {quoted(given[-1])}." if given and found.admits(given[-1].partition("=")[2]) else ""
            raise UserError(f"{name}={shown}: {found.words} is needed.{hint}")


def quoted(override: str) -> str:
    """Return an override as it is typed in a shell so that Hydra takes its value letter by letter."""
    key, _, value = override.partition("=")
    escaped = re.sub(r'(\\*)("|$)', lambda match: match[1] * 2 + (match[2] and '\\"'), value)
    return shlex.quote(f'{key}="{escaped}"')
