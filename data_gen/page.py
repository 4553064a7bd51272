"""Self-contained HTML pages: tables and histograms, no scripts and nothing loaded from elsewhere."""

import html
from collections.abc import Iterable, Sequence
from typing import Any

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1f2430; }
table { border-collapse: collapse; margin: 1rem 0; } td, th { padding: .2rem .8rem; border-bottom: 1px solid #dde1e8; }
td { text-align: right; } td:first-child, th:first-child { text-align: left; }
figure { display: inline-block; margin: 1rem 2rem 1rem 0; } figcaption { font-weight: 600; }
pre { white-space: pre-wrap; background: #f6f7f9; padding: 1rem; border-radius: 6px; }
mark { background: #ffe9a8; } .prompt { color: #5b6472; } .control { color: #a03c3c; } summary { cursor: pointer; }
"""


def page(title: str, body: Iterable[str]) -> str:
    """Return a whole page with the given parts of HTML."""
    parts = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{STYLE}</style></head>\n<body><h1>{html.escape(title)}</h1>\n{parts}\n</body></html>\n"
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table; numbers are written with thousands separators."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    lines = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>\n" for row in rows)
    return f"<table><tr>{head}</tr>\n{lines}</table>"


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else html.escape(str(value))


def histogram(values: Sequence[int], title: str, bins: int = 30) -> str:
    """Return a figure with the distribution of non-negative integers; the last bar holds everything beyond the range.

    The range ends at the 99th percentile, so that one outlier does not flatten the rest.
    """
    if not values:
        return ""
    ordered = sorted(values)
    low, high = ordered[0], ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    width = max(1, -(-(high - low + 1) // bins))
    counts = [0] * (-(-(high - low + 1) // width))
    for value in ordered:
        counts[min((value - low) // width, len(counts) - 1)] += 1
    step = 420 / len(counts)
    bars = "".join(
        f'<rect x="{i * step:.1f}" y="{140 - 130 * n / max(counts):.1f}" width="{max(step - 1, 1):.1f}" '
        f'height="{130 * n / max(counts):.1f}" fill="#4c72b0"><title>{low + i * width}+: {n:,}</title></rect>'
        for i, n in enumerate(counts)
    )
    return (
        f'<figure><figcaption>{html.escape(title)}</figcaption><svg width="430" height="165" role="img">{bars}'
        f'<text x="0" y="158" font-size="12">{low:,}</text>'
        f'<text x="420" y="158" font-size="12" text-anchor="end">{high:,} and above</text>'
        f'<text x="420" y="12" font-size="12" text-anchor="end">highest bar {max(counts):,}</text></svg></figure>'
    )
