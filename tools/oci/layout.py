"""Write an image as an OCI layout and as one archive of it.

Owns the image's configuration, manifest and index. Source: OCI image specification 1.1; the archive also holds the
`manifest.json` by which `docker load` and `podman load` find their way.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.oci.layers import MOMENT, Layer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CREATED = "2000-01-01T00:00:00Z"  # layers.MOMENT
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Image:
    """An image in an OCI layout on disk."""

    folder: Path
    digest: str  # of its manifest

    def blob(self, digest: str) -> Path:
        """Where the content of a digest lies."""
        return self.folder / "blobs" / digest.replace(":", "/", 1)

    @property
    def manifest(self) -> Json:
        """The image's manifest."""
        content: Json = json.loads(self.blob(self.digest).read_bytes())
        return content


def image_config(layers: Sequence[Layer], machine: str, runtime: Mapping[str, Any]) -> Json:
    """The image's configuration; runtime: User, Env, Entrypoint, Labels and so on, in Docker's spelling."""
    return {
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "created": CREATED,
        "config": dict(runtime),
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        "history": [{"created": CREATED, "created_by": layer.made_by} for layer in layers],
    }


def write_layout(folder: Path, layers: Sequence[Layer], config: Mapping[str, Any], name: str) -> Image:
    """Write an OCI layout that holds this one image, in place of what was there. name: such as roost:0.1.0."""
    shutil.rmtree(folder, ignore_errors=True)
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for layer in layers:
        shutil.copyfile(layer.path, blobs / layer.digest.removeprefix("sha256:"))
    config_digest, config_size = _write_blob(blobs, config)
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": {"mediaType": CONFIG_TYPE, "digest": config_digest, "size": config_size},
        "layers": [{"mediaType": LAYER_TYPE, "digest": layer.digest, "size": layer.size} for layer in layers],
    }
    digest, size = _write_blob(blobs, manifest)
    entry = {
        "mediaType": MANIFEST_TYPE,
        "digest": digest,
        "size": size,
        "annotations": {
            "io.containerd.image.name": name,
            "org.opencontainers.image.ref.name": name.rpartition(":")[2],
        },
    }
    _write(folder / "index.json", {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [entry]})
    _write(folder / "oci-layout", {"imageLayoutVersion": "1.0.0"})
    paths = [f"blobs/sha256/{layer.digest.removeprefix('sha256:')}" for layer in layers]
    config_path = f"blobs/sha256/{config_digest.removeprefix('sha256:')}"
    _write(folder / "manifest.json", [{"Config": config_path, "RepoTags": [name], "Layers": paths}])
    return Image(folder, digest)


def read_layout(folder: Path) -> Image:
    """An image that was written before."""
    (entry,) = json.loads((folder / "index.json").read_text())["manifests"]
    return Image(folder, entry["digest"])


def write_archive(image: Image, target: Path) -> None:
    """Pack a layout into one tar."""
    half = target.with_name(f".{target.name}.new")
    with tarfile.open(half, "w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(path for path in image.folder.rglob("*") if path.is_file()):
            info = tarfile.TarInfo(path.relative_to(image.folder).as_posix())
            info.size = path.stat().st_size
            info.mtime = MOMENT
            with path.open("rb") as content:
                tar.addfile(info, content)
    half.replace(target)


def _write_blob(blobs: Path, content: Mapping[str, Any]) -> tuple[str, int]:
    raw = _encode(content)
    name = hashlib.sha256(raw).hexdigest()
    (blobs / name).write_bytes(raw)
    return f"sha256:{name}", len(raw)


def _write(path: Path, content: object) -> None:
    path.write_bytes(_encode(content))


def _encode(content: object) -> bytes:
    return json.dumps(content, indent=1, sort_keys=True).encode()
