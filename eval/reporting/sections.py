"""A section of report.html, and the table of contents.

To add one: write a function that returns a Section (with ``not_run`` where its file is missing) and name it in the list
of eval/report.py. The title begins with the paper's name of the table or figure, where it has one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.reporting import html


@dataclass(frozen=True)
class Section:
    """A titled part of the page.

    Attributes
    ----------
    anchor : str
        Its id in the page.
    title : str
        Its heading and its entry in the table of contents.
    body : str
        HTML.
    run : bool
        Whether there are numbers in it.
    """

    anchor: str
    title: str
    body: str
    run: bool = True


def not_run(anchor: str, title: str, command: str) -> Section:
    """A section without numbers, with the command that would make them."""
    return Section(anchor, title, f'<p class="soft">Not run: <code>{html.escape(command)}</code></p>\n', run=False)


def contents(sections: Sequence[Section]) -> str:
    """Links to the sections; those that were not run are drawn dashed and say so."""
    items = []
    for section in sections:
        css, note = ("", "") if section.run else (' class="missing"', " (not run)")
        items.append(f'<li><a href="#{section.anchor}"{css}>{html.escape(section.title)}{note}</a></li>\n')
    return f'<nav aria-label="Sections"><ul>\n{"".join(items)}</ul></nav>\n'


def bodies(sections: Sequence[Section]) -> str:
    """The sections one after the other."""
    return "".join(html.section(section.anchor, section.title, section.body) for section in sections)
