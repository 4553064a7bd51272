"""Pieces of a self-contained HTML page: no network, no script, light and dark."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape as escape
from pathlib import Path
from typing import Any

STYLE = Path(__file__).with_name("style.css")
COLOURS = Path(__file__).with_name("colours.css")
MARKS = ("reproduced", "differs", "not run", "yes", "no", "undecided")


def page(title: str, body: str) -> str:
    """Return a whole document with the style in it."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style(STYLE)}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def style(sheet: Path) -> str:
    """A style sheet with the colours that our pages share."""
    return COLOURS.read_text() + sheet.read_text()


def section(anchor: str, title: str, *parts: str) -> str:
    """Return a titled section that the navigation can point at."""
    return f'<section id="{anchor}">\n<h2>{escape(title)}</h2>\n{"".join(parts)}</section>\n'


def paragraph(text: str, css: str = "") -> str:
    """Return a paragraph of plain text."""
    return f'<p class="{css}">{escape(text)}</p>\n' if css else f"<p>{escape(text)}</p>\n"


def mark(text: str) -> str:
    """Return a verdict, coloured and worded."""
    return f'<span class="mark {text.replace(" ", "-")}">{escape(text)}</span>'


@dataclass(frozen=True)
class Link:
    """A text that leads to an anchor of the page."""

    text: str
    anchor: str

    def __str__(self) -> str:
        return self.text


def value(content: Any) -> str:
    """A table's value: a link as a link, a verdict marked, anything else as text."""
    text = mark(str(content)) if str(content) in MARKS else escape(str(content))
    return f'<a href="#{content.anchor}">{text}</a>' if isinstance(content, Link) else text


def sources(links: Iterable[Link]) -> str:
    """A line that names what numbers come from."""
    return f'<small class="sources">From {", ".join(map(value, links))}.</small>\n'


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table that scrolls sideways on a narrow screen, its first column staying.

    Parameters
    ----------
    rows : sequence of mapping
        Rows with equal keys, the column titles; a value that is a Link leads to its anchor. Columns in which all of
        several rows agree on a benchmark or a model stand above the table instead.

    Returns
    -------
    str
        HTML. Verdicts are marked.
    """
    shared = {key: str(rows[0][key]) for key in ("benchmark", "model") if key in rows[0] and same(rows, key)}
    keys = [key for key in rows[0] if key not in shared]
    head = "".join(f'<th scope="col">{escape(key)}</th>' for key in keys)
    lines = []
    for row in rows:
        first, *rest = (value(row[key]) for key in keys)
        lines.append(f'<tr><th scope="row">{first}</th>{"".join(f"<td>{text}</td>" for text in rest)}</tr>\n')
    caption = (
        paragraph(", ".join(f"{key} {name}" for key, name in shared.items()).capitalize(), "soft") if shared else ""
    )
    body = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(lines)}</tbody>"
    return f'{caption}<div class="scroll" tabindex="0"><table>\n{body}</table></div>\n'


def same(rows: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Whether several rows all have one value."""
    return len(rows) > 1 and len({str(row[key]) for row in rows}) == 1


def figure(svg: Path, caption: str) -> str:
    """Return a figure drawn in the page's own ink, so that it reads by day and by night."""
    drawing = svg.read_text()
    drawing = drawing[drawing.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>\s*", "", drawing, flags=re.DOTALL)
    drawing = drawing.replace("#000000", "currentColor").replace("#ffffff", "var(--paper)")
    drawing = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true">', drawing, count=1)
    # Ids are unique in one drawing only.
    drawing = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{svg.stem}-", drawing)
    return (
        f'<figure>\n<div class="scroll" tabindex="0">{drawing}</div>\n'
        f"<figcaption>{escape(caption)}</figcaption>\n</figure>\n"
    )


def details(anchor: str, title: str, text: str) -> str:
    """Return a folded block of preformatted text."""
    return f'<details id="{anchor}"><summary>{escape(title)}</summary>\n<pre>{escape(text)}</pre></details>\n'
