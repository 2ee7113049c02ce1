"""The quick way into `roost render`: its options in their usual forms, without the imports of the full command line.

`parse` gives None for whatever it isn't sure of (help, a mistake, a folder to write); roost/cli.py then has the say. A
test holds the two together.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from generator.checks.lint import check
from generator.checks.schema import validate
from generator.render.manifests import Manifest, render, stream
from generator.values.files import read_values
from generator.values.merge import Settings
from generator.values.release import DEFAULT_KUBE_VERSION, DEFAULT_NAME, DEFAULT_NAMESPACE, Release, check_release

if TYPE_CHECKING:
    from generator.faults import Fault
    from generator.values.merge import Merged

_OPTIONS = {
    "-f": "values",
    "--values": "values",
    "--set": "set",
    "--set-string": "set-string",
    "--set-json": "set-json",
    "--release": "release",
    "--namespace": "namespace",
    "-n": "namespace",
    "--kube-version": "kube-version",
}


class RenderOptions(NamedTuple):
    """What `roost render` was asked for."""

    files: tuple[str, ...] = ()
    settings: Settings = Settings()
    release: Release = Release()


def parse(arguments: list[str]) -> RenderOptions | None:
    """Read `render [-f FILE] [--set K=V] …`; None when anything is out of the ordinary."""
    if not arguments or arguments[0] != "render":
        return None
    given: dict[str, list[str]] = {}
    rest = iter(arguments[1:])
    for argument in rest:
        name, equals, value = argument.partition("=") if argument.startswith("--") else (argument, "", "")
        option = _OPTIONS.get(name)
        taken = value if equals else next(rest, None)
        if option is None or taken is None or taken.startswith("-"):
            return None
        given.setdefault(option, []).append(taken)
    return RenderOptions(
        files=tuple(given.get("values", ())),
        settings=Settings(
            json_values=tuple(given.get("set-json", ())),
            values=tuple(given.get("set", ())),
            string_values=tuple(given.get("set-string", ())),
        ),
        release=Release(
            name=given.get("release", [DEFAULT_NAME])[-1],
            namespace=given.get("namespace", [DEFAULT_NAMESPACE])[-1],
            kube_version=given.get("kube-version", [DEFAULT_KUBE_VERSION])[-1],
        ),
    )


def make(merged: Merged, release: Release) -> tuple[list[Manifest], list[Fault]]:
    """Manifests of merged values, and what `roost validate` warns of. Raises GeneratorError."""
    check_release(release)
    validate(merged)
    warnings = check(merged, release)
    return render(merged.values, release), warnings


def manifests(options: RenderOptions) -> list[Manifest]:
    """Everything from file names to manifests; warnings go to stderr. Raises GeneratorError."""
    check_release(options.release)
    made, warnings = make(read_values(options.files, options.settings), options.release)
    sys.stderr.write("".join(f"{warning}\n" for warning in warnings))
    return made


def run(options: RenderOptions) -> int:
    """Write all manifests to stdout."""
    sys.stdout.write(stream(manifests(options)))
    return 0
