"""Pieces of a self-contained HTML page: no network, no script, light and dark."""

import re
from collections.abc import Mapping, Sequence
from html import escape as escape
from pathlib import Path
from typing import Any

STYLE = Path(__file__).with_name("style.css")
NOT_RUN = '<p class="soft">Not run.</p>\n'
MARKS = ("reproduced", "differs", "not run", "yes", "no", "undecided")


def page(title: str, body: str) -> str:
    """Return a whole document with the style in it."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE.read_text()}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def section(anchor: str, title: str, *parts: str) -> str:
    """Return a titled section that the navigation can point at."""
    return f'<section id="{anchor}">\n<h2>{escape(title)}</h2>\n{"".join(parts)}</section>\n'


def paragraph(text: str, css: str = "") -> str:
    """Return a paragraph of plain text."""
    return f'<p class="{css}">{escape(text)}</p>\n' if css else f"<p>{escape(text)}</p>\n"


def mark(text: str) -> str:
    """Return a verdict, coloured and worded."""
    return f'<span class="mark {text.replace(" ", "-")}">{escape(text)}</span>'


def table(rows: Sequence[Mapping[str, Any]], links: Sequence[str] | None = None, linked: str = "") -> str:
    """Return a table that scrolls sideways on a narrow screen.

    Parameters
    ----------
    rows : sequence of mapping
        Rows with equal keys, the column titles.
    links : sequence of str, optional
        An anchor for each row.
    linked : str
        The column that carries the link.

    Returns
    -------
    str
        HTML. Verdicts are marked.
    """
    if not rows:
        return NOT_RUN
    head = "".join(f'<th scope="col">{escape(key)}</th>' for key in rows[0])
    lines = []
    for number, row in enumerate(rows):
        cells = []
        for key, value in row.items():
            text = mark(str(value)) if str(value) in MARKS else escape(str(value))
            if links is not None and key == linked:
                text = f'<a href="#{links[number]}">{text}</a>'
            cells.append(f"<td>{text}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>\n")
    body = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(lines)}</tbody>"
    return f'<div class="scroll" tabindex="0"><table>\n{body}</table></div>\n'


def figure(svg: Path, caption: str) -> str:
    """Return a figure drawn in the page's own ink, so that it reads by day and by night."""
    drawing = svg.read_text()
    drawing = drawing[drawing.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>\s*", "", drawing, flags=re.DOTALL)
    drawing = drawing.replace("#000000", "currentColor").replace("#ffffff", "var(--paper)")
    drawing = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" role="img">', drawing, count=1)
    # Ids are unique in one drawing only.
    drawing = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{svg.stem}-", drawing)
    return f"<figure>\n{drawing}<figcaption>{escape(caption)}</figcaption>\n</figure>\n"


def details(anchor: str, title: str, text: str) -> str:
    """Return a folded block of preformatted text."""
    return f'<details id="{anchor}"><summary>{escape(title)}</summary>\n<pre>{escape(text)}</pre></details>\n'
