"""`roost version`: which Roost this is."""

from importlib import metadata

import click


def installed_version() -> str:
    """The version of the installed distribution."""
    try:
        return metadata.version("roost")
    except metadata.PackageNotFoundError:
        return "unknown: roost is not installed"


@click.command("version")
def command() -> int:
    """Print the version, as roost --version does."""
    click.echo(installed_version())
    return 0
