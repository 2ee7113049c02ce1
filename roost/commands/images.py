"""`roost images`: the images that an install needs, and their copies for a registry of one's own."""

import click

from generator.faults import UsageError
from roost.commands.options import RenderOptions, values_options
from roost.commands.render import manifests
from roost.images.listing import copies, images_of, is_registry


@click.command("images")
@values_options
@click.option(
    "--copy-to", metavar="REGISTRY", help="Print SOURCE TARGET of each copy into this registry, or a path of it."
)
def command(*, options: RenderOptions, copy_to: str | None) -> int:
    """List the images that an install needs: Roost's, Kubernetes', and your users' that pullers bring to nodes.

    A target is REGISTRY/HOST/PATH:TAG, so no copy replaces another; the tag of an image that the values name by digest
    is the digest's. Exit codes: 0 done, 1 faulty values, 2 wrong usage.

    \b
    roost images -f values.yaml --kube-version v1.37.2
    roost images -f values.yaml --kube-version v1.37.2 --copy-to registry.example.org > copies.txt
    """
    if copy_to is not None and not is_registry(copy_to):
        raise UsageError(
            f"roost images: --copy-to {copy_to!r}: expected a registry without https:// and without a slash at its "
            "end, such as registry.example.org/mirror or registry:5000"
        )
    images = images_of(manifest.body for manifest in manifests(options))
    for line in images if copy_to is None else [f"{source} {target}" for source, target in copies(images, copy_to)]:
        click.echo(line)
    return 0
