"""Render merged, valid values to manifests, in an order that one `kubectl apply -f -` accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from generator.faults import Fault, GeneratorError, ValuesError
from generator.package_data import chart_folder, templates_folder
from generator.render.environment import (
    RestrictedEnvironment,
    make_environment,
    render_template,
    template_names,
)
from generator.render.functions import Chart, TemplateError, context
from generator.render.order import rank
from generator.values.release_name import Release

_SEPARATOR: Final = re.compile(r"^---[ \t]*(?:#.*)?$", re.MULTILINE)
# The lines that say which object a document is, as every template writes them. `metadata` comes
# before `roleRef`, `spec` and the like, so the first name is the object's. Below those, a namespace
# never has this indentation.
_HEAD: Final = re.compile(
    r"^(apiVersion|kind|metadata): *(\S.*)?$|^  (name|namespace): *(\S.*)$", re.MULTILINE
)


class Identity(NamedTuple):
    """What identifies an object in a cluster. `namespace` is "" for cluster-scoped objects."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place} ({self.api_version})"


class Manifest:
    """One object: its YAML as rendered, its identity, and its body, which is parsed on first
    use.
    """

    def __init__(self, text: str, template: str) -> None:
        self.text = text
        self.template = template
        self.identity = _read_identity(text, template)

    @cached_property
    def body(self) -> dict[str, object]:
        """The object as data."""
        return parse_document(self.text, self.template)


def render(values: Mapping[str, object], release: Release) -> list[Manifest]:
    """Render every template with `values` (merged and valid). Sorted for apply; same values, same
    bytes.

    Raises GeneratorError when a template can't be rendered: an error in Roost, or values that
    weren't validated.
    """
    if values.get("enabled") is False:
        return []
    manifests = [
        Manifest(text, template)
        for template, output in render_texts(values, release)
        for text in documents(output)
    ]
    manifests.sort(key=lambda manifest: (rank(manifest.identity.kind), manifest.identity))
    for before, after in pairwise(manifests):
        if before.identity == after.identity:
            raise GeneratorError(
                f"{after.template}: {after.identity} is rendered twice; give one another name."
            )
    return manifests


def render_texts(values: Mapping[str, object], release: Release) -> Iterator[tuple[str, str]]:
    """Yield each template's name and output for `values`.

    Raises ValuesError when a template rejects them.
    """
    template_context = context(values, release, read_chart())
    try:
        environment, names = _environment(templates_folder())
        for name in names:
            yield name, render_template(environment, name, template_context)
    except TemplateError as error:
        raise ValuesError([Fault("values", 0, "", str(error))]) from error


@cache
def _environment(folder: Path) -> tuple[RestrictedEnvironment, list[str]]:
    return make_environment(folder), template_names(folder)


def documents(output: str) -> list[str]:
    """Split a template's output into YAML documents, without separators and empty documents."""
    parts_with_content = []
    for part in _SEPARATOR.split(output):
        text = part.strip("\n")
        if any(line.strip() and not line.lstrip().startswith("#") for line in text.split("\n")):
            parts_with_content.append(text + "\n")
    return parts_with_content


def parse_document(text: str, name: str) -> dict[str, object]:
    """Parse one manifest as the API server would.

    Raises GeneratorError when it is not an object.
    """
    # Rendering itself parses nothing.
    import yaml  # noqa: PLC0415

    try:
        body = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise GeneratorError(f"{name}: is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(body, dict):
        raise GeneratorError(f"{name}: found {type(body).__name__}, expected an object")
    return body


def read_chart() -> Chart:
    """Read the chart's versions."""
    version = app_version = ""
    for line in (chart_folder() / "Chart.yaml").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key == "version":
            version = value.strip().strip("\"'")
        elif key == "appVersion":
            app_version = value.strip().strip("\"'")
    return Chart(version, app_version)


def _read_identity(text: str, template: str) -> Identity:
    """Read the identity from the head's lines; parsing whole documents would take most of a
    render's time.
    """
    top: dict[str, str] = {}
    names: dict[str, str] = {}
    in_metadata = False
    for match in _HEAD.finditer(text):
        key, value, inner, inner_value = match.groups()
        if key:
            in_metadata = key == "metadata"
            top.setdefault(key, _plain(value or ""))
        elif in_metadata:
            names.setdefault(inner, _plain(inner_value))
        if len(top) == 3 and len(names) == 2:
            break
    if not (top.get("apiVersion") and top.get("kind") and names.get("name")):
        raise GeneratorError(f"{template}: an object lacks apiVersion, kind or metadata.name")
    return Identity(top["apiVersion"], top["kind"], names.get("namespace", ""), names["name"])


def _plain(value: str) -> str:
    if value[:1] == '"':
        return str(json.loads(value))
    return value.strip("'")
