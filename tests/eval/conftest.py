import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from eval.grading.pool import SymbolicPool

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
CELLS = Path(__file__).parent / "cells" / "micro"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def data_file(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"needs shared/data/{name}")
    return path


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="session")
def pool():
    with SymbolicPool(workers=2, seconds=5, mebibytes=1024) as running:
        yield running


METERS = {
    "prompt_tokens": 100,
    "generated_tokens": 600,
    "seen_tokens": 700,
    "active_tokens_mean": 300.0,
    "active_tokens_peak": 350.0,
    "kv_saving": 2.0,
    "refreshes": 12,
    "forced_refreshes": 1,
    "summaries": 8,
    "tokens_per_s": 100.0,
    "balanced": True,
    "consensus": [],
}


@pytest.fixture
def make_cell(tmp_path):
    """Write a finished cell of the generate stage: `correct` says which of its problems are answered rightly."""

    def write(method: str, correct: list[bool], policy=None, peak=350.0, samples=1, **settings) -> Path:
        policy = policy or {"_target_": "zoomr.Full"}
        directory = tmp_path / "runs" / "micro" / "generate" / f"{method}-{len(str(policy))}-{settings.get('tag', 'a')}"
        directory.mkdir(parents=True)
        rows = [
            {"id": f"p{n}#{s}", "problem": f"p{n}", "sample": s, "gold": "007", "status": "stop"}
            | {"text": f"So it is \\boxed{{{7 if right else 8}}}."}
            | METERS
            | {"active_tokens_peak": peak}
            for n, right in enumerate(correct)
            for s in range(samples)
        ]
        (directory / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        generation = {"temperature": 0.0, "top_p": 1.0, "samples": samples, "max_new_tokens": 16384}
        cell = {
            "model": {"name": "micro", "checkpoint": "export", "revision": None, "dtype": None},
            "benchmark": {
                "name": "ledger",
                "answer": "integer",
                "checksum": "0",
                "problems": settings.pop("problems", len(correct)),
            },
            "generation": generation,
            "method": {"name": method, "policy": policy},
            "prompt": None,
            "seed": 0,
            "limit": None,
            "shard": None,
        }
        cell |= {key: value for key, value in settings.items() if key in cell}
        manifest = {
            "settings": cell,
            "inputs": {"checkpoint": {"path": "export", "sha256": settings.get("checkpoint", "c")}},
            "commit": "abc",
            "command": f"python -m eval.generate method={method}",
            "started": settings.get("started", "2026-01-01"),
            "ended": settings.get("ended", "2026-01-02"),
            "counts": {"problems": len(correct), "active_tokens_peak": peak, "active_tokens_mean": peak - 50},
            "outputs": {},
        }
        (directory / "manifest.json").write_text(json.dumps(manifest))
        return directory

    return write


@pytest.fixture(scope="session")
def micro_report(tmp_path_factory) -> Path:
    """The committed cells, scored and reported: a directory with runs/ and results/."""
    import hydra

    from eval.report import build
    from eval.score import score_cells

    root = tmp_path_factory.mktemp("micro")
    shutil.copytree(CELLS, root / "runs")
    settings = ["preset=micro", f"paths.runs={root}/runs", f"paths.results={root}/results"]
    with hydra.initialize_config_dir(str(CONFIGS), version_base="1.3"):
        score_cells(hydra.compose("eval", [*settings, "score.workers=1"]))
        build(hydra.compose("report", [*settings, "generation.max_new_tokens=600", "generation.window=160"]))
    return root
