"""Self-contained HTML pages from jinja2 templates: the project's style, light and dark, no script, no network.

A page is a template that begins with ``{% extends "base.html" %}`` and fills the block ``body``; ``kit.html`` has a
table and a figure to import.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader
from markupsafe import Markup

TEMPLATES = Path(__file__).with_name("templates")


def render(template: Path, **values: Any) -> str:
    """Fill a template; texts are escaped unless they are `Markup`.

    Parameters
    ----------
    template : Path
        The file; what it extends, imports or includes lies beside it or in pipeline/templates.
    **values
        What the template speaks of, ``title`` among it.
    """
    return _environment(template.parent).get_template(template.name).render(**values)


def drawing(svg: Path) -> Markup:
    """A figure to be placed into a page, drawn in the page's own ink, so that it reads by day and by night."""
    text = svg.read_text()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = text.replace("#000000", "currentColor").replace("#ffffff", "var(--paper)")
    text = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true">', text, count=1)
    # Ids are unique in one drawing only.
    return Markup(re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{svg.stem}-", text))


@cache
def _environment(beside: Path) -> Environment:
    environment = Environment(
        loader=ChoiceLoader([FileSystemLoader(beside), FileSystemLoader(TEMPLATES)]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["drawing"] = drawing
    return environment
