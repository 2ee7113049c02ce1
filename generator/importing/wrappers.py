"""Read a hub's values from a file of whatever installs the hub's chart.

Objects of Argo CD, Flux, Crossplane and k3s may stand alone or among others. Rancher Fleet,
helmfile and kustomize are read, too, and the Secret that the hub's chart makes.
What makes the values itself (Nebari), or has them in other files, is refused by name, with the
command that gives plain values. So is a template that isn't filled in. Source: the tools'
documentation of 2026; zero-to-jupyterhub 4.4, templates/hub/secret.yaml.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from generator.faults import Fault, KeyPath, ValuesError, show_path
from generator.hub_keys import HUB_KEYS
from generator.importing.argo_flux import (
    api_group,
    is_argo_or_flux,
    mapping_at,
    text_at,
    unread,
    unwrap,
    values_from_config_maps,
    values_of,
)
from generator.importing.source import find_charts
from generator.values.loader import load
from generator.values.lookups import child, listing, mapping, text
from generator.values.sources import LoadedFile

_DOCUMENT: Final = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_PLAIN: Final = "helm get values RELEASE --all -n NAMESPACE -o yaml"
# Argo CD and kustomize make no release of Helm's, but what the chart makes is in the cluster.
FROM_CLUSTER: Final = "kubectl get secret hub -n NAMESPACE -o yaml"
KUSTOMIZE: Final = "kustomize's helmCharts"
WITHOUT_RELEASE: Final = ("Application", "ApplicationSet", KUSTOMIZE)
# The hub's Secret has all values, with what the chart adds to them.
MADE_BY_CHART: Final = "the Secret of a hub"
_ADDED: Final = ("Chart", "Release")
_TEMPLATE: Final = re.compile(r"\{\{|\{%|%\{|\$\{")
# How a file of another language ends.
_LANGUAGES: Final = {"py": "Python", "tf": "Terraform", "jsonnet": "Jsonnet"}
_CHARTS: Final = ("jupyterhub", "binderhub", "basehub", "daskhub")
# Of Nebari's configuration: by one of these keys it is known from others with a project_name.
_NEBARI: Final = ("qhub_version", "default_images", "provider", "profiles")


class Unwrapped(NamedTuple):
    """A hub's values in a file."""

    # Later ones over earlier.
    files: list[LoadedFile]
    # "": the file names none.
    release: str = ""
    # What holds the values, for people; "": they are plain.
    kind: str = ""
    # Keys that give the chart more, from elsewhere.
    unread: Sequence[str] = ()
    # A warning for each key that stands twice.
    repeated: Sequence[Fault] = ()


def read_hub_file(name: str, content: str | bytes) -> Unwrapped:
    """The values that a file holds, whatever holds them there.

    Raises ValuesError when it is no YAML, holds two hubs, or has none whose values can be read.
    """
    _refuse_language(name)
    repeated: list[Fault] = []
    try:
        unwrapped = _read(name, content, repeated)
    except ValuesError as error:
        _refuse_template(name, content, error)
        raise
    return unwrapped._replace(repeated=repeated)


def _refuse_language(name: str) -> None:
    """Refuse a file of another language by its name: the YAML parser's words would help nobody."""
    _, _, ending = name.rpartition(".")
    language = _LANGUAGES.get(ending)
    if language is None:
        return
    fix = f"Give what its tool makes of it, or what Helm made of all: {_PLAIN}"
    if ending == "py":
        fix = "Write it as text below hub.extraConfig of a values file, and give that file, too."
    raise ValuesError([Fault(name, 1, "", language, "values in YAML", fix)])


def _refuse_template(name: str, content: str | bytes, error: ValuesError) -> None:
    """Say that a file is a template, where it stops being YAML at what a tool will fill in."""
    written = content.decode(errors="replace") if isinstance(content, bytes) else content
    lines = ["", *written.split("\n")]
    for fault in error.faults:
        if fault.line < len(lines) and _TEMPLATE.search(lines[fault.line]):
            fix = f"Give what its tool makes of it, or what Helm made of all: {_PLAIN}"
            template = Fault(name, fault.line, "", "a template", "it filled in", fix)
            raise ValuesError([template]) from error


def _read(name: str, content: str | bytes, repeated: list[Fault]) -> Unwrapped:
    objects = [part for file in _documents(name, content, repeated) for part in _parts_of(file)]
    if not objects:
        return Unwrapped([load(b"", name)])
    if len(objects) == 1:
        return _with_values(_unwrapped(objects[0], objects), name)
    holders = [_unwrapped(file, objects) for file in objects if _may_hold(file)]
    hubs = [holder for holder in holders if find_charts(values_of(holder.files)) is not None]
    if len(hubs) > 1:
        names = " and ".join(f"{hub.kind or 'values'} {hub.release}".strip() for hub in hubs)
        found = f"{len(hubs)} hubs: {names}"
        fix = "Give the one of this hub as a file of its own."
        raise ValuesError([Fault(name, 1, "", found, "one hub", fix)])
    if hubs:
        return _with_values(hubs[0], name)
    if len(holders) == 1:
        return _with_values(holders[0], name)
    kinds = [text(file.values.get("kind")) or "a document" for file in objects]
    found = f"no hub in {', '.join(dict.fromkeys(kinds))}"
    fix = f"Give the one that holds the hub's values, or what Helm made of all: {_PLAIN}"
    raise ValuesError([Fault(name, 1, "", found, "one with a hub's values", fix)])


def _documents(name: str, content: str | bytes, repeated: list[Fault]) -> list[LoadedFile]:
    """Each YAML document that isn't empty, with the lines that it has in the file."""
    encoded = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    try:
        written = encoded.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return [load(encoded, name, repeated)]
    marks = [mark.start() for mark in _DOCUMENT.finditer(written)]
    # A directive (%YAML) would be cut off from the document after the next mark.
    has_directive = written.lstrip().startswith("%")
    if not marks or has_directive:
        return [load(encoded, name, repeated)]
    documents: list[LoadedFile] = []
    # The first document may begin without a mark.
    for begin, end in pairwise([0, *marks, len(written)]):
        body = _DOCUMENT.sub("", written[begin:end], count=1)
        body = re.sub(r"^\.\.\.\s*$", "", body, flags=re.MULTILINE)
        # Below as many empty lines, each key stands in the line that it has in the file.
        lines_above = "\n" * written.count("\n", 0, begin)
        lines = [line.strip() for line in body.splitlines()]
        if any(line and not line.startswith("#") for line in lines):
            documents.append(load((lines_above + body).encode(), name, repeated))
    return documents or [load(b"", name)]


def _parts_of(file: LoadedFile) -> Iterator[LoadedFile]:
    """Each object of what `kubectl get` prints of several."""
    if file.values.get("kind") == "List" and isinstance(file.values.get("items"), list):
        for place in range(len(listing(file.values["items"]))):
            yield mapping_at(file, ("items", place))
    else:
        yield file


def _may_hold(file: LoadedFile) -> bool:
    """Whether one of several documents may hold a hub's values: other objects don't."""
    values = file.values
    if is_argo_or_flux(values) or any(reader.holds(values) for reader in _READERS):
        return True
    is_object = "apiVersion" in file.values and isinstance(file.values.get("kind"), str)
    return not is_object and find_charts(file.values) is not None


def _unwrapped(file: LoadedFile, others: Sequence[LoadedFile]) -> Unwrapped:
    _refuse_nebari(file)
    if is_argo_or_flux(file.values):
        files, release = unwrap(file)
        below, read_keys = values_from_config_maps(file, others)
        return Unwrapped(
            files=[*below, *files],
            release=release,
            kind=text(file.values.get("kind")),
            unread=[key for key in unread(file) if key not in read_keys],
        )
    for reader in _READERS:
        if reader.holds(file.values):
            return reader.read(file)
    return Unwrapped([file], _release_beside(file.values))


def _with_values(unwrapped: Unwrapped, name: str) -> Unwrapped:
    """The same. Raises ValuesError if an object holds no values at all: they are elsewhere."""
    if not unwrapped.kind or values_of(unwrapped.files):
        return unwrapped
    found = f"{unwrapped.kind} without a hub's values in it"
    expected = "values in it, not elsewhere"
    if unwrapped.unread:
        expected += f" ({', '.join(unwrapped.unread)})"
    whole = f"what Helm made of all: {_PLAIN}"
    if unwrapped.kind in WITHOUT_RELEASE:
        whole = f"the Secret that the chart made of all: {FROM_CLUSTER}"
    fix = f"Give the files that it names, or {whole}"
    raise ValuesError([Fault(name, 1, "", found, expected, fix)])


class _Reader(NamedTuple):
    """A way of installing a chart."""

    holds: Callable[[Mapping[str, object]], bool]
    read: Callable[[LoadedFile], Unwrapped]


def _crossplane(file: LoadedFile) -> Unwrapped:
    at = ("spec", "forProvider")
    own_name = child(file.values, "metadata", "annotations", "crossplane.io/external-name")
    release = text(own_name) or text(child(file.values, "metadata", "name"))
    more = _keys(child(file.values, *at), at, "valuesFrom", "set")
    return Unwrapped([mapping_at(file, (*at, "values"))], release, "Crossplane's Release", more)


def _k3s(file: LoadedFile) -> Unwrapped:
    release = text(child(file.values, "metadata", "name"))
    files: list[LoadedFile] = []
    if isinstance(child(file.values, "spec", "valuesContent"), str):
        files.append(text_at(file, ("spec", "valuesContent")))
    if isinstance(child(file.values, "spec", "values"), Mapping):
        files.append(mapping_at(file, ("spec", "values")))
    more = _keys(child(file.values, "spec"), ("spec",), "valuesSecrets", "set")
    return Unwrapped(files, release, text(file.values.get("kind")), more)


def _fleet(file: LoadedFile) -> Unwrapped:
    holder = child(file.values, "helm")
    more = _keys(holder, ("helm",), "valuesFiles", "valuesFrom")
    more += _keys(file.values, (), "targetCustomizations")
    files = [mapping_at(file, ("helm", "values"))]
    return Unwrapped(files, text(child(holder, "releaseName")), "Rancher Fleet's fleet.yaml", more)


def _helmfile(file: LoadedFile) -> Unwrapped:
    """The one release of a hub's chart; its values that aren't in other files."""
    hubs: list[Unwrapped] = []
    for place, release in enumerate(listing(file.values.get("releases"))):
        values = child(release, "values")
        at: KeyPath = ("releases", place)
        inline = [
            mapping_at(file, (*at, "values", number))
            for number, entry in enumerate(listing(values))
            if isinstance(entry, Mapping)
        ]
        if isinstance(values, Mapping):
            inline.append(mapping_at(file, (*at, "values")))
        is_hub = any(word in text(child(release, "chart")) for word in _CHARTS)
        if is_hub or find_charts(values_of(inline)) is not None:
            elsewhere = any(isinstance(entry, str) for entry in listing(values))
            more = [show_path((*at, "values"))] if elsewhere else []
            more += _keys(release, at, "secrets", "set", "valuesTemplate")
            hubs.append(Unwrapped(inline, text(child(release, "name")), "helmfile", more))
    if len(hubs) > 1:
        names = " and ".join(hub.release for hub in hubs)
        command = "helmfile -l name=NAME write-values --output-file-template values.yaml"
        fix = f"Write those of one to a file: {command}"
        found = f"helmfile with {len(hubs)} hubs: {names}"
        raise ValuesError([Fault(file.source.name, 1, "releases", found, "one hub", fix)])
    if not hubs or not values_of(hubs[0].files):
        command = "helmfile write-values --output-file-template values.yaml"
        fix = f"Let helmfile write them, and import that: {command}"
        found = "helmfile without a hub's values in it"
        expected = "values in it, not in other files"
        raise ValuesError([Fault(file.source.name, 1, "releases", found, expected, fix)])
    return hubs[0]


def _kustomize(file: LoadedFile) -> Unwrapped:
    """The one hub's chart; its values that aren't in other files."""
    charts: list[tuple[KeyPath, object]] = [
        (("helmCharts", place), chart)
        for place, chart in enumerate(listing(file.values.get("helmCharts")))
    ]
    if not charts:
        # A HelmChartInflationGenerator is a chart itself.
        charts.append(((), file.values))
    hubs: list[Unwrapped] = []
    for at, chart in charts:
        is_hub = any(word in text(child(chart, "name")) for word in _CHARTS)
        if is_hub or find_charts(mapping(child(chart, "valuesInline"))) is not None:
            files = [mapping_at(file, (*at, "valuesInline"))]
            release = text(child(chart, "releaseName"))
            more = _keys(chart, at, "valuesFile", "additionalValuesFiles")
            hubs.append(Unwrapped(files, release, KUSTOMIZE, more))
    if len(hubs) == 1:
        return hubs[0]
    found = f"{KUSTOMIZE} with {len(hubs) or 'no'} hubs"
    fix = f"Give the values of one, as valuesFile names them, or: {FROM_CLUSTER}"
    raise ValuesError([Fault(file.source.name, 1, "helmCharts", found, "one hub's chart", fix)])


def _hub_secret(file: LoadedFile) -> Unwrapped:
    values = _values_of_secret(file.values)
    name = f"{file.source.name} (values.yaml of its Secret)"
    loaded = load(values, name)
    release = text(child(loaded.values, "Release", "Name"))
    own = {key: value for key, value in loaded.values.items() if key not in _ADDED}
    return Unwrapped([loaded._replace(values=own)], release, MADE_BY_CHART)


def _values_of_secret(secret: Mapping[str, object]) -> bytes:
    """What the hub's chart wrote into a Secret; b"": it is none of the hub's."""
    plain = child(secret, "stringData", "values.yaml")
    if isinstance(plain, str):
        written = plain.encode("utf-8", "surrogatepass")
    else:
        try:
            written = base64.b64decode(text(child(secret, "data", "values.yaml")))
        except ValueError:
            return b""
    # Other Secrets may hold a part of the values under the same key, and Bitnami's chart its own.
    keys = (*_ADDED, "scheduling")
    is_whole = all(re.search(rb"^%s:" % key.encode(), written, re.MULTILINE) for key in keys)
    return written if is_whole else b""


def _keys(holder: object, at: KeyPath, *names: str) -> list[str]:
    """Which of these keys an object has. at: where it stands in the file."""
    return [show_path((*at, name)) for name in names if child(holder, name)]


def _is_kind(group: str, *kinds: str) -> Callable[[Mapping[str, object]], bool]:
    def holds(values: Mapping[str, object]) -> bool:
        return api_group(values) == group and values.get("kind") in kinds

    return holds


def _is_hub_secret(values: Mapping[str, object]) -> bool:
    return values.get("kind") == "Secret" and bool(_values_of_secret(values))


def _is_fleet(values: Mapping[str, object]) -> bool:
    holder = mapping(values.get("helm"))
    keys = {"chart", "releaseName", "repo", "values", "valuesFiles", "valuesFrom", "version"}
    return bool(keys & set(holder)) and not HUB_KEYS & set(values)


def _is_helmfile(values: Mapping[str, object]) -> bool:
    releases = values.get("releases")
    return isinstance(releases, list) and all(child(entry, "chart") for entry in releases)


def _is_kustomize(values: Mapping[str, object]) -> bool:
    is_generator = values.get("kind") == "HelmChartInflationGenerator"
    return isinstance(values.get("helmCharts"), list) or is_generator


_READERS: Final = (
    _Reader(_is_kind("helm.crossplane.io", "Release"), _crossplane),
    _Reader(_is_kind("helm.cattle.io", "HelmChart", "HelmChartConfig"), _k3s),
    _Reader(_is_fleet, _fleet),
    _Reader(_is_helmfile, _helmfile),
    _Reader(_is_kustomize, _kustomize),
    _Reader(_is_hub_secret, _hub_secret),
)


def _refuse_nebari(file: LoadedFile) -> None:
    values = file.values
    is_project = "project_name" in values and any(key in values for key in _NEBARI)
    if is_project or "nebari_version" in values:
        fix = f"Nebari makes the hub's values of it: {_PLAIN}"
        found = "Nebari's configuration"
        expected = "values of zero-to-jupyterhub or BinderHub"
        raise ValuesError([Fault(file.source.name, 1, "", found, expected, fix)])


def _release_beside(values: Mapping[str, object]) -> str:
    """The release that stands beside the values, in a file whose kind nobody knows; "": none."""
    charts = find_charts(values)
    path = charts.hub.path if charts is not None else ()
    for depth in range(len(path)):
        holder = child(values, *path[:depth])
        name = text(child(holder, "releaseName")) or text(child(holder, "release_name"))
        if name:
            return name
    return ""
