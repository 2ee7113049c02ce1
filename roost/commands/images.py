"""`roost images`: the images that an install needs."""

from collections.abc import Iterable, Iterator
from typing import Any

import click

from roost.commands.options import RenderOptions, values_options
from roost.commands.render import manifests
from roost_core.objects.image_references import normalise_reference


def images_of(bodies: Iterable[Any]) -> list[str]:
    """Every image of containers and of image volumes in these objects, once each, by its whole
    name.
    """
    return sorted({normalise_reference(image) for body in bodies for image in _images(body)})


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
    for image in images_of(manifest.body for manifest in manifests(options)):
        click.echo(image)
    return 0
