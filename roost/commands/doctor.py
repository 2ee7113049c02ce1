"""`roost doctor`: what keeps an install from doing its work, with evidence and a fix for each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import click

from generator.pipeline import make
from generator.values.files import read_values
from generator.values.release import check_release
from roost.doctor.checks import BEFORE, INSTALLED, run_checks
from roost.doctor.install import Install
from roost_core.kube.client import ClusterError
from roost_core.kube.user_account import connect_as_user

if TYPE_CHECKING:
    from roost.commands.render import RenderOptions
    from roost.doctor.findings import Outcome


class DoctorOptions(NamedTuple):
    """What the command line asks for."""

    # None: as kubectl chooses.
    kubeconfig: str | None
    context: str | None
    before_install: bool
    # text or json.
    form: str


def run(options: RenderOptions, asked: DoctorOptions) -> int:
    """Print the outcome of every check; 1 if there is an error, or if the cluster can't be asked at all."""
    check_release(options.release)
    try:
        client = connect_as_user(asked.kubeconfig, asked.context)
        version = str(client.get("/version")["gitVersion"])
    except ClusterError as error:
        click.echo(f"roost doctor: {error}", err=True)
        return 1
    release = options.release._replace(kube_version=version)
    merged = read_values(options.files, options.settings)
    manifests, _ = make(merged, release, with_lint=False)
    install = Install(client, release, merged.values, [manifest.body for manifest in manifests])
    outcomes = run_checks(install, BEFORE if asked.before_install else INSTALLED)
    click.echo(_as_json(outcomes) if asked.form == "json" else _as_text(outcomes))
    return 1 if any(finding.severity == "error" for outcome in outcomes for finding in outcome.findings) else 0


def _as_json(outcomes: list[Outcome]) -> str:
    return json.dumps(
        [
            {
                "check": outcome.check,
                "lookedAt": outcome.looked_at,
                "findings": [finding._asdict() for finding in outcome.findings],
            }
            for outcome in outcomes
        ],
        indent=2,
    )


def _as_text(outcomes: list[Outcome]) -> str:
    lines = []
    for outcome in outcomes:
        if not outcome.findings:
            lines.append(f"ok       {outcome.check}: {outcome.looked_at}")
        for finding in outcome.findings:
            lines += [f"{finding.severity:8} {outcome.check}: {finding.evidence}", f"         Fix: {finding.fix}"]
    return "\n".join(lines)
