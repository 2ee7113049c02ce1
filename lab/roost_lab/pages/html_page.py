"""Make one HTML file of sections with plots and tables, which loads nothing from the network.

The template escapes texts. A content security policy allows the page's own script, by its hash, and
nothing else.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from importlib import resources
from typing import Any, Final, NamedTuple

from jinja2 import Environment, StrictUndefined

from roost_lab.pages.drawing import Figure
from roost_lab.pages.table import Cell, Table, Unit

# What no page may have: a terminal that shows the file would obey it, or show a text in another
# order. Events' messages and images' names may be anybody's.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Tile(NamedTuple):
    """One key figure at the head of the page."""

    name: str
    value: str
    about: str


class Part(NamedTuple):
    """A section of the page, as declared."""

    key: str
    title: str
    about: str
    # None: there is nothing to draw.
    figures: Sequence[Figure | None]
    tables: Sequence[Table]
    # The text when none of the figures has anything to draw.
    nothing: str
    beside: bool = False


def render(
    *,
    title: str,
    about: str,
    footer: str,
    notices: Sequence[str],
    tiles: Sequence[Tile],
    parts: Sequence[Part],
    show: Callable[[Cell, Unit], str],
    sentence: str = "",
    more_css: str = "",
) -> str:
    """The whole page; parts without figures and rows are left out.

    show: formats a cell for people. sentence: what the page says first. more_css: further CSS
    variables for colours.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["show"] = lambda cell, unit: show(cell, Unit(unit))
    template = environment.from_string(resource("page.html.j2"))
    made = [_section(part) for part in parts]
    sections = [section for section in made if section is not None]
    script = resource("page.js") if sections else ""
    page = template.render(
        title=title,
        about=about,
        sentence=sentence,
        notices=notices,
        tiles=tiles,
        sections=sections,
        footer=footer,
        policy=content_policy(script),
        css=resource("page.css") + more_css,
        script=script,
        figures=_script_safe(
            {figure.key: figure.as_json() for section in sections for figure in section["figures"]}
        ),
    )
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", page)


def _section(part: Part) -> dict[str, Any] | None:
    tables = [table for table in part.tables if not table.only_data]
    if not any(part.figures) and not part.nothing and not any(table.rows for table in tables):
        return None
    shown = []
    for table in tables:
        # A column in which nothing is known tells nothing.
        known = [
            place
            for place in range(len(table.columns))
            if any(row[place] not in (None, "") for row in table.rows)
        ]
        columns = [table.columns[place] for place in known]
        rows = [[(row[place], table.columns[place]) for place in known] for row in table.rows]
        shown.append({"title": table.title, "columns": columns, "rows": rows})
    return {
        **part._asdict(),
        "figures": [figure for figure in part.figures if figure is not None],
        "tables": shown,
    }


def content_policy(script: str) -> str:
    """A content security policy that allows this script and the page's own styles alone."""
    allowed = (
        f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" if script else "'none'"
    )
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"


def _script_safe(value: object) -> str:
    # JSON in a script element: no text may look like its end or like a comment.
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def resource(name: str) -> str:
    """The text of a file beside this one."""
    return (resources.files("roost_lab.pages") / name).read_text(encoding="utf-8")
