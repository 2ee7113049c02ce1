"""Which image to copy where, so that no copy replaces another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

# A host has a dot, a port, or is localhost: any other first part of an image's name is somebody at Docker Hub.
_HOST: Final = r"(?:localhost|[A-Za-z0-9][A-Za-z0-9-]*(?=[.:])[A-Za-z0-9.-]*)(?::\d+)?"
_REGISTRY: Final = re.compile(_HOST + r"(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")


class Name(NamedTuple):
    """An image's name in parts; docker.io's short names are spelled out. tag, digest: "" where there is none."""

    host: str
    path: str
    tag: str
    digest: str

    def __str__(self) -> str:
        """As a copier takes it: by digest or by tag, never both, and by the tag `latest` where there is neither."""
        return f"{self.host}/{self.path}" + (f"@{self.digest}" if self.digest else f":{self.tag or 'latest'}")


def name_of(image: str) -> Name:
    """Take an image as a pod names it apart."""
    whole, _, digest = image.partition("@")
    name, colon, tag = whole.rpartition(":")
    if not colon or "/" in tag:
        name, tag = whole, ""
    host, slash, path = name.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        host, path = "docker.io", name
    if host == "docker.io" and "/" not in path:
        path = f"library/{path}"
    return Name(host, path, tag, digest)


def is_registry(text: str) -> bool:
    """Whether images can be copied below this: a host, perhaps with a port and a path."""
    return _REGISTRY.fullmatch(text) is not None


def copies(images: Iterable[str], registry: str) -> list[tuple[str, str]]:
    """Source and target of each copy, by target. What the registry's host already has is left out.

    A target keeps the source's host, path and tag below `registry`: REGISTRY/HOST/PATH:TAG. Without a tag, or where two
    digests have the same one, its tag is the digest's.
    """
    own = registry.partition("/")[0]
    names = {name for image in images if (name := name_of(image)).host != own}
    sources: dict[str, set[str]] = {}
    for name in names:
        sources.setdefault(_target(name, registry), set()).add(str(name))
    pairs = set()
    for name in names:
        target = _target(name, registry)
        if len(sources[target]) > 1 and name.digest:
            target = _target(name._replace(tag=""), registry)
        pairs.add((str(name), target))
    return sorted(pairs, key=lambda pair: pair[1])


def _target(name: Name, registry: str) -> str:
    # A path can't hold a colon, and no host holds an underscore.
    host = name.host.replace(":", "_").lower()
    tag = name.tag or name.digest.replace(":", "-") or "latest"
    return f"{registry}/{host}/{name.path}:{tag}"
