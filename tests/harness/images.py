"""Make OCI images from bytes: no Docker, no Dockerfile, no base image.

Owns the format: tar layers, configuration, manifest. Pushing and serving them is `registry`'s.
Source: OCI image format specification 1.1.
"""

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.release.oci import CONFIG_TYPE, INDEX_TYPE, LAYER_TYPE, MANIFEST_TYPE

# Go's name of the machine's architecture.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Image:
    manifest: bytes
    config: bytes
    layers: tuple[bytes, ...]

    @property
    def digest(self) -> str:
        return digest_of(self.manifest)

    @property
    def size_bytes(self) -> int:
        return len(self.config) + sum(map(len, self.layers))


def make_image(
    *,
    files: Mapping[str, bytes | Path] | None = None,
    size_bytes: int = 0,
    layers: int = 1,
    entrypoint: Sequence[str] = (),
) -> Image:
    """An image for this machine.

    files: path in the image -> contents; a file with a mode that lets its owner run it is made
    runnable. size_bytes: so many random bytes in addition, in `layers` layers of about the same
    size. They don't compress and are never the same twice: no two images share them, so each pull
    moves them all.
    """
    blobs = [_layer(files)] if files else []
    share = size_bytes // layers
    for number in range(layers if size_bytes else 0):
        length = share if number < layers - 1 else size_bytes - share * (layers - 1)
        blobs.append(_layer({f"/bytes-{number}": os.urandom(length)}))
    if not blobs:
        blobs.append(_layer({"/empty": b""}))
    config = {
        "architecture": ARCHITECTURES.get(os.uname().machine, os.uname().machine),
        "os": "linux",
        "config": {"Entrypoint": list(entrypoint)} if entrypoint else {},
        "rootfs": {
            "type": "layers",
            "diff_ids": [digest_of(gzip.decompress(blob)) for blob in blobs],
        },
    }
    config_blob = json.dumps(config).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": describe(CONFIG_TYPE, config_blob),
        "layers": [describe(LAYER_TYPE, blob) for blob in blobs],
    }
    return Image(json.dumps(manifest).encode(), config_blob, tuple(blobs))


def write_archive(image: Image, reference: str, path: Path) -> None:
    """Write an image as an archive that `ctr images import` reads (an OCI layout in a tar)."""
    entry = describe(MANIFEST_TYPE, image.manifest)
    names = {
        "io.containerd.image.name": reference,
        "org.opencontainers.image.ref.name": reference.rpartition(":")[2],
    }
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX_TYPE,
        "manifests": [{**entry, "annotations": names}],
    }
    members = {
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        "index.json": json.dumps(index).encode(),
    }
    for blob in (image.manifest, image.config, *image.layers):
        members[f"blobs/sha256/{digest_of(blob).removeprefix('sha256:')}"] = blob
    path.write_bytes(_tar({name: (blob, 0o644) for name, blob in members.items()}))


def read_archive(path: Path) -> Image:
    with tarfile.open(path) as tar:

        def read(name: str) -> bytes:
            member = tar.extractfile(name)
            assert member is not None, name
            return member.read()

        def blob(descriptor: Mapping[str, str]) -> bytes:
            return read(f"blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}")

        (entry,) = json.loads(read("index.json"))["manifests"]
        manifest = blob(entry)
        parts = json.loads(manifest)
        return Image(manifest, blob(parts["config"]), tuple(map(blob, parts["layers"])))


def describe(media_type: str, blob: bytes) -> dict[str, object]:
    """A descriptor: how one blob refers to another."""
    return {"mediaType": media_type, "digest": digest_of(blob), "size": len(blob)}


def digest_of(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _layer(files: Mapping[str, bytes | Path]) -> bytes:
    members = {}
    for path, contents in files.items():
        if isinstance(contents, Path):
            members[path.lstrip("/")] = (contents.read_bytes(), contents.stat().st_mode & 0o777)
        else:
            members[path.lstrip("/")] = (contents, 0o644)
    # Stored, not compressed: the bytes on the wire are those that the test asked for.
    return gzip.compress(_tar(members), compresslevel=0, mtime=0)


def _tar(members: Mapping[str, tuple[bytes, int]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, (contents, mode) in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(contents), mode
            tar.addfile(member, io.BytesIO(contents))
    return packed.getvalue()
