"""Prepared runs, stage configurations and a tiny tokenizer, all made here."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from data_gen.conversations import Conversation
from pipeline import Run, read_rows, write_rows
from pipeline.cli import CONFIGS

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture
def shared_data() -> Path:
    """Real traces and problems, where they are at hand."""
    if not (SHARED / "reasoning_traces_sample.jsonl").exists():
        pytest.skip("the real traces are not at hand")
    return SHARED


def data_file(name: str) -> Path:
    """A file of public data, where it is at hand."""
    if not (SHARED / name).exists():
        pytest.skip(f"needs shared/data/{name}")
    return SHARED / name


def trace(number: int, paragraphs: list[str], user: str = "", split: str | None = None) -> Conversation:
    """A trace with the given paragraphs."""
    return Conversation(
        id=f"t{number}",
        system="Think.",
        user=user or f"Return your final response within \\boxed{{}}. What is {number} plus {number}?",
        before="<|begin_of_thought|>\n\n",
        paragraphs=paragraphs,
        separators=["\n\n"] * len(paragraphs),
        after=f"<|end_of_thought|>\n\n<|begin_of_solution|>\n\n\\boxed{{{2 * number}}}\n\n<|end_of_solution|>",
        answer=str(2 * number),
        split=split,
    )


def texts(trace_number: int, count: int) -> list[str]:
    """Distinct paragraphs."""
    return [f"step {trace_number}.{index} of the reasoning goes on." for index in range(count)]


def prepared_run(root: Path, traces: list[Conversation]) -> Path:
    """A finished run of the prepare stage."""
    run = Run.open(root, "prepare", "test", {"n": len(traces)}, {}, {}, "next")
    if not run.complete:
        write_rows(run.dir / "traces.jsonl", (asdict(t) for t in traces))
        run.finish({"paragraphs": sum(len(t.paragraphs) for t in traces), "traces": len(traces)}, ["traces.jsonl"])
    return run.dir


@pytest.fixture
def configure(tmp_path: Path) -> Callable[..., DictConfig]:
    """Return a function that composes the stages' settings for a scripted teacher, quick to give up."""

    def build(url: str | None, **changes: Any) -> DictConfig:
        root = OmegaConf.load(CONFIGS / "data_gen.yaml")
        teacher = OmegaConf.load(CONFIGS / "teacher" / "openai_compatible.yaml")
        cfg = OmegaConf.create(
            {
                "paths": {"runs": str(tmp_path / "runs")},
                "preset": {"name": "test"},
                "seed": 0,
                "limit": None,
                "teacher": teacher,
                "summarize": root.summarize,
                "build": root.build,
                "dataset": {"name": "test", "benchmarks": []},
                "model": {"name": "tiny", "path": str(tmp_path / "model"), "revision": None},
            }
        )
        quick = {
            "teacher.base_url": url,
            "teacher.model": "scripted-model",
            "teacher.api_key_env": None,
            "teacher.answer": "text",
            "teacher.deadline": 5,
            "summarize.patience.backoff": 0.01,
            "summarize.patience.backoff_max": 0.05,
            "summarize.failed_share": 1.0,
        }
        for key, value in (quick | changes).items():
            OmegaConf.update(cfg, key, value)
        return cfg

    return build


def summarize_run(cfg: DictConfig) -> Path:
    """The directory of the only summarize run."""
    (directory,) = [path for path in (Path(cfg.paths.runs) / "summarize").iterdir() if path.is_dir()]
    return directory


def rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a JSON Lines file."""
    return list(read_rows(path))


def manifest(directory: Path) -> dict[str, Any]:
    """A run's manifest."""
    return json.loads((directory / "manifest.json").read_text())
