"""`roost images`: the images that an install needs."""

import click

from roost.commands.options import RenderOptions, values_options
from roost.commands.render import manifests
from roost.images.listing import images_of, name_of


@click.command("images")
@values_options
def command(*, options: RenderOptions) -> int:
    """List the images that an install needs: Roost's, Kubernetes', and your users' that pullers bring to nodes.

    By their whole names, to be copied below a registry of your own. Exit codes: 0 done, 1 faulty values, 2 wrong usage.

    \b
    roost images -f values.yaml --kube-version v1.37.2
    """
    for image in sorted({str(name_of(image)) for image in images_of(manifest.body for manifest in manifests(options))}):
        click.echo(image)
    return 0
