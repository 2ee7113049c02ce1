"""`roost validate`: every fault, warning and hint of a set of values, and what they make of a
pod.
"""

import sys
from typing import Any

import click
import yaml

from generator import pipeline
from generator.faults import Fault, UsageError, count_of, sort_faults
from generator.schema.check import find_faults
from generator.values.files import read_values, read_what_loads
from generator.values.lookups import child, text
from generator.values.merge import SetOptions
from roost.commands.fault_formats import FORMATS, show_faults
from roost.commands.options import RenderOptions, values_options
from roost.commands.pod_file import left_out, read_pod_file


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


def _admitted(options: RenderOptions, given: dict[str, Any]) -> str:
    """The pod in YAML as the webhook would admit it with these values, as far as it says so without
    a cluster.
    """
    # Without --pod nothing of this is loaded.
    import jsonpatch  # noqa: PLC0415

    from roost.commands.hub_trial import by_kind, read_rules  # noqa: PLC0415
    from roost.doctor.try_pod import make_pod  # noqa: PLC0415
    from roost_core.objects.fields import MalformedObjectError  # noqa: PLC0415
    from roost_core.objects.pod_body import read_pod_body  # noqa: PLC0415
    from roost_core.placement.labels import NAMESPACE_NAME_LABEL  # noqa: PLC0415
    from webhook.admission import decide  # noqa: PLC0415
    from webhook.facts.facts import Facts  # noqa: PLC0415

    rules = read_rules(
        by_kind(read_values(options.files, options.settings).values, options.release)
    )
    if rules is None:
        return "# These values have no webhook: the pod stays as it is.\n"
    body = make_pod(given)
    # Where the pod says that it is; of that namespace's labels its name alone is known.
    namespace = text(child(given, "metadata", "namespace")) or options.release.namespace
    facts = Facts(namespaces={namespace: {NAMESPACE_NAME_LABEL: namespace}})
    try:
        pod = read_pod_body(body, namespace)
        decision = decide(pod, rules, facts, now=0.0)
    except MalformedObjectError as error:
        raise UsageError(f"--pod: {error}.") from None
    notes = [f"{key}: {text}" for key, text in decision.audit.items()] or [
        "no class: the pod stays as it is"
    ]
    notes += filter(None, [left_out(body)])
    admitted = jsonpatch.apply_patch(body, list(decision.operations))
    return "".join(
        [*(f"# {sentence}\n" for sentence in notes), yaml.safe_dump(admitted, sort_keys=False)]
    )


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
        from roost.doctor.cluster_files import find_faults as find_refused  # noqa: PLC0415 - loads all checks of the doctor

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
        sys.stdout.write(_admitted(options, read_pod_file(pod)))
    return 1 if errors or (strict and warnings) else 0
