"""OCI archives: an image or a chart in one file, as skopeo, podman and containerd read them.

Owns the format, and the way from an archive that `docker save` or `podman save` wrote to one of
these. Pushing them is `push`'s.
Source: OCI image format specification 1.1; Docker image specification 1.2.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roost_core.objects.fields import JSONObject

MANIFEST_TYPE: Final = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE: Final = "application/vnd.oci.image.index.v1+json"
CONFIG_TYPE: Final = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
_GZIP_MAGIC: Final = b"\x1f\x8b"
# A registry and its clients know an image of several platforms by either.
INDEX_TYPES: Final = (INDEX_TYPE, "application/vnd.docker.distribution.manifest.list.v2+json")

_NO_PLATFORM: Final = "unknown/unknown"

# What a file that isn't an archive of the kind makes its reader raise.
_NOT_READABLE: Final = (tarfile.TarError, KeyError, ValueError, TypeError, AttributeError)


class ArchiveError(ValueError):
    """A file is no archive of an image; the message names it."""


class Descriptor(NamedTuple):
    """How one part refers to another. platform: "linux/amd64" of an index's manifests, else ""."""

    media_type: str
    digest: str
    size: int
    platform: str = ""


class Archive:
    """`with Archive(path) as archive:` reads an OCI archive.

    Raises ArchiveError if it is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Archive:
        try:
            self._tar = self._stack.enter_context(tarfile.open(self.path, "r:"))
            with _member(self._tar, "index.json") as file:
                (root,) = json.load(file)["manifests"]
            self.root = _descriptor(root)
        except _NOT_READABLE as error:
            self._stack.close()
            raise ArchiveError(f"{self.path}: it isn't an OCI archive of one image.") from error
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, part: Descriptor) -> bytes:
        """The part's bytes. Raises ArchiveError if they aren't those that its digest says."""
        with self.open(part) as file:
            contents = file.read()
        if digest_of(contents) != part.digest:
            raise ArchiveError(f"{self.path}: {part.digest} was changed.")
        return contents

    def open(self, part: Descriptor) -> IO[bytes]:
        """The part's bytes as a file, for what is large."""
        try:
            return _member(self._tar, _blob_path(part.digest))
        except KeyError as error:
            raise ArchiveError(f"{self.path}: {part.digest} is missing.") from error

    def check(self) -> None:
        """Whether every part is as its digest says. Raises ArchiveError."""
        for manifest in (self.root, *self.manifests()):
            self.read(manifest)
        for manifest in self.manifests():
            for part in self.parts(manifest):
                with self.open(part) as contents:
                    found = hashlib.file_digest(contents, "sha256").hexdigest()  # type: ignore[arg-type]
                if f"sha256:{found}" != part.digest:
                    raise ArchiveError(f"{self.path}: {part.digest} was changed.")

    def manifests(self) -> list[Descriptor]:
        """Each platform's manifest; the root itself, if it is of one platform."""
        if self.root.media_type not in INDEX_TYPES:
            return [self.root]
        return [_descriptor(entry) for entry in json.loads(self.read(self.root))["manifests"]]

    def images(self) -> list[Descriptor]:
        """The manifests without what BuildKit says there of the build, for no platform."""
        return [entry for entry in self.manifests() if entry.platform != _NO_PLATFORM]

    def parts(self, manifest: Descriptor) -> list[Descriptor]:
        """Configuration and layers of a manifest, in its order."""
        body = json.loads(self.read(manifest))
        return [_descriptor(body["config"]), *map(_descriptor, body["layers"])]


def write_archive(
    path: Path, root: tuple[str, bytes], blobs: Mapping[str, bytes | Path], platform: str = ""
) -> None:
    """Write an OCI archive, the same to the byte for the same parts.

    root: media type and bytes of the manifest or index. blobs: digest -> bytes, or a file of them.
    """
    media_type, body = root
    entry = describe(media_type, body)
    if platform:
        entry["platform"] = _platform(platform)
    index = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [entry]}
    members: dict[str, bytes | Path] = {
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        "index.json": json.dumps(index).encode(),
    }
    for digest, contents in sorted({**blobs, digest_of(body): body}.items()):
        members[_blob_path(digest)] = contents
    half = path.with_name(f".{path.name}")
    with tarfile.open(half, "w") as tar:
        for name, contents in members.items():
            member = tarfile.TarInfo(name)
            if isinstance(contents, Path):
                member.size = contents.stat().st_size
                with contents.open("rb") as file:
                    tar.addfile(member, file)
            else:
                member.size = len(contents)
                tar.addfile(member, io.BytesIO(contents))
    half.rename(path)


def write_artifact(
    path: Path,
    config: tuple[str, bytes],
    layers: Sequence[tuple[str, bytes]],
    annotations: Mapping[str, str],
) -> None:
    """Write what isn't an image, such as a chart: (media type, bytes) of configuration and
    layers.
    """
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": describe(*config),
        "layers": [describe(*layer) for layer in layers],
        "annotations": dict(annotations),
    }
    blobs = {digest_of(contents): contents for _, contents in (config, *layers)}
    write_archive(path, (MANIFEST_TYPE, json.dumps(manifest).encode()), blobs)


def from_saved(saved: Path, path: Path) -> None:
    """Write the OCI archive of what `docker save` or `podman save` wrote of one image.

    Both write Docker's manifest.json; newer ones beside an OCI layout, with layers compressed or
    not. Raises ArchiveError.
    """
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=path.parent)))
        try:
            tar = stack.enter_context(tarfile.open(saved, "r:"))
            (entry,) = json.loads(_member(tar, "manifest.json").read())
            config = _member(tar, entry["Config"]).read()
            names = entry["Layers"]
            platform = json.loads(config)
            named = f"{platform['os']}/{platform['architecture']}"
        except _NOT_READABLE as error:
            raise ArchiveError(f"{saved}: it isn't an archive of one saved image.") from error
        blobs: dict[str, bytes | Path] = {digest_of(config): config}
        layers = []
        for number, name in enumerate(names):
            packed = scratch / str(number)
            _compress(_member(tar, name), packed)
            with packed.open("rb") as file:
                digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
            size = packed.stat().st_size
            layers.append({"mediaType": LAYER_TYPE, "digest": digest, "size": size})
            blobs[digest] = packed
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": describe(CONFIG_TYPE, config),
            "layers": layers,
        }
        write_archive(path, (MANIFEST_TYPE, json.dumps(manifest).encode()), blobs, named)


def join(archives: Mapping[str, Path], path: Path) -> None:
    """Write one archive of an image for several platforms, from one for each: platform -> file."""
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=path.parent)))
        blobs: dict[str, bytes | Path] = {}
        entries = []
        for platform, file in sorted(archives.items()):
            archive = stack.enter_context(Archive(file))
            (manifest,) = archive.manifests()
            body = archive.read(manifest)
            blobs[manifest.digest] = body
            entries.append({**describe(manifest.media_type, body), "platform": _platform(platform)})
            for part in archive.parts(manifest):
                held = scratch / part.digest
                with archive.open(part) as source, held.open("wb") as target:
                    shutil.copyfileobj(source, target)
                blobs[part.digest] = held
        index = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": entries}
        write_archive(path, (INDEX_TYPE, json.dumps(index).encode()), blobs)


def platforms(path: Path) -> list[str]:
    """The platforms of an image, such as linux/amd64."""
    found = []
    with Archive(path) as archive:
        for manifest in archive.images():
            config = json.loads(archive.read(archive.parts(manifest)[0]))
            found.append(f"{config['os']}/{config['architecture']}")
    return found


def describe(media_type: str, contents: bytes) -> JSONObject:
    """A descriptor as manifests hold it."""
    return {"mediaType": media_type, "digest": digest_of(contents), "size": len(contents)}


def digest_of(contents: bytes) -> str:
    """`sha256:` and the hexadecimal digest."""
    return f"sha256:{hashlib.sha256(contents).hexdigest()}"


def layer_files(archive: Archive, layer: Descriptor) -> Iterator[tuple[str, IO[bytes]]]:
    """(name without a slash at its head, contents) of each plain file of a layer, in its order."""
    with archive.open(layer) as packed, tarfile.open(fileobj=packed, mode="r|*") as tar:
        for member in tar:
            if member.isfile() and (contents := tar.extractfile(member)) is not None:
                yield member.name.removeprefix("./").lstrip("/"), contents


def _descriptor(entry: JSONObject) -> Descriptor:
    platform = entry.get("platform") or {}
    named = f"{platform['os']}/{platform['architecture']}" if platform else ""
    return Descriptor(entry["mediaType"], entry["digest"], entry["size"], named)


def _platform(name: str) -> JSONObject:
    system, _, architecture = name.partition("/")
    return {"os": system, "architecture": architecture}


def _blob_path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    member = tar.extractfile(name)
    if member is None:
        raise KeyError(name)
    return member


def _compress(layer: IO[bytes], target: Path) -> None:
    magic = layer.read(2)
    layer.seek(0)
    with target.open("wb") as file:
        if magic == _GZIP_MAGIC:
            shutil.copyfileobj(layer, file)
            return
        # No name and no time in it: the same layer is the same bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            shutil.copyfileobj(layer, packed)
