"""`roost doctor`: what keeps an install from doing its work, with evidence and a fix for each."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import click

from generator.faults import UsageError, printable_lines, raise_errors
from generator.render.manifests import render
from generator.schema.check import find_faults
from generator.values.files import read_values
from generator.values.release_name import check_release
from roost.commands.hub_values import read_hub
from roost.commands.options import RenderOptions, cluster_options, values_options
from roost.commands.pod_file import read_pod_file, unchecked_part
from roost.doctor.cause_tree import CauseTree, group_by_cause
from roost.doctor.checks import BEFORE, FELT_CHECKS, INSTALLED, run_checks
from roost.doctor.findings import CheckOutcome, Finding
from roost.doctor.install import Install
from roost.doctor.pod_waits import find_waits, show_waits
from roost.doctor.try_pod import changes_of, make_pod, try_until_placed
from roost_core.kube.client import Client, ClusterError, list_all
from roost_core.kube.user_account import connect_as_user

# The most urgent first.
_SEVERITIES: Final = ("error", "warning", "unknown")


def _try(namespace: str, pod: dict[str, Any], connected: Callable[[], Client], wait: float) -> int:
    """Print what Roost changes in the pod; 1 if it comes back untouched, 2 if the cluster can't be
    asked.
    """
    try:
        client = connected()
        trial = try_until_placed(client, namespace, pod, wait)
        changes = changes_of(client, namespace, pod, trial) if trial.revision else []
    except ClusterError as error:
        text = f"roost doctor: no pod was tried in {namespace}: {error}"
        click.echo(printable_lines(text), err=True)
        return 2
    labels = (
        ", ".join(f"{key}={value}" for key, value in pod["metadata"]["labels"].items())
        or "no labels"
    )
    if not trial.revision:
        text = (
            f"A pod with {labels} came back untouched (scheduler {trial.scheduler}): it belongs to"
            " no class of Roost's, or the API server didn't reach the webhook. Run roost doctor"
            " with the install's values; see also docs/troubleshooting.md#is-the-webhook-healthy."
        )
        click.echo(printable_lines(text), err=True)
        return 1
    lines = [
        f"A pod with {labels} is placed by policy {trial.revision}, scheduler {trial.scheduler}."
    ]
    for change in changes:
        value = f" {json.dumps(change['value'])}" if "value" in change else ""
        lines.append(f"  {change['op']} {change['path']}{value}")
    if text := unchecked_part(pod):
        lines.append(text)
    # Whoever wrote the pod chose its labels, its scheduler and its annotations' keys.
    click.echo(printable_lines("\n".join(lines)))
    return 0


def _as_json(outcomes: list[CheckOutcome]) -> str:
    """Each check with its findings; causedBy: the check that found the first cause of one."""
    causes = {
        (check, finding): tree.check
        for tree in group_by_cause(outcomes)
        for check, finding in tree.consequences
    }
    found = [
        {
            "check": outcome.check,
            "lookedAt": outcome.looked_at,
            "findings": [
                {
                    "severity": finding.severity,
                    "evidence": finding.evidence,
                    "fix": finding.fix,
                    "causedBy": causes.get((outcome.check, finding)),
                }
                for finding in outcome.findings
            ],
        }
        for outcome in outcomes
    ]
    return json.dumps(found, indent=2)


def _felt_findings(outcomes: list[CheckOutcome]) -> set[tuple[str, Finding]]:
    """What users feel now, each finding with its check."""
    return {
        (outcome.check, finding)
        for outcome in outcomes
        for finding in outcome.findings
        if (outcome.check in FELT_CHECKS or finding.is_felt) and finding.severity != "unknown"
    }


def _as_text(outcomes: list[CheckOutcome], *, before: bool) -> str:
    """What users feel first, then other faults, then what is well; the last line says what
    follows. Below a cause stands what follows from it. The fix of an error among that is told,
    too: it may have another cause besides.
    """
    findings = [(outcome.check, finding) for outcome in outcomes for finding in outcome.findings]
    felt = set() if before else _felt_findings(outcomes)
    trees = group_by_cause(outcomes)
    trees.sort(key=lambda tree: _urgency(tree, felt))
    lines: list[str] = []
    for tree in trees:
        lines += [
            f"{tree.finding.severity:8} {tree.check}: {tree.finding.evidence}",
            f"         Fix: {tree.finding.fix}",
        ]
        for check, finding in tree.consequences:
            lines.append(f"         So also {check}: {finding.evidence}")
            if finding.severity == "error":
                lines.append(f"         If it stays: {finding.fix}")
    lines += [
        f"ok       {outcome.check}: {outcome.looked_at}"
        for outcome in outcomes
        if not outcome.findings
    ]
    has_errors = any(finding.severity == "error" for _, finding in findings)
    if before:
        head = (
            "The cluster doesn't take this install yet."
            if has_errors
            else "The cluster takes this install."
        )
    elif felt:
        head = "Users are affected."
    else:
        head = "Users start, but not as the values say." if has_errors else "Users aren't affected."
    if trees:
        head = f"{head} First: {trees[0].check}: {trees[0].finding.fix}"
    # Names, taints and messages of others are among it.
    return printable_lines("\n".join([*lines, head]))


def _urgency(tree: CauseTree, felt: set[tuple[str, Finding]]) -> tuple[bool, int]:
    """A cause is as urgent as the most urgent of what follows from it."""
    found = [(tree.check, tree.finding), *tree.consequences]
    return (
        not any(pair in felt for pair in found),
        min(_SEVERITIES.index(finding.severity) for _, finding in found),
    )


def _exit_code(outcomes: list[CheckOutcome], *, before: bool) -> int:
    """1 for an error, and whenever the last line says that users are affected."""
    has_errors = any(
        finding.severity == "error" for outcome in outcomes for finding in outcome.findings
    )
    return 1 if has_errors or (not before and _felt_findings(outcomes)) else 0


def _now(namespace: str, client: Client) -> int:
    """Print the pods that wait. Raises ClusterError."""
    place = f"/api/v1/namespaces/{namespace}"
    pods = list(list_all(client, f"{place}/pods"))
    events = list_all(client, f"{place}/events", {"fieldSelector": "involvedObject.kind=Pod"})
    # Registries and whoever writes Events choose some of these words.
    text = show_waits(find_waits(pods, events), len(pods), time.time() + client.clock_difference())
    click.echo(printable_lines(text))
    return 0


@click.command("doctor")
@values_options
@cluster_options
@click.option(
    "--before-install",
    is_flag=True,
    help="Whether these values can be installed; nothing of Roost is there.",
)
@click.option(
    "--now",
    is_flag=True,
    help="Only say which pods of --namespace wait, by cause. Needs no values.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option(
    "--pod",
    metavar="FILE",
    help="Only try this pod, in YAML or JSON, and print what Roost changes. - is stdin.",
)
@click.option(
    "--wait",
    metavar="SECONDS",
    type=click.FloatRange(0, 600),
    help="With --pod: try again for so long. Default: once.",
)
@click.option(
    "--hub-values",
    "hub_files",
    metavar="FILE",
    multiple=True,
    help="The hub's own values, to say what an earlier end of idle servers saves.",
)
def command(
    *,
    options: RenderOptions,
    kubeconfig: str | None,
    context: str | None,
    before_install: bool,
    now: bool,
    form: str,
    pod: str | None,
    wait: float | None,
    hub_files: tuple[str, ...],
) -> int:
    """Look at an install from outside, and print what is wrong, by what it shows, and how to mend
    it.

    Changes nothing: it writes with dryRun only. --kube-version is the cluster's own.
    `helm test` runs --pod, which needs no values, only the right to create pods there. Exit
    codes: 0 no error was found (the pod is placed), 1 one was found or users are affected, 2 the
    cluster can't be asked, or wrong usage.

    \b
    roost doctor --now --namespace jhub
    roost doctor --pod pod.yaml --namespace jhub
    roost doctor -f values.yaml --release roost --namespace jhub
    roost doctor -f values.yaml --release roost --namespace jhub --hub-values hub.yaml
    roost doctor -f values.yaml --release roost --namespace jhub --before-install
    """
    connected = partial(connect_as_user, kubeconfig, context)
    if hub_files and (now or pod is not None):
        raise UsageError("--hub-values: leave out --now and --pod, which read no values")
    if "-" in hub_files and "-" in options.files:
        # The second would read nothing, which configures a hub by its chart's defaults.
        raise UsageError("--hub-values: found - for --values, too: give one of them as a file")
    if now and (pod is not None or wait is not None or before_install or form != "text"):
        raise UsageError("--now: leave out --pod, --wait, --before-install and --format.")
    if pod is not None:
        if before_install or form != "text":
            raise UsageError("--pod: leave out --before-install and --format.")
        return _try(options.release.namespace, make_pod(read_pod_file(pod)), connected, wait or 0.0)
    if wait is not None:
        raise UsageError("--wait: give --pod, too: it is how long that pod may take")
    try:
        client = connected()
        if now:
            return _now(options.release.namespace, client)
        version = str(client.get("/version")["gitVersion"])
    except ClusterError as error:
        click.echo(printable_lines(f"roost doctor: {error}"), err=True)
        return 2
    release = options.release._replace(kube_version=version)
    check_release(release)
    merged = read_values(options.files, options.settings)
    raise_errors(find_faults(merged))
    hub = read_hub(hub_files)
    manifests = [manifest.body for manifest in render(merged.values, release)]
    install = Install(client, release, merged.values, manifests, hub)
    outcomes = run_checks(install, BEFORE if before_install else INSTALLED)
    click.echo(_as_json(outcomes) if form == "json" else _as_text(outcomes, before=before_install))
    return _exit_code(outcomes, before=before_install)
