"""`roost validate`: every fault, warning and hint of a set of values."""

import sys

import click

from generator.faults import Fault, UsageError, count_of, sort_faults
from generator.pipeline import report
from generator.schema.check import find_faults
from generator.values.files import read_what_loads
from roost.commands.forges import FORMATS, show_faults
from roost.commands.options import RenderOptions, values_options


def _find(options: RenderOptions) -> tuple[list[Fault], list[UsageError]]:
    """Faults, and the errors of files that can't be read."""
    merged, faults, unread = read_what_loads(options.files, options.settings)
    if faults or unread:
        # When a file is missing, check the others against the schema only, not across keys.
        return [*faults, *find_faults(merged)], unread
    return report(merged, options.release), []


@click.command("validate")
@values_options
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings, too.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default=FORMATS[0],
    show_default=True,
    help="github: annotations at the lines of a pull request.",
)
def command(*, options: RenderOptions, strict: bool, form: str) -> int:
    """Print every fault and warning of the values, with file, line, key and fix.

    \b
    roost validate -f values.yaml --kube-version v1.37.2
    roost validate -f values.yaml --strict --format github
    """
    faults, unread = _find(options)
    ordered = sort_faults(faults)
    sys.stdout.write(show_faults(ordered, form))
    errors = sum(fault.severity == "error" for fault in ordered)
    warnings = sum(fault.severity == "warning" for fault in ordered)
    said = f"{count_of(errors, 'error')}, {count_of(warnings, 'warning')}" if errors or warnings else "no faults"
    sys.stderr.write(f"{said}\n")
    if unread:
        raise UsageError("\n".join(map(str, unread)))
    return 1 if errors or (strict and warnings) else 0
