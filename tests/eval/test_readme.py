"""The README is written by hand, and each measured number in its tables is one that results/ hold."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
INTERVAL = re.compile(rf"({NUMBER.pattern}) \[({NUMBER.pattern}), ({NUMBER.pattern})\]")
SCALES = (1, 100, 1000)  # as it is, in per cent, in thousandths


def records(value: Any) -> Iterator[list[float]]:
    """The numbers of every JSON object; those of a list's objects are left to themselves."""
    if isinstance(value, dict):
        yield list(numbers(value))
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from records(inner)


def numbers(record: dict[str, Any]) -> Iterator[float]:
    """The numbers of an object and of the objects within it."""
    for value in record.values():
        if isinstance(value, dict):
            yield from numbers(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield value


def is_in(text: str, numbers: list[float]) -> bool:
    """Whether a number as it is written is one of these, rounded as far as it is written."""
    decimals = len(text.partition(".")[2])
    written = float(text.replace(",", ""))
    half = 0.5000001 * 10**-decimals
    return any(abs(number * scale - written) <= half for number in numbers for scale in SCALES)


def measured_rows(text: str) -> list[str]:
    """Rows of Markdown tables that hold a number with its interval."""
    return [line for line in text.splitlines() if line.startswith("|") and INTERVAL.search(line)]


def unknown(row: str, known: list[list[float]]) -> list[str]:
    """What of a row stands in no record: its intervals, and where it has but one, all numbers of one record with it."""
    intervals = [found.groups() for found in INTERVAL.finditer(row)]
    if len(intervals) > 1:
        return [" ".join(one) for one in intervals if not any(all(is_in(n, numbers) for n in one) for numbers in known)]
    wanted = [number for value in row.strip("| ").split(" | ")[1:] for number in NUMBER.findall(value)]
    return [] if any(all(is_in(n, numbers) for n in wanted) for numbers in known) else [row]


@pytest.fixture(scope="module")
def known() -> list[list[float]]:
    files = sorted((ROOT / "results").glob("*/*.json"))
    return [numbers for file in files for numbers in records(json.loads(file.read_text()))]


def test_numbers_are_found_rounded_and_only_within_one_record(known):
    cells = json.loads((ROOT / "results/micro/cells.json").read_text())["rows"]
    cell = next(cell for cell in cells if cell["title"] == "ZoomR (c=2, k=2)")
    accuracy, low, high = (f"{100 * cell[key]:.1f}" for key in ("accuracy", "ci_low", "ci_high"))
    row = f"| ZoomR | {accuracy} [{low}, {high}] | {cell['active_tokens_peak']:.0f} | {cell['n_problems']} |"
    assert unknown(row, known) == []
    assert unknown(row.replace(low, f"{float(low) + 0.1:.1f}"), known) != []
    assert unknown(row.replace(f"{cell['n_problems']} |", "123 |"), known) != []


def test_the_readmes_tables_say_what_results_hold(known):
    rows = measured_rows((ROOT / "README.md").read_text())
    assert rows
    assert [missing for row in rows for missing in unknown(row, known)] == []
