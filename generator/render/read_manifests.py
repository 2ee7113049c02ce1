"""Read objects from files of manifests: those of a folder, of one file, or of stdin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from generator.faults import GeneratorError, UsageError
from generator.render.manifests import Identity
from generator.render.write_manifests import KUSTOMIZATION, is_ours
from generator.values.files import read_file
from generator.values.sources import MAX_FILE_BYTES
from roost_core.objects.foreign_yaml import ForeignTextError, load_all_foreign

Objects = dict[Identity, dict[str, object]]

MAX_MANIFEST_BYTES: Final = MAX_FILE_BYTES * 16
_SUFFIXES: Final = (".yaml", ".yml", ".json")


def read_folder(path: str) -> Objects:
    """Read all .yaml, .yml and .json files of a folder and of the folders in it, except
    kustomizations.

    Raises UsageError if the folder holds no manifest. A folder without manifests that `roost
    render` wrote (`enabled: false`) is accepted.
    """
    folder = Path(path)
    files = sorted(
        file for file in folder.rglob("*") if file.suffix in _SUFFIXES and file.is_file()
    )
    objects = _objects(_documents_of(files))
    if not objects and not is_ours(folder):
        raise UsageError(
            f"{path}: holds no manifest (*.yaml, *.yml, *.json). Give a folder of manifests."
        )
    return objects


def read_manifests(path: str) -> Objects:
    """Read a folder, or a file, of manifests. Raises UsageError when there are none."""
    if Path(path).is_dir():
        return read_folder(path)
    objects = _objects((path, document) for document in _documents(read_bytes(path), path))
    if not objects:
        raise UsageError(
            f"{path}: found no manifests, expected objects with apiVersion and kind: a folder or a"
            " file."
        )
    return objects


def parse_manifests(data: bytes, name: str) -> Objects | None:
    """The objects in the bytes of one file. None: the file holds no manifests, but maybe values.

    In a file of manifests, each document has apiVersion and kind. name: the file, for errors.
    """
    try:
        documents = list(_documents(data, name))
    except GeneratorError:
        # The caller reads it as values next, and that reports the fault with its line.
        return None
    if not documents:
        return None
    if not all("apiVersion" in document and "kind" in document for document in documents):
        return None
    return _objects((name, document) for document in documents)


def _documents_of(files: Iterable[Path]) -> Iterator[tuple[str, dict[str, object]]]:
    """Each document with its file's name. A file is read only after all before it are accepted."""
    for file in files:
        if file.name != KUSTOMIZATION:
            name = str(file)
            for document in _documents(read_bytes(name), name):
                yield name, document


def _objects(documents: Iterable[tuple[str, dict[str, object]]]) -> Objects:
    objects: Objects = {}
    for name, document in documents:
        for body in _unpack(document):
            identity = _identity(body, name)
            if identity in objects:
                raise GeneratorError(f"{name}: {identity} occurs a second time.")
            objects[identity] = body
    return objects


def read_bytes(path: str) -> bytes:
    """Read a file of manifests, or stdin for "-". Raises UsageError."""
    data = read_file(path, MAX_MANIFEST_BYTES)
    if len(data) > MAX_MANIFEST_BYTES:
        raise UsageError(f"{path}: is too large for manifests.")
    return data


def _documents(data: bytes, name: str) -> Iterator[dict[str, object]]:
    try:
        for document in load_all_foreign(data):
            if document is None:
                continue
            if not isinstance(document, dict):
                raise GeneratorError(
                    f"{name}: holds a {type(document).__name__}, expected objects."
                )
            yield document
    except ForeignTextError as error:
        raise GeneratorError(f"{name}: found {error}, expected manifests in YAML.") from None


def _unpack(document: dict[str, object]) -> Iterator[dict[str, object]]:
    """The objects of a document: the items of a List, else the document itself."""
    items = document.get("items")
    if document.get("kind") == "List" and isinstance(items, list):
        yield from (item for item in items if isinstance(item, dict))
    else:
        yield document


def _identity(body: Mapping[str, object], file: str) -> Identity:
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    if not (body.get("apiVersion") and body.get("kind") and metadata.get("name")):
        raise GeneratorError(f"{file}: an object lacks apiVersion, kind or metadata.name.")
    return Identity(
        str(body["apiVersion"]),
        str(body["kind"]),
        str(metadata.get("namespace") or ""),
        str(metadata["name"]),
    )
