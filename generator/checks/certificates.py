"""The webhook's certificates: who makes them, and whether what is given can be used."""

from __future__ import annotations

from generator.checks.contract import LintReport, Phrase
from generator.values.lookups import child, mapping, text
from generator.values.release_name import Release


def check(report: LintReport, _release: Release) -> None:
    """Find a webhook without certificates, and settings of certificates that aren't used."""
    if child(report.values, "admission", "mode") != "webhook":
        return
    certificates = mapping(child(report.values, "webhook", "certificates"))
    if certificates.get("mode") == "self":
        _lint_own_certificates(report, certificates)
    _lint_certificates(report, certificates)


def _lint_own_certificates(report: LintReport, certificates: dict[str, object]) -> None:
    """Find what keeps the controllers from maintaining the webhook's certificates.

    The chart's `roost.refuse_uncertified` reports the same to Helm, in the same words.
    """
    path = ("webhook", "certificates", "mode")
    if not child(report.values, "controllers", "enabled"):
        _refuse_without_controllers(report, "enabled: false", "enabled: true")
    elif not child(report.values, "controllers", "replicas"):
        _refuse_without_controllers(report, "replicas: 0", "replicas: 2")
    if report.values.get("clusterResources") is False:
        reason = (
            "self with clusterResources: false: nothing can write the caBundle, and without the"
            " admission policies an account that can create Secrets can get a token of every"
            " account in the namespace."
        )
        fix = (
            "Use mode secret or certManager: whoever creates the webhook configuration supplies the"
            " CA bundle."
        )
        report.refuse(path, reason, fix)
    if text(certificates.get("secretName")).endswith("-webhook-ca"):
        reason = "is the Secret with the CA's key, which the webhook would then mount."
        report.refuse(
            ("webhook", "certificates", "secretName"),
            reason,
            "Use another name, or leave it empty.",
        )


def _refuse_without_controllers(report: LintReport, cause: str, mend: str) -> None:
    """cause, mend: a key below `controllers` with its value, as it is and as it would do."""
    mode = f"self with controllers.{cause}"
    reason = f"{mode}: the controllers create the certificate, so the webhook gets none."
    fix = f"Use mode certManager or secret, or controllers.{mend}."
    report.refuse(("webhook", "certificates", "mode"), reason, fix)


def _lint_certificates(report: LintReport, certificates: dict[str, object]) -> None:
    path = ("webhook", "certificates")
    mode = certificates.get("mode")
    if mode == "secret":
        for key in ("secretName", "caBundle"):
            if not certificates.get(key):
                report.error((*path, key), "", "a value, for mode secret")
    elif certificates.get("caBundle"):
        reason = f"is not used in mode {text(mode)}."
        report.warn((*path, "caBundle"), reason, "Remove it, or set mode: secret.")
    bundle = text(certificates.get("caBundle")).replace("\n", "")
    # "-----BEGIN CERTIFICATE-----" in base64.
    if bundle and (
        len(bundle) % 4 or not bundle.startswith("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t")
    ):
        found = Phrase("text that is not base64-encoded PEM")
        fix = "Make it with: base64 -w0 ca.pem"
        report.error((*path, "caBundle"), found, "PEM certificates in base64", fix)
    issuer = mapping(certificates.get("issuerRef"))
    if mode == "certManager" and issuer.get("kind") == "ClusterIssuer" and not issuer.get("name"):
        reason = "a ClusterIssuer needs its name; the rendered one is an Issuer."
        report.refuse((*path, "issuerRef", "name"), reason, "Set the name, or kind: Issuer.")
