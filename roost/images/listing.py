"""The images that manifests name, and the parts of a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from roost_core.objects.image_references import image_repository, split_reference


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
