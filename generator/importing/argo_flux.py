"""Find a hub's values inside the objects by which Argo CD and Flux install its chart.

Source: Argo CD's Application and ApplicationSet (argoproj.io/v1alpha1), Flux's HelmRelease
(helm.toolkit.fluxcd.io/v2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from generator.faults import KeyPath, show_path
from generator.importing.source import find_charts
from generator.values.loader import load
from generator.values.lookups import child, listing, text
from generator.values.merge import merge_maps
from generator.values.sources import FoundKey, LoadedFile, Source

_ARGO_GROUP: Final = "argoproj.io"
_FLUX_GROUP: Final = "helm.toolkit.fluxcd.io"
# Kind -> where its Application stands.
_ARGO: Final[dict[str, tuple[str, ...]]] = {
    "Application": (),
    "ApplicationSet": ("spec", "template"),
}
_ELSEWHERE: Final = ("valueFiles", "valuesFrom", "fileParameters", "parameters")


class _Below(Source):
    """The values below a key of a file."""

    __slots__ = ("_above", "_whole")

    def __init__(self, source: Source, above: KeyPath) -> None:
        super().__init__(source.name)
        self._whole = source
        self._above = above

    def find(self, path: KeyPath) -> FoundKey:
        found = self._whole.find((*self._above, *path))
        return found._replace(depth=max(0, found.depth - len(self._above)))


def is_argo_or_flux(values: Mapping[str, object]) -> bool:
    """Whether an object is of Argo CD or Flux, by its API group."""
    return api_group(values) in (_FLUX_GROUP, _ARGO_GROUP)


def api_group(values: Mapping[str, object]) -> str:
    """The API group of an object: argoproj.io, where its apiVersion is argoproj.io/v1alpha1.

    Of an apiVersion without a group, as v1, all of it; "" where there is none.
    """
    return str(values.get("apiVersion", "")).partition("/")[0]


def unwrap(file: LoadedFile) -> tuple[list[LoadedFile], str]:
    """The files that an object holds, later ones over earlier, and the release; "": it names none.

    The file itself, unless it is such an object. Raises ValuesError when the text that it holds is
    no YAML.
    """
    group = api_group(file.values)
    kind = file.values.get("kind")
    if group == _FLUX_GROUP and kind == "HelmRelease":
        return _unwrap_flux(file)
    if group == _ARGO_GROUP and kind in _ARGO:
        return _unwrap_argo(file, above=_ARGO[kind])
    return [file], ""


def _unwrap_flux(file: LoadedFile) -> tuple[list[LoadedFile], str]:
    """`unwrap` of a HelmRelease."""
    name = text(child(file.values, "metadata", "name"))
    namespace = text(child(file.values, "spec", "targetNamespace"))
    # As Flux calls the release, unless it is told how.
    usual = f"{namespace}-{name}" if namespace else name
    release = text(child(file.values, "spec", "releaseName")) or usual
    return [mapping_at(file, ("spec", "values"))], release


def _unwrap_argo(file: LoadedFile, above: tuple[str, ...]) -> tuple[list[LoadedFile], str]:
    """`unwrap` of an object of Argo CD, whose Application stands below `above`."""
    # Argo CD calls the release as it calls the Application; a template's name isn't known.
    name = text(child(file.values, *above, "metadata", "name"))
    usual = "" if "{" in name else name
    charts = [
        (_argo_files(file, at, helm), text(child(helm, "releaseName")) or usual)
        for at, helm in _helms(file, (*above, "spec"))
    ]
    # Of several sources, the first that installs a hub's chart.
    for files, release in charts:
        if find_charts(values_of(files)) is not None:
            return files, release
    return charts[0]


def values_from_config_maps(
    file: LoadedFile, others: Sequence[LoadedFile]
) -> tuple[list[LoadedFile], list[str]]:
    """The values that a HelmRelease takes from ConfigMaps of the same file, and the keys of the
    HelmRelease that are read by that: `spec.valuesFrom` where each of its sources was found.
    """
    sources = listing(child(file.values, "spec", "valuesFrom"))
    config_maps: dict[str, LoadedFile] = {}
    for other in others:
        if other.values.get("kind") == "ConfigMap":
            config_maps.setdefault(text(child(other.values, "metadata", "name")), other)
    files: list[LoadedFile] = []
    for source in sources:
        key = text(child(source, "valuesKey")) or "values.yaml"
        if text(child(source, "kind")) != "ConfigMap" or child(source, "targetPath"):
            continue
        config_map = config_maps.get(text(child(source, "name")))
        if config_map is not None and isinstance(child(config_map.values, "data", key), str):
            files.append(text_at(config_map, ("data", key)))
    if sources and len(files) == len(sources):
        return files, ["spec.valuesFrom"]
    return files, []


def unread(file: LoadedFile) -> list[str]:
    """What else an object gives the chart, by its keys: values from elsewhere, and single ones over
    all others.
    """
    kind = text(file.values.get("kind"))
    holders: list[tuple[KeyPath, object]] = []
    if kind == "HelmRelease":
        holders.append((("spec",), child(file.values, "spec")))
    elif kind in _ARGO:
        holders += _helms(file, (*_ARGO[kind], "spec"))
    return [
        show_path((*at, key)) for at, holder in holders for key in _ELSEWHERE if child(holder, key)
    ]


def _helms(file: LoadedFile, above: tuple[str, ...]) -> Iterator[tuple[KeyPath, object]]:
    """Each `helm` of an Application's sources, with where it stands."""
    spec = child(file.values, *above)
    for at, source in enumerate(listing(child(spec, "sources"))):
        yield (*above, "sources", at, "helm"), child(source, "helm")
    yield (*above, "source", "helm"), child(spec, "source", "helm")


def _argo_files(file: LoadedFile, above: KeyPath, helm: object) -> list[LoadedFile]:
    """The values of one source. `valuesObject` is a mapping; `values` is text, which Argo CD reads
    only without it.
    """
    if child(helm, "valuesObject"):
        return [mapping_at(file, (*above, "valuesObject"))]
    if not isinstance(child(helm, "values"), str):
        return []
    return [text_at(file, (*above, "values"))]


def text_at(file: LoadedFile, path: KeyPath) -> LoadedFile:
    """The values that a text in a file holds. Raises ValuesError when it is no YAML."""
    # The text begins in the line after its key's. Below as many empty lines, each of its lines has
    # the number that it has in the whole file.
    _, line, _ = file.source.find(path)
    written = _at(file.values, path)
    return load(("\n" * line + str(written)).encode(), file.source.name)


def _at(value: object, path: KeyPath) -> object:
    node = value
    for step in path:
        if isinstance(node, list) and isinstance(step, int):
            node = node[step]
        else:
            node = child(node, str(step))
    return node


def mapping_at(file: LoadedFile, path: KeyPath) -> LoadedFile:
    """The values below a key of a file; {} for what is no mapping."""
    value = _at(file.values, path)
    return LoadedFile(value if isinstance(value, dict) else {}, _Below(file.source, path))


def values_of(files: Sequence[LoadedFile]) -> Mapping[str, object]:
    """The values of several files, later ones over earlier."""
    values: Mapping[str, object] = {}
    for file in files:
        values = merge_maps(values, file.values)
    return values
