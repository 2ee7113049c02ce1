"""Find the hubs of a folder: which files are a hub's own, and which ones several hubs have in
common.

Layouts: HUB.values.yaml or HUB.yaml beside each other; a folder HUB with values.yaml, or with
several files, which are hubs HUB-FILE. In each, common files come first: those called common (or
shared, base, default), for all hubs of the folder that have a key at the top with them in common;
FAMILY-common or common-FAMILY for the hubs FAMILY, FAMILY-* and *-FAMILY.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from generator.faults import Fault, UsageError, ValuesError
from generator.importing.argo_flux import values_of
from generator.importing.source import find_charts
from generator.importing.wrappers import read_hub_file

_COMMON: Final = frozenset({"common", "shared", "base", "basehub", "default", "defaults", "all"})
_ENDINGS: Final = (".values.yaml", ".values.yml", ".yaml", ".yml")
_FAMILY: Final = re.compile(r"(?:(.+)[-_](?:common|shared)|(?:common|shared)[-_](.+))")
# Encrypted, and nothing of placement.
_SECRET: Final = re.compile(r"(^|[.-])(enc|secrets?)([.-]|$)")
MOST_FILES: Final = 2000
MOST_BYTES: Final = 8 * 2**20


class HubFiles(NamedTuple):
    """One hub, and its files by name and content; later ones win."""

    name: str
    layers: tuple[tuple[str, bytes], ...]


class _File(NamedTuple):
    stem: str
    name: str
    content: bytes
    # {} for a file that can't be read: its faults are told when the hub is imported.
    values: Mapping[str, object]

    @property
    def is_common(self) -> bool:
        """Whether it is of several hubs."""
        return self.stem in _COMMON or self.family != ""

    @property
    def family(self) -> str:
        """The hubs that it belongs to by its name: physics for physics-common and common-physics.

        "": the name says none. A common file then is of all hubs.
        """
        match = _FAMILY.fullmatch(self.stem)
        return (match[1] or match[2]) if match else ""

    @property
    def is_of_family_alone(self) -> bool:
        """Whether it is of its family's hubs or of none, as common-physics.

        physics-common without a hub physics counts as any other common file.
        """
        return self.family != "" and self.stem.startswith(("common", "shared"))


def find_hubs_in(
    folder: Path, common: Sequence[tuple[str, bytes]] = ()
) -> tuple[list[HubFiles], list[str]]:
    """The hubs of a folder, by name, and what was passed over. common: layers below each hub's own.

    Raises ValuesError when there is none, UsageError when there is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(f"--folder {folder}: found no such folder, expected one with hubs' values")
    passed: list[str] = []
    files = _files(folder, passed)
    of_all = [file for file in files if file.is_common]
    own = [file for file in files if not file.is_common]
    hubs = {hub.name: hub for hub in _hubs_of(own, of_all, common, passed)}
    for below in sorted(folder.iterdir()):
        if not below.is_dir() or below.name.startswith("."):
            continue
        place = below / "config" if (below / "config").is_dir() else below
        own, shared = _own_and_shared(below.name, _files(place, passed))
        for hub in _hubs_of(own, [*of_all, *shared], common, passed):
            hubs.setdefault(hub.name, hub)
    if not hubs:
        found = "no values of a hub"
        expected = "values of zero-to-jupyterhub"
        fix = "Name a folder with HUB.values.yaml or HUB/values.yaml, one for each hub."
        raise ValuesError([Fault(str(folder), 0, "", found, expected, fix)])
    return sorted(hubs.values()), passed


def _own_and_shared(name: str, files: Sequence[_File]) -> tuple[list[_File], list[_File]]:
    """The files of the folder `name` that are a hub's own, each called after its hub, and those
    that its hubs share.
    """
    shared = [file for file in files if file.is_common]
    own = [file for file in files if not file.is_common]
    base = [file for file in own if file.stem == "values"]
    if base:
        # One hub. Files beside its values.yaml are variants of it, and they aren't read.
        return [base[0]._replace(stem=name)], shared
    if len(own) == 1:
        return [own[0]._replace(stem=name)], shared
    if not own and files:
        # Common files alone: the last one is the hub's own.
        return [files[-1]._replace(stem=name)], list(files[:-1])
    return [file._replace(stem=f"{name}-{file.stem}") for file in own], shared


def hubs_of_files(files: Sequence[tuple[str, bytes]]) -> list[HubFiles]:
    """Each file as a hub of its own, called after it."""
    return [HubFiles(_stem(name.rpartition("/")[2]), ((name, content),)) for name, content in files]


def _hubs_of(
    own: Sequence[_File],
    shared: Sequence[_File],
    common: Sequence[tuple[str, bytes]],
    passed: list[str],
) -> list[HubFiles]:
    """The hubs of a folder, each with its common files. Adds to `passed` what was left out.

    own: the hubs' own files. shared: files of several hubs. common: layers below all others.
    """
    families: set[str] = set()
    for hub in own:
        families |= {file.family for file in shared if _is_of(hub.stem, file.family)}
    unclaimed = [file for file in shared if file.is_of_family_alone and file.family not in families]
    passed += [
        f"{file.name}: nothing says which hubs it is of. Name it as FILE beside --folder if it is"
        " of all"
        for file in unclaimed
    ]
    hubs = []
    for file in own:
        if file.values and find_charts(file.values) is None:
            passed.append(f"{file.name}: no values of a hub")
            continue
        layers = [
            (layer.name, layer.content) for layer in shared if _belongs(layer, file, families)
        ]
        hubs.append(HubFiles(file.stem, (*common, *layers, (file.name, file.content))))
    return hubs


def _belongs(layer: _File, file: _File, families: Collection[str]) -> bool:
    """Whether a common file is a layer below a hub's own file.

    families: those that a hub of the folder is of.
    """
    if layer.family in families:
        return _is_of(file.stem, layer.family)
    if layer.is_of_family_alone:
        # No hub is of its family.
        return False
    if not layer.values or not file.values:
        # One of the two can't be read, or is empty: it may have any key.
        return True
    # Other common files are of the hubs with which they share a key at the top.
    return not set(layer.values).isdisjoint(file.values)


def _is_of(hub: str, family: str) -> bool:
    """Whether a hub's name says that it is of a family; "" is none."""
    if not family:
        return False
    return hub == family or hub.startswith(f"{family}-") or hub.endswith(f"-{family}")


def _files(folder: Path, passed: list[str]) -> list[_File]:
    """The YAML files of a folder, by name. Adds to `passed` what was left out, and why."""
    files = []
    paths = sorted(
        path for path in folder.iterdir() if path.name.endswith(_ENDINGS) and path.is_file()
    )
    for path in paths[:MOST_FILES]:
        if _SECRET.search(path.name):
            continue
        try:
            if path.stat().st_size > MOST_BYTES:
                passed.append(f"{path}: more than {MOST_BYTES // 2**20} MiB")
                continue
            content = path.read_bytes()
        except OSError as error:
            passed.append(f"{path}: {error.strerror}")
            continue
        try:
            values = values_of(read_hub_file(str(path), content).files)
        except ValuesError:
            values = {}
        files.append(_File(_stem(path.name), str(path), content, values))
    if len(paths) > MOST_FILES:
        passed.append(f"{folder}: all but the first {MOST_FILES} files")
    return files


def _stem(name: str) -> str:
    ending = next((ending for ending in _ENDINGS if name.endswith(ending)), "")
    return name.removesuffix(ending)
