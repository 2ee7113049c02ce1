"""The images that manifests name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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
