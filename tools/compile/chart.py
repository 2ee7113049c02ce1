"""Write the chart's generated files from `templates/`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from generator.render import functions
from generator.render.environment import SUFFIX, holds_macros, template_names
from generator.render.managed_images import are_too_many, profile_seats
from roost_core.placement import labels
from tools.compile.expressions import WRITTEN_HELPERS, CompileError, Macros
from tools.compile.python import define_functions
from tools.compile.shape import read_shape
from tools.compile.template import compile_template, macros_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_SOURCES: Final = "templates"
_CHART: Final = "chart"
_GENERATED: Final = "{{- /* Written by `make generated` from "
_FUNCTIONS: Final = "templates/_functions.tpl"


def compile_chart(root: Path) -> dict[str, str]:
    """Compile all of `root`/templates; give the text by path below `root`/chart.

    Raises CompileError.
    """
    folder = root / _SOURCES
    shape = read_shape(root / _CHART)
    macros: Macros = {
        name: macros_of((folder / name).read_text()) for name in template_names(folder, macros=True)
    }
    names = [getattr(labels, name) for name in WRITTEN_HELPERS]
    own = (
        labels.base_name,
        functions.pulled_labels,
        functions.pullers,
        are_too_many,
        profile_seats,
    )
    defined = define_functions([*names, *own])
    _check_names(macros, defined)
    compiled = {}
    for name in (*macros, *template_names(folder)):
        target = f"templates/{name.removesuffix(SUFFIX)}{'.tpl' if holds_macros(name) else '.yaml'}"
        text = compile_template(name, (folder / name).read_text(), shape, macros)
        compiled[target] = f"{_GENERATED}templates/{name}: edit that file. */}}}}\n{text}"
    compiled[_FUNCTIONS] = "\n".join(
        [f"{_GENERATED}Python's own, which each names. */}}}}\n", *defined.values()]
    )
    return compiled


def _check_names(macros: Macros, functions: Iterable[str]) -> None:
    """Refuse two macros or functions of one name: to Go, all files of a chart are one."""
    first = {name.removeprefix("roost."): "Python" for name in functions}
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
