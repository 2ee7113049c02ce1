"""The images that manifests name, the parts of a name, and which to copy where, so that no copy replaces another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from roost_core.objects.image_references import image_repository, split_reference

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
    _, tag, digest = split_reference(image)
    host, _, path = image_repository(image).partition("/")
    return Name(host, path, tag, digest)


def images_of(bodies: Iterable[Any]) -> list[str]:
    """Every image of containers and of image volumes in these objects, once each, in alphabetical order."""
    return sorted({image for body in bodies for image in _images(body)})


def _images(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        image = node.get("image")
        if isinstance(image, str):
            yield image
        elif isinstance(image, dict) and isinstance(image.get("reference"), str):
            yield image["reference"]
        for value in node.values():
            yield from _images(value)
    elif isinstance(node, list):
        for value in node:
            yield from _images(value)


def is_registry(text: str) -> bool:
    """Whether images can be copied below this: a host, perhaps with a port and a path."""
    return _REGISTRY.fullmatch(text) is not None


def copies(images: Iterable[str], registry: str) -> list[tuple[str, str]]:
    """Source and target of each copy, by target. What the registry's host already has is left out.

    A target keeps the source's host and path below `registry`: REGISTRY/HOST/PATH:TAG. The tag of an image with a
    digest is the digest's: two digests may have had the same one.
    """
    names = [name for image in images if (name := name_of(image)).host != registry.partition("/")[0]]
    return sorted({(str(name), _target(name, registry)) for name in names}, key=lambda pair: pair[1])


def _target(name: Name, registry: str) -> str:
    # A path can't hold a colon, and no host holds an underscore.
    host = name.host.replace(":", "_").lower()
    return f"{registry}/{host}/{name.path}:{name.digest.replace(':', '-') or name.tag or 'latest'}"
