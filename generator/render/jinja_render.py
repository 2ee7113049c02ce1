"""Render templates by Jinja2 itself: the meaning that the compiled ones must keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generator.locations import templates_folder
from generator.render.environment import make_environment, render_template, template_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def render_by_jinja(given: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each template's name and what it gives. Raises TemplateError, which names the template."""
    folder = templates_folder()
    environment = make_environment(folder)
    for name in template_names(folder):
        yield name, render_template(environment, name, given)
