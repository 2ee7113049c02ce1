"""`roost images`: the images that an install needs."""

from collections.abc import Iterable, Iterator
from typing import Any

import click

from roost.commands.options import RenderOptions, values_options
from roost.commands.render import render_and_warn
from roost_core.objects.image_references import normalise_reference


def images_of(bodies: Iterable[Any]) -> list[str]:
    """The full names of the images in these objects, sorted: of containers and of image volumes.

    Each name stands there once. bodies: objects as parsed from YAML.
    """
    references: set[str] = set()
    for body in bodies:
        references.update(normalise_reference(image) for image in _images(body))
    return sorted(references)


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


@click.command("images")
@values_options
def command(*, options: RenderOptions) -> int:
    """List the images that an install needs: Roost's, Kubernetes', and your users' that pullers
    bring to nodes.

    By their whole names, to be copied below a registry of your own. Exit codes: 0 done, 1 faulty
    values, 2 wrong usage.

    \b
    roost images -f values.yaml --kube-version v1.37.2
    """
    for image in images_of(manifest.body for manifest in render_and_warn(options)):
        click.echo(image)
    return 0
