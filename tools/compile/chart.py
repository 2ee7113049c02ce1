"""Write the chart's generated files from `templates/`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from generator.render.environment import SUFFIX, holds_macros, template_names
from tools.compile.expressions import CompileError, Macros
from tools.compile.shape import read_shape
from tools.compile.template import compile_template, macros_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SOURCES: Final = "templates"
_CHART: Final = "chart"
# How the first line of a generated file begins: such files are known by it.
_GENERATED: Final = "{{- /* Written by `make generated` from "
_DEFINED: Final = re.compile(r'\bdefine "roost\.(\w+)"')


def compile_chart(root: Path) -> dict[str, str]:
    """Compile all of `root`/templates; give the text by path below `root`/chart.

    Raises CompileError.
    """
    folder = root / _SOURCES
    shape = read_shape(root / _CHART)
    macros: Macros = {
        name: macros_of((folder / name).read_text()) for name in template_names(folder, macros=True)
    }
    _check_names(macros, _helpers(root / _CHART))
    compiled = {}
    for name in (*macros, *template_names(folder)):
        target = f"templates/{name.removesuffix(SUFFIX)}{'.tpl' if holds_macros(name) else '.yaml'}"
        text = compile_template(name, (folder / name).read_text(), shape, macros)
        compiled[target] = _head(name) + text
    return compiled


def _head(name: str) -> str:
    """The first line of a file that is written from templates/`name`."""
    return _GENERATED + f"templates/{name}" + ": edit that file. */}}\n"


def _helpers(chart: Path) -> dict[str, str]:
    """Helpers that are written by hand: the file of each, by its name."""
    found: dict[str, str] = {}
    for path in sorted((chart / "templates").glob("*.tpl")):
        text = path.read_text()
        if not text.startswith(_GENERATED):
            file = path.relative_to(chart.parent).as_posix()
            found |= dict.fromkeys(_DEFINED.findall(text), file)
    return found


def _check_names(macros: Macros, helpers: Mapping[str, str]) -> None:
    """Refuse two macros or helpers of one name: to Go, all files of a chart are one."""
    first = dict(helpers)
    for file, names in macros.items():
        for name in names:
            if first.setdefault(name, file) != file:
                raise CompileError(
                    f"templates/{file}: macro '{name}' is in {first[name]} too: rename one"
                )


def stale_files(root: Path) -> dict[Path, str | None]:
    """The chart's files that aren't as `root`/templates says: the text that belongs there; None: it
    was generated from a file that is gone.
    """
    chart = root / _CHART
    fresh = {chart / name: text for name, text in compile_chart(root).items()}
    # Known by their first line, which an earlier run wrote.
    there = {
        path: text
        for path in sorted((chart / "templates").rglob("*"))
        if path.is_file() and (text := path.read_text()).startswith(_GENERATED)
    }
    changed = {path: fresh.get(path) for path in {**there, **fresh}}
    return {path: text for path, text in changed.items() if text != there.get(path)}


def write_chart(root: Path, *, checks: bool = False) -> list[str]:
    """Write the chart's generated files and remove those whose source is gone; give the paths below
    `root` that changed. checks: only give them.
    """
    changed = stale_files(root)
    if not checks:
        for path, text in changed.items():
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    return sorted(str(path.relative_to(root)) for path in changed)
