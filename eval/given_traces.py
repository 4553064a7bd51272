"""Traces with summaries in them, as token ids of the model at hand."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline import iterate_rows, resolve_run
from zoomr.errors import UserError
from zoomr.prompts import render_row
from zoomr.summaries.segments import BEGIN_SUMMARY

FIELDS = ("id", "user", "assistant")


@dataclass(frozen=True)
class GivenTrace:
    """A prompt and the continuation that is given."""

    id: str
    prompt: list[int]
    continuation: list[int]


def trace_file(path: str, split: str) -> Path:
    """The file of traces that `fidelity.path` names: a run's split, or the file itself.

    Raises
    ------
    UserError
        If there is no finished run and no file.
    """
    if path.endswith(".jsonl"):
        if not Path(path).is_file():
            raise UserError(f"fidelity.path={path} does not exist.")
        return Path(path)
    file = resolve_run(path, setting="fidelity.path", command="python -m data_gen.build") / f"{split}.jsonl"
    if not file.is_file():
        raise UserError(f"fidelity.split={split}: {file} does not exist.")
    return file


def given_traces(file: Path, tokenizer: Any, shortest: int, longest: int) -> Iterator[GivenTrace]:
    """Render the rows of a file that are long enough.

    Parameters
    ----------
    file : Path
        Rows with the fields id, user, assistant and, where there is one, system.
    tokenizer : PreTrainedTokenizerBase
        With a chat template and the two delimiters.
    shortest, longest : int
        Tokens: shorter rows are left out, longer ones cut.

    Raises
    ------
    UserError
        If a row lacks a field, or has no summaries.
    """
    for number, row in enumerate(iterate_rows(file, "fidelity.path")):
        missing = [field for field in FIELDS if field not in row]
        if missing:
            raise UserError(f"fidelity.path={file}: row {number} has no field {missing[0]!r}.")
        if BEGIN_SUMMARY not in row["assistant"]:
            raise UserError(f"fidelity.path={file}: row {number} has no summaries; data_gen.build inserts them.")
        ids, prompt = render_row(tokenizer, row.get("system") or "", row["user"], row["assistant"])
        if len(ids) >= shortest:
            yield GivenTrace(str(row["id"]), ids[:prompt], ids[prompt:longest])
