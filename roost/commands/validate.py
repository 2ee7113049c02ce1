"""`roost validate`: every fault, warning and hint of a set of values, and what they make of a
pod.
"""

import sys

import click

from generator import pipeline
from generator.faults import Fault, UsageError, count_of, sort_faults
from generator.schema.check import find_faults
from generator.values.files import read_values, read_what_loads
from generator.values.merge import SetOptions
from roost.commands.fault_formats import FORMATS, show_faults
from roost.commands.options import RenderOptions, values_options
from roost.commands.pod_file import read_pod_file


def _find(options: RenderOptions) -> tuple[list[Fault], list[UsageError]]:
    """Faults, and the errors of files that can't be read."""
    merged, faults, unread = read_what_loads(options.files, options.settings)
    if faults or unread:
        # When a file is missing, check the others against the schema only, not across keys.
        return [*faults, *find_faults(merged)], unread
    return pipeline.find_faults(merged, options.release, with_hints=True), []


def _checked(options: RenderOptions) -> str:
    """Which values were checked: files, settings of the command line, or the defaults alone."""
    names = ["standard input" if name == "-" else name for name in options.files]
    if options.settings != SetOptions():
        names.append("--set")
    if not names:
        return "the chart's own values: give yours with -f FILE"
    return ", ".join(names)


@click.command("validate")
@click.argument("loose", metavar="", nargs=-1)
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
@click.option(
    "--quotas",
    metavar="PATH",
    help="Say what ResourceQuotas and LimitRanges of this file or folder refuse.",
)
@click.option(
    "--pod",
    metavar="FILE",
    help="Print this pod, in YAML or JSON, as it would be admitted. - is stdin.",
)
def command(
    *,
    loose: tuple[str, ...],
    options: RenderOptions,
    strict: bool,
    form: str,
    quotas: str | None,
    pod: str | None,
) -> int:
    """Print every fault and warning of the values, with file, line, key and fix.

    \b
    roost validate -f values.yaml --kube-version v1.37.2
    roost validate -f values.yaml --release roost --namespace jhub --pod pod.yaml
    roost validate -f values.yaml --strict --format github
    kubectl get quota,limits -n jhub -o yaml |
        roost validate -f values.yaml -n jhub --quotas /dev/stdin
    """
    if loose:
        raise UsageError(
            f"found {loose[0]} without an option, expected roost validate -f {loose[0]}"
        )
    faults, unread = _find(options)
    if quotas and not unread and all(fault.severity != "error" for fault in faults):
        from roost.doctor.quotas_option import find_faults as find_refused  # noqa: PLC0415 - loads all checks of the doctor

        faults += find_refused(
            quotas, read_values(options.files, options.settings).values, options.release
        )
    ordered = sort_faults(faults)
    # The pod alone is on stdout.
    (sys.stdout if pod is None else sys.stderr).write(show_faults(ordered, form))
    errors = sum(fault.severity == "error" for fault in ordered)
    warnings = sum(fault.severity == "warning" for fault in ordered)
    total = (
        f"{count_of(errors, 'error')}, {count_of(warnings, 'warning')}"
        if errors or warnings
        else "no faults"
    )
    if errors or not unread:
        sys.stderr.write(f"{total} in {_checked(options)}\n")
    if unread:
        raise UsageError("\n".join(map(str, unread)))
    if pod is not None and not errors:
        from roost.commands.admitted_pod import admitted_pod  # noqa: PLC0415 - loads the webhook

        sys.stdout.write(admitted_pod(options, read_pod_file(pod)))
    return 1 if errors or (strict and warnings) else 0
