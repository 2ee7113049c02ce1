"""`roost images`: what an install needs from registries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from roost.commands.render import manifests
from roost.images.listing import images_of
from roost.images.registry import Registries, RegistryError

if TYPE_CHECKING:
    from roost.commands.render import RenderOptions


def run(options: RenderOptions, digests: bool) -> int:
    """Print each image on a line, with `digests` as NAME:TAG@sha256:…; 1: a registry gave none, stderr says why."""
    registries = Registries()
    code = 0
    for image in images_of(manifest.body for manifest in manifests(options)):
        if not digests or "@" in image:
            click.echo(image)
            continue
        try:
            click.echo(f"{image}@{registries.digest(image)}")
        except RegistryError as error:
            click.echo(f"roost images: {error}", err=True)
            code = 1
    return code
