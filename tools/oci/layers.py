"""Write folders as image layers, the same bytes for the same content.

Owns what of a file goes into a layer: path, kind, mode and content. Everything is root's, and from the same moment.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# 2000-01-01: some programs take 1970 for no time at all.
MOMENT = 946_684_800
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer in a file: gzip of a tar."""

    path: Path
    digest: str  # sha256:… of the file
    diff_id: str  # sha256:… of the tar in it
    size: int  # bytes of the file
    unpacked: int  # bytes of the tar
    made_by: str  # for the image's history


def list_paths(root: Path, *below: str) -> list[str]:
    """All that lies in a root, or below some folders of it: paths relative to the root, sorted."""
    found: list[str] = []
    for start in below or (".",):
        for folder, folders, files in os.walk(root / start):
            found += (os.path.relpath(os.path.join(folder, name), root) for name in (*folders, *files))  # noqa: PTH118 (a third of the time)
    return sorted(set(found))


def with_parents(paths: Iterable[str]) -> list[str]:
    """The paths and the folders they lie in, sorted: parents come first."""
    all_paths: set[str] = set()
    for path in paths:
        parts = path.split("/")
        all_paths.update("/".join(parts[: count + 1]) for count in range(len(parts)))
    return sorted(all_paths)


def write_layer(root: Path, paths: Iterable[str], target: Path, made_by: str) -> Layer:
    """Write these paths of a root, in the given order."""
    with target.open("wb") as file:
        outer = _Hashing(file)
        with gzip.GzipFile(filename="", mode="wb", fileobj=outer, mtime=0, compresslevel=6) as zipped:
            inner = _Hashing(zipped)
            with tarfile.open(fileobj=inner, mode="w|", format=tarfile.GNU_FORMAT, bufsize=BLOCK_BYTES) as tar:
                for path in paths:
                    _add(tar, root, path)
    return Layer(target, outer.digest, inner.digest, outer.size, inner.size, made_by)


def read_layer(path: Path, made_by: str) -> Layer:
    """A layer that was written before."""
    outer, inner = _Hashing(None), _Hashing(None)
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            outer.write(block)
    with gzip.open(path) as unzipped:
        while block := unzipped.read(BLOCK_BYTES):
            inner.write(block)
    return Layer(path, outer.digest, inner.digest, outer.size, inner.size, made_by)


def unpack_layer(layer: Layer, root: Path) -> None:
    """Put a layer's files into a root, theirs who runs this."""
    with tarfile.open(layer.path) as tar:
        # Our own file; the other filters refuse absolute links and take /tmp's mode away.
        tar.extractall(root, filter="fully_trusted")  # noqa: S202


def _add(tar: tarfile.TarFile, root: Path, path: str) -> None:
    status = os.lstat(root / path)
    info = tarfile.TarInfo(path)
    info.mode = stat.S_IMODE(status.st_mode)
    info.mtime = MOMENT
    info.uname = info.gname = ""
    if stat.S_ISDIR(status.st_mode):
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
    elif stat.S_ISLNK(status.st_mode):
        info.type = tarfile.SYMTYPE
        info.linkname = str((root / path).readlink())
        tar.addfile(info)
    else:
        content = (root / path).read_bytes()
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))


class _Hashing(io.RawIOBase):
    """Counts and hashes what passes through."""

    def __init__(self, target: BinaryIO | gzip.GzipFile | None) -> None:
        self._target = target
        self._hash = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, block: object) -> int:
        content = bytes(block)  # type: ignore[call-overload]  # any buffer
        self._hash.update(content)
        self.size += len(content)
        if self._target is not None:
            self._target.write(content)
        return len(content)

    @property
    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"
