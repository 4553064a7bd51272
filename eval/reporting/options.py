"""ZoomR with one setting changed: what the paper leaves open, and the window, beside ZoomR as in table 1."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from eval.reporting.cells import ScoredCell, groups, saving
from eval.reporting.names import CONFIGS, benchmark_title, look
from eval.reporting.sections import Link, Section, Table, Text, cell_link, not_run
from eval.reporting.tables import accuracy, as_json, markdown, times
from eval.statistics import paired_difference
from pipeline import write_atomic, write_json

CONTROLS = ("random_zoom", "recency_zoom", "sumr")
SWEEPS = ("ambiguities", "windows")
TITLE = "What the paper leaves open, and the window"
Settings = dict[str, Any]


def section(cells: list[ScoredCell], reference: Settings, results: Path) -> Section:
    """ZoomR's cells that differ from the reference in more than c and k, and the options that were not run."""
    rows, missing = [], []
    for (benchmark, model), here in groups(cells).items():
        zoomed = [(changes(cell, reference), cell) for cell in here if cell.method == "zoomr"]
        plain = next((cell for changed, cell in zoomed if not changed), None)
        others = [(changed, cell) for changed, cell in zoomed if changed.keys() - {"c", "k"}]
        if plain is not None and others:
            head = {"benchmark": benchmark_title(benchmark), "model": model}
            controls = [cell for cell in here if cell.method in CONTROLS and not changes(cell, reference)]
            rows += [head | row(changed, cell, plain, controls, here) for changed, cell in others]
            if lacking := not_there([changed for changed, _ in zoomed], reference):
                missing.append(f"{benchmark_title(benchmark)}, {model}, not run: {lacking}.")
    if not rows:
        return not_run("options", TITLE, "python -m eval.generate -m sweep=ambiguities")
    stated = ", ".join(f"{key} = {reference[key]}" for key in ("c", "k", "window") if key in reference)
    note = (
        f"ZoomR with {stated} where nothing else is said; minus ZoomR as in table 1, in points, paired over problems; "
        "so are the differences from the controls."
    )
    write_json(results / "options.json", {"rows": as_json(rows), "missing": missing})
    write_atomic(results / "options.md", "\n\n".join([f"# {TITLE}", note, *missing, markdown(rows)]))
    return Section("options", TITLE, [Text(note, soft=True), Table(rows), *map(Text, missing)])


def changes(cell: ScoredCell, reference: Mapping[str, Any]) -> Settings:
    """Settings of a cell's policy that are not the reference's."""
    return {key: value for key, value in cell.policy.items() if key in reference and value != reference[key]}


def not_there(found: Sequence[Settings], reference: Mapping[str, Any]) -> str:
    """The options of the sweeps for which no cell was found, a sweep after the other."""
    parts = []
    for sweep in SWEEPS:
        wanted = {
            name: {key: value for key, value in settings.items() if value != reference.get(key)}
            for name, settings in options(sweep)
        }
        missing = [name for name, changed in wanted.items() if changed and changed not in found]
        if missing:
            parts.append(f"{', '.join(missing)} of sweep={sweep}")
    return "; ".join(parts)


def options(sweep: str) -> Iterator[tuple[str, Settings]]:
    """The cells of a sweep over one method's settings: a name, and the settings of the method that it changes."""
    lists = yaml.safe_load((CONFIGS / "sweep" / f"{sweep}.yaml").read_text())
    varied = {key: str(values).split(",") for key, values in lists.items() if key != "method"}
    for choice in product(*varied.values()):
        settings: Settings = {}
        for key, value in zip(varied, choice, strict=True):
            if key == "option":
                settings |= yaml.safe_load((CONFIGS / "option" / f"{value}.yaml").read_text())
            else:
                settings[key.removeprefix("method.")] = yaml.safe_load(value)
        words = [
            value if key == "option" else f"{key.removeprefix('method.')} {value}"
            for key, value in zip(varied, choice, strict=True)
        ]
        yield ", ".join(words), settings


def row(
    changed: Settings, cell: ScoredCell, plain: ScoredCell, controls: Sequence[ScoredCell], here: Sequence[ScoredCell]
) -> dict[str, Any]:
    """One line of the table."""
    share = cell.meters["active_tokens_peak"] / plain.meters["active_tokens_peak"]
    return {
        "ZoomR with": Link(", ".join(in_words(*change) for change in changed.items()), cell_link(cell).anchor),
        "accuracy": accuracy(cell),
        "minus ZoomR": paired_difference(cell.accuracy, plain.accuracy),
        "active, peak": round(cell.meters["active_tokens_peak"]),
        "relative": f"{100 * (share - 1):+.0f}%",
        "saving": times(saving(cell, here)),
    } | {f"minus {look(other.method).title}": paired_difference(cell.accuracy, other.accuracy) for other in controls}


def in_words(key: str, value: Any) -> str:
    """A changed setting: its name, and its value where that is not just on."""
    return key.replace("_", " ") + ("" if value is True else f" {value}")
