"""`roost images`: what an install needs from registries."""

from __future__ import annotations

from typing import Final

import click

from generator.faults import UsageError
from roost.commands.options import RenderOptions, values_options
from roost.commands.render import manifests
from roost.images.copies import copies, is_registry
from roost.images.listing import images_of
from roost.images.registry import Registries, RegistryError


def run(options: RenderOptions, digests: bool, copy_to: str | None = None) -> int:
    """Print each image on a line, with `digests` as NAME:TAG@sha256:…; 1: a registry gave none, stderr says why.

    copy_to: a registry; print source and target of each copy instead. Raises UsageError where it can't be one.
    """
    if copy_to is not None and not is_registry(copy_to):
        raise UsageError(
            f"roost images: --copy-to {copy_to!r}: expected a registry without https:// and without a slash at its "
            "end, such as registry.example.org/mirror or registry:5000"
        )
    registries = Registries()
    code = 0
    images = []
    for image in images_of(manifest.body for manifest in manifests(options)):
        if not digests or "@" in image:
            images.append(image)
            continue
        try:
            images.append(f"{image}@{registries.digest(image)}")
        except RegistryError as error:
            click.echo(f"roost images: {error}", err=True)
            code = 1
    lines = images if copy_to is None else [f"{source} {target}" for source, target in copies(images, copy_to)]
    for line in lines:
        click.echo(line)
    return code


@click.command("images")
@values_options
@click.option("--digests", is_flag=True, help="Ask the registries, without an account, for each image's digest.")
@click.option(
    "--copy-to", metavar="REGISTRY", help="Print SOURCE TARGET of each copy into this registry, or a path of it."
)
def _command(*, options: RenderOptions, digests: bool, copy_to: str | None) -> int:
    """List the images that an install needs: Roost's, Kubernetes', and your users' that pullers bring to nodes.

    With --digests each line is NAME:TAG@sha256:…, of all architectures together; sources of copies are then
    NAME@sha256:…. A target is REGISTRY/HOST/PATH:TAG, so no copy replaces another. Exit codes: 0 done, 1 faulty values
    or no digest of some image (stderr says of which), 2 wrong usage.

    \b
    roost images -f values.yaml --kube-version v1.37.2
    roost images -f values.yaml --kube-version v1.37.2 --digests > images.txt
    roost images -f values.yaml --kube-version v1.37.2 --digests --copy-to registry.example.org > copies.txt
    """
    return run(options, digests, copy_to)


COMMAND: Final = _command
