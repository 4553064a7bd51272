"""Figures that a stage notes while it runs, such as losses by step."""

from pathlib import Path

from pipeline.json_lines import read_rows

METRICS = "metrics.jsonl"


def read_figures(directory: Path) -> list[dict[str, float]]:
    """Return the rows of a run's local figures; a half-written last one is left out."""
    path = directory / METRICS
    return read_rows(path) if path.exists() else []
