"""Look into one sample: python -m eval.view sample=... writes a page with its text, its refreshes and its votes."""

import json
import webbrowser
from pathlib import Path
from typing import Any

from markupsafe import Markup
from omegaconf import DictConfig

from eval.samples import SAMPLES
from pipeline import read_manifest, read_rows, write_atomic
from pipeline.cli import stage
from pipeline.page import render as fill
from zoomr.errors import UserError

PAGE = Path(__file__).parent / "viewer" / "page.html"


@stage("view")
def view(cfg: DictConfig) -> None:
    """Write the page of a traced sample of the chosen method and benchmark."""
    directory, row = find(Path(cfg.paths.runs) / "generate", cfg.method.name, cfg.benchmark.name, cfg.sample)
    path = directory / "views" / f"{row['problem']}.html"
    write_atomic(path, render(row, read_manifest(directory)["settings"]))
    print(f"-> {path}   next: open it in a browser")
    if cfg.open:
        webbrowser.open(path.resolve().as_uri())


def find(generated: Path, method: str, benchmark: str, sample: str | None) -> tuple[Path, dict[str, Any]]:
    """Find a sample that keeps its refreshes.

    Parameters
    ----------
    generated : Path
        The directory of the generate stage.
    method, benchmark : str
        Names of the method and of the benchmark.
    sample : str or None
        Id of the problem; None takes the first.

    Returns
    -------
    tuple of Path and dict
        The cell that has it and was started last, and the row.

    Raises
    ------
    UserError
        When no cell has such a sample; names those that there are.
    """
    traced: list[str] = []
    manifests = {path: read_manifest(path.parent) for path in generated.glob(f"*/{SAMPLES}")}
    for path in sorted(manifests, key=lambda path: (manifests[path]["started"], path), reverse=True):
        settings = manifests[path]["settings"]
        if (settings["method"]["name"], settings["benchmark"]["name"]) == (method, benchmark):
            rows = [row for row in read_rows(path) if "trace" in row]
            traced += [row["problem"] for row in rows]
            for row in rows:
                if sample in (None, row["problem"], row["id"]):
                    return path.parent, row
    if not traced:
        raise UserError(
            f"{generated} holds no traced sample of method={method} on benchmark={benchmark}: run "
            f"`python -m eval.generate method={method} traces=3` first."
        )
    raise UserError(f"sample={sample} keeps no refreshes; those that do: {', '.join(dict.fromkeys(traced))}.")


def render(row: dict[str, Any], settings: dict[str, Any]) -> str:
    """Fill the viewer's page with a sample.

    Parameters
    ----------
    row : dict
        A row of samples.jsonl with its ``trace``.
    settings : dict
        Settings of its cell.

    Returns
    -------
    str
        A self-contained HTML document.
    """
    data = row["trace"] | {
        "title": f"{row['problem']}, {settings['method']['name']} on {settings['benchmark']['name']}",
        "window": settings["method"]["policy"].get("window", 0),
        "facts": {
            "status": row["status"],
            "gold": row["gold"],
            "prompt tokens": row["prompt_tokens"],
            "generated tokens": row["generated_tokens"],
            "summaries": row["summaries"],
            "refreshes": row["refreshes"],
            "peak active tokens": row["active_tokens_peak"],
        },
    }
    # "</" would end the script element early.
    embedded = json.dumps(data, ensure_ascii=False).replace("</", "<\\/")
    return fill(PAGE, data=Markup(embedded))


if __name__ == "__main__":
    view()
