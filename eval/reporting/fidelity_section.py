"""The report's section on fidelity: the newest runs of eval.fidelity, a table and a figure each."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.reporting import html
from eval.reporting.active_sizes import gap_sentence, sizes
from eval.reporting.fidelity import ROWS, Row, fidelity_table, halves_sentence, write_fidelity
from eval.reporting.origins import Origin, latest_run, of_manifest
from eval.reporting.sections import Section, not_run
from eval.reporting.table1 import method_name
from pipeline import read_manifest, read_rows

ANCHOR, TITLE = "fidelity", "Fidelity to the full cache"
GRIDS = {
    "fidelity": (
        "Methods",
        "Added NLL and KL divergence against active KV tokens, teacher-forced. Open markers keep the whole prompt; "
        "bars: 95% bootstrap interval over traces.",
    ),
    "ambiguities": (
        "What the paper leaves open",
        "ZoomR with one setting changed beside ZoomR with our defaults on the same traces, teacher-forced; "
        "bars: 95% bootstrap interval over traces. Left of zero a change does less damage.",
    ),
}


def section(measured: Path, paper: dict[str, Any], results: Path) -> tuple[Section, list[Origin]]:
    """What the methods do to the predictions on given traces, and where the numbers come from.

    Parameters
    ----------
    measured : Path
        The directory of the fidelity stage.
    paper : dict
        Of results/paper.yaml.
    results : Path
        Gets the tables and the figures.

    Returns
    -------
    tuple of Section and list of Origin
        Not run, and no origin, where there is no finished run.
    """
    body, origins = "", []
    for name, (title, caption) in GRIDS.items():
        directory = latest_run(measured, name)
        if directory is None:
            continue
        manifest = read_manifest(directory)
        origin = of_manifest(f"Fidelity: {title}", f"run-{directory.name}", manifest)
        rows = read_rows(directory / ROWS)
        _, drawing, _ = write_fidelity(rows, manifest, results)
        table = [
            row | {"method": html.Link(row["method"], origin.anchor)}
            for row in readable_rows(rows, manifest["settings"]["model"])
        ]
        gap = gap_sentence(rows, paper["consensus"]["mean_refresh_gap_tokens"])
        sentences = [halves_sentence(rows), gap, manifest["config"]["model"].get("note", "")]
        body += f"<h3>{html.escape(title)}</h3>\n{html.paragraph(' '.join(filter(None, sentences)))}"
        body += html.figure(drawing, caption) + html.table(table)
        if sized := sizes(rows):
            body += html.table(sized)
        origins.append(origin)
    if not origins:
        return not_run(ANCHOR, TITLE, "python -m eval.fidelity"), []
    return Section(ANCHOR, TITLE, body), origins


def readable_rows(rows: Sequence[Row], model: dict[str, Any]) -> list[Row]:
    """The table for people: added NLL with its interval, and its paired difference to ZoomR with the same window."""
    return [
        {
            "method": method_name(line["method"]),
            "budget": line["budget"],
            "active, mean": f"{line['active_tokens_mean']:.0f}",
            "seen": f"{line['seen_tokens_mean']:.0f}",
            "added NLL": f"{line['delta_nll']:+.4f} [{line['ci_low']:+.4f}, {line['ci_high']:+.4f}]",
            "minus ZoomR's": difference_text(line),
            "KL": f"{line['kl']:.4f}",
            "top-1 agreement": f"{100 * line['top1_agreement']:.1f}%",
            "refresh gap": f"{line['refresh_gap']:.1f}" if line["refresh_gap"] else "",
            "traces": line["n_traces"],
        }
        for line in fidelity_table(rows, model)
    ]


def difference_text(line: Row) -> str:
    """Paired difference of the added NLL from ZoomR's, with its interval; empty for ZoomR itself and the full cache."""
    if line["minus_zoomr"] is None:
        return ""
    return f"{line['minus_zoomr']:+.4f} [{line['minus_zoomr_low']:+.4f}, {line['minus_zoomr_high']:+.4f}]"
