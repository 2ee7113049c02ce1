"""The webhook's program: replicas, ports, clients."""

from __future__ import annotations

from generator.checks.contract import LintReport, named_by, of_core_pod
from generator.values.lookups import child, mapping, number
from generator.values.release_name import Release


def check(report: LintReport, _release: Release) -> None:
    """Find a webhook that stops pods, or checks no client."""
    if child(report.values, "admission", "mode") != "webhook":
        return
    webhook = mapping(report.values.get("webhook"))
    replicas = number(webhook.get("replicas"))
    if webhook.get("failurePolicy") == "Fail" and replicas <= 1:
        reason = f"Fail with {replicas:.0f} replica(s): no pod can be created while it restarts."
        fix = "Set webhook.replicas to 2 or more, or failurePolicy to Ignore."
        report.refuse(("webhook", "failurePolicy"), reason, fix)
    elif replicas == 0 and not webhook.get("url"):
        reason = "with 0 replicas nothing answers, and pods stay as they were created."
        report.warn(("webhook", "replicas"), reason, "Use 2.")
    if webhook.get("port") == of_core_pod(report, "webhook", "metricsPort"):
        path = named_by(report, "webhook", "metricsPort")
        report.error(path, webhook.get("port"), "another port than webhook.port")
    client = mapping(webhook.get("clientCA"))
    if client.get("commonName") and not client.get("secretName"):
        reason = "without a CA no client certificate is requested, so the name is not checked."
        fix = "Set secretName, or leave it empty."
        report.refuse(("webhook", "clientCA", "commonName"), reason, fix)
