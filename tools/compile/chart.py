"""Write the chart's generated files from `templates/`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from generator.render.environment import SUFFIX, holds_macros, template_names
from tools.compile.expressions import CompileError, Macros
from tools.compile.shape import read_shape
from tools.compile.template import compile_template, macros_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_SOURCES: Final = "templates"
_CHART: Final = "chart"
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
        compiled[target] = f"{_GENERATED}templates/{name}: edit that file. */}}}}\n{text}"
    return compiled


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


def _generated_files(chart: Path) -> Iterator[Path]:
    """Files that an earlier run wrote, known by their first line."""
    for path in sorted((chart / "templates").rglob("*")):
        if path.is_file() and path.read_text().startswith(_GENERATED):
            yield path


def write_chart(root: Path) -> list[str]:
    """Write the chart's generated files and remove those whose source is gone; give the paths that
    changed.
    """
    chart = root / _CHART
    compiled = compile_chart(root)
    changed = []
    for path in _generated_files(chart):
        if str(path.relative_to(chart)) not in compiled:
            path.unlink()
            changed.append(str(path.relative_to(root)))
    for name, text in compiled.items():
        path = chart / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            changed.append(str(path.relative_to(root)))
    return changed


def check_fresh(root: Path) -> list[str]:
    """Give the paths below `root` that `write_chart` would change: none when the chart is fresh."""
    chart = root / _CHART
    compiled = compile_chart(root)
    leftover = [
        path for path in _generated_files(chart) if str(path.relative_to(chart)) not in compiled
    ]
    stale = [
        chart / name
        for name, text in compiled.items()
        if not (chart / name).exists() or (chart / name).read_text() != text
    ]
    return sorted(str(path.relative_to(root)) for path in [*leftover, *stale])
