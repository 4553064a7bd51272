"""Trim a finished run to the committed cells: python -m tests.eval.cells.trim runs/micro tests/eval/cells/micro

Rows and manifests keep the keys that eval.score, eval.report and eval.view read; of a text its last characters, where
the answer stands; the refreshes of one sample of the cell c=2, k=2, and the votes of that cell.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from eval.reporting.names import method_label
from eval.summary import METERS
from pipeline import read_rows, write_json, write_rows

MANIFEST = ("stage", "command", "settings", "inputs", "commit", "started", "ended", "counts")
ROW = ("id", "problem", "sample", "gold", "status", "text", "balanced", "consensus", *METERS)
ENDING = 60  # characters
OTHER_STAGES = ("export", "sft")


def manifest(source: Path, target: Path) -> dict[str, Any]:
    """Copy the manifest of a run, trimmed, and return it."""
    kept = {key: value for key, value in json.loads((source / "manifest.json").read_text()).items() if key in MANIFEST}
    write_json(target / "manifest.json", kept)
    return kept


def trimmed(row: dict[str, Any], whole: bool) -> dict[str, Any]:
    """The row with the keys of ROW; votes and refreshes only where ``whole``."""
    kept = {key: row[key] for key in ROW} | {"text": row["text"][-ENDING:]}
    if not whole:
        return kept | {"consensus": []}
    return kept | ({"trace": row["trace"]} if "trace" in row else {})


def main(runs: Path, target: Path) -> None:
    """Trim the cells, the benchmark, and the fine-tuning behind them."""
    for path in sorted((runs / "generate").glob("*/samples.jsonl")):
        directory = target / "generate" / path.parent.name
        directory.mkdir(parents=True)
        settings = manifest(path.parent, directory)["settings"]["method"]
        whole = method_label(settings["name"], settings["policy"]) == "zoomr c2 k2 window 160"
        write_rows(directory / "samples.jsonl", [trimmed(row, whole) for row in read_rows(path)])
    for latest in sorted(runs.glob("*/latest")):
        stage, name = latest.parent.name, latest.read_text().strip()
        if stage in OTHER_STAGES:
            directory = target / stage / name
            directory.mkdir(parents=True)
            (target / stage / "latest").write_text(name)
            manifest(latest.parent / name, directory)
            for path in (latest.parent / name).glob("metrics.jsonl"):
                write_rows(directory / path.name, read_rows(path))
    shutil.copy(runs / "bench.json", target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
