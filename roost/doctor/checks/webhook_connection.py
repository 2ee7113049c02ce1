"""The API server trusts the webhook's certificate, and has a ready pod to send reviews to."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from roost.doctor.conditions import UNREVIEWED, Condition, State, conditions
from roost.doctor.evidence import name_of, now_seconds, path_of, some
from roost.doctor.findings import CheckReport, error, warning
from roost.doctor.install import Install
from roost_core.kube.client import ApiError, list_all
from roost_core.kube.pki import (
    CertificateFacts,
    bundle_end_seconds,
    certificate_facts,
    is_trusted,
    split_bundle,
)
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import TLS_CERTIFICATE_KEY

# The volume of the webhook's pods with its certificate.
_VOLUME: Final = "certificate"
# With mode `secret` a person brings the next certificate, and needs days to get it.
_NOTICE_SECONDS: Final = 7 * 86400.0
_DOWN: Final = conditions(State.DOWN, "webhook")
_BROKEN: Final = conditions(State.BROKEN, "webhook")


def check(install: Install) -> CheckReport:
    configurations = install.of_kind("MutatingWebhookConfiguration")
    if not configurations:
        yield "no webhook is used"
        return
    yield "the webhook's certificate, caBundle and Service"
    for body in configurations:
        live = install.client.find(path_of(body))
        if live is None:
            # The check `objects` reports it as an error.
            yield "no webhook is there"
            continue
        entries = live.get("webhooks") or []
        without_bundle = [
            entry["name"] for entry in entries if not entry["clientConfig"].get("caBundle")
        ]
        if without_bundle:
            yield error(
                f"{name_of(body)}: no caBundle in {some(without_bundle)}, so the API server trusts"
                " no webhook.",
                "The controllers' leader writes it (webhook.certificates.mode self): see their log."
                " certManager: does cert-manager's ca-injector run? secret: give"
                " webhook.certificates.caBundle.",
                UNREVIEWED,
                _of_leader(install),
            )
        yield from _find_expired(install, name_of(body), entries)
        yield from _find_certificate(install, name_of(body), entries)
        services = [entry["clientConfig"].get("service") for entry in entries]
        for service in dict.fromkeys(service["name"] for service in services if service):
            if not _has_ready_address(install, service):
                yield error(
                    f"Service {install.release.namespace}/{service} has no ready pod, so no pod is"
                    " placed.",
                    "kubectl logs of the webhook's pods; /readyz says what a replica waits for "
                    "(docs/troubleshooting.md#is-the-webhook-healthy).",
                    UNREVIEWED,
                    _DOWN,
                )


def _of_leader(install: Install) -> frozenset[Condition]:
    """What keeps the certificates of mode `self` from being renewed."""
    return conditions(State.UNLED, "controllers") if _mode(install) == "self" else frozenset()


def _find_expired(install: Install, name: str, entries: list[JSONObject]) -> CheckReport:
    """Find CA bundles by which the API server can trust no certificate."""
    now = now_seconds(install)
    unusable = []
    for entry in entries:
        bundle = _bundle_of(entry)
        ends = bundle_end_seconds(bundle)
        if bundle and ends is None:
            unusable.append(f"{entry['name']} (not a certificate)")
        elif ends is not None and ends <= now:
            unusable.append(f"{entry['name']} (expired {_date(ends)})")
    if unusable:
        yield error(
            f"{name}: a caBundle by which nothing can be trusted: {some(unusable)}. Pods are"
            " created without Roost.",
            "The controllers' leader renews it (mode self; check leaders). certManager: does its"
            " ca-injector run? secret: give a new webhook.certificates.caBundle.",
            UNREVIEWED,
            _of_leader(install),
        )


class _Served(NamedTuple):
    """The certificate that the webhook serves."""

    # PEM, and what its first certificate says.
    chain: bytes
    facts: CertificateFacts
    # The certificate in words, as they follow "The".
    words: str
    # How the webhook gets another one.
    fix: str


def _find_certificate(install: Install, name: str, entries: list[JSONObject]) -> CheckReport:
    """Find faults of the certificate that the webhook serves: its end, its names, who trusts it.

    An account that may not read the Secret gets no findings about it.
    """
    secret = _secret_name(install)
    namespace = install.release.namespace
    if not secret:
        return
    try:
        live = install.client.find(f"/api/v1/namespaces/{namespace}/secrets/{secret}")
    except ApiError:
        return
    fix = _certificate_fix(install, secret)
    chain = _decoded(((live or {}).get("data") or {}).get(TLS_CERTIFICATE_KEY, ""))
    facts = certificate_facts(chain)
    if facts is None:
        state = "is missing" if live is None else f"holds no certificate in {TLS_CERTIFICATE_KEY}"
        yield error(
            f"Secret {namespace}/{secret}, with the webhook's certificate, {state}.",
            fix,
            _BROKEN,
            _of_leader(install),
        )
        return
    words = f"webhook's certificate (Secret {namespace}/{secret}, of {_issuer(facts)})"
    served = _Served(chain, facts, words, fix)
    yield from _find_end(install, served)
    yield from _find_other_authorities(install, name, entries, served)
    hosts = {_host(entry) for entry in entries} - {""}
    lacking = sorted(host for host in hosts if not _is_for(facts, host))
    if lacking:
        yield error(
            f"The {words} isn't for {some(lacking)}, which the API server asks"
            f" ({some(list(facts.names)) or 'it names no host'}).",
            fix,
            UNREVIEWED,
            _of_leader(install),
        )


def _find_end(install: Install, served: _Served) -> CheckReport:
    """Find a certificate that expired, or that a person must replace soon."""
    ends = served.facts.ends_at
    left = ends - now_seconds(install)
    if left <= 0:
        yield error(
            f"The {served.words} expired {_date(ends)}: the API server doesn't trust the"
            " webhook, and creates pods without it.",
            served.fix,
            _BROKEN | UNREVIEWED,
            _of_leader(install),
        )
    elif _mode(install) == "secret" and left <= _NOTICE_SECONDS:
        yield warning(f"The {served.words} expires {_date(ends)}.", served.fix)


def _find_other_authorities(
    install: Install, name: str, entries: list[JSONObject], served: _Served
) -> CheckReport:
    """Find CA bundles by which the API server doesn't trust the certificate."""
    now = now_seconds(install)
    other_authorities: set[str] = set()
    for entry in entries:
        bundle = _bundle_of(entry)
        # `_find_expired` reports a bundle that is no certificate, or has ended.
        is_usable = (bundle_end_seconds(bundle) or 0.0) > now
        if is_usable and not is_trusted(served.chain, bundle):
            other_authorities.add(_subjects(bundle))
    if other_authorities:
        yield error(
            f"{name}: its caBundle is of another CA ({some(sorted(other_authorities))}) than the"
            f" {served.words}: the API server doesn't trust the webhook, and creates pods without"
            " it.",
            _bundle_fix(install, name, served.fix),
            UNREVIEWED,
            _of_leader(install),
        )


def _mode(install: Install) -> str:
    """Who brings the certificate: self, certManager or secret."""
    return str(install.values["webhook"]["certificates"]["mode"])


def _certificate_fix(install: Install, secret: str) -> str:
    """How the webhook gets another certificate."""
    namespace = install.release.namespace
    mode = _mode(install)
    if mode == "self":
        return (
            f"The controllers' leader makes it: `kubectl --namespace {namespace} logs --selector"
            " app.kubernetes.io/component=controllers --tail=-1 | grep certificate` says what"
            " hinders it."
        )
    if mode == "certManager":
        return (
            f"`kubectl --namespace {namespace} describe certificate,certificaterequest` and"
            " cert-manager's log say why it isn't renewed."
        )
    return (
        f"`kubectl --namespace {namespace} create secret tls {secret} --cert tls.crt --key tls.key"
        " --dry-run=client -o yaml | kubectl apply -f -` with a new pair, and"
        " webhook.certificates.caBundle if its CA is new."
    )


def _bundle_fix(install: Install, name: str, fix: str) -> str:
    """How the caBundle becomes that of the certificate's CA."""
    mode = _mode(install)
    if mode == "self":
        controllers = install.component("controllers")
        restart = "switch controllers.enabled on"
        if controllers:
            deployment = f"deployment/{controllers['metadata']['name']}"
            namespace = install.release.namespace
            restart = f"`kubectl --namespace {namespace} rollout restart {deployment}`"
        return (
            f"The controllers' leader writes it within seconds. If it doesn't: {restart}, and see"
            " their log."
        )
    if mode == "certManager":
        return (
            "cert-manager's ca-injector writes it: does it run, and has"
            f" {name} the annotation cert-manager.io/inject-ca-from?"
        )
    return f"Give that CA as webhook.certificates.caBundle, in base64. {fix}"


def _secret_name(install: Install) -> str:
    """The Secret that the webhook's pods mount their certificate from; "": none."""
    webhook = install.component("webhook")
    if webhook is None:
        return ""
    for volume in webhook["spec"]["template"]["spec"].get("volumes") or []:
        if volume["name"] == _VOLUME and "secret" in volume:
            return str(volume["secret"]["secretName"])
    return ""


def _host(entry: JSONObject) -> str:
    """The host that the API server asks for, by an entry of the configuration."""
    service = entry["clientConfig"].get("service")
    if service:
        return f"{service['name']}.{service['namespace']}.svc"
    return urlsplit(str(entry["clientConfig"].get("url", ""))).hostname or ""


def _is_for(facts: CertificateFacts, host: str) -> bool:
    """Whether a certificate names a host, or all hosts of its domain."""
    domain = host.partition(".")[2]
    return host in facts.names or f"*.{domain}" in facts.names


def _issuer(facts: CertificateFacts) -> str:
    return facts.issuer.removeprefix("CN=") or "an issuer without a name"


def _subjects(bundle: bytes) -> str:
    certificates = [certificate_facts(pem) for pem in split_bundle(bundle)]
    return some([facts.subject.removeprefix("CN=") for facts in certificates if facts is not None])


def _bundle_of(entry: JSONObject) -> bytes:
    return _decoded(str(entry["clientConfig"].get("caBundle") or ""))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b"not base64"


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _has_ready_address(install: Install, service: str) -> bool:
    """Whether a Service of the release's namespace has a ready pod."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{install.release.namespace}/endpointslices"
    slices = list_all(
        install.client, path, {"labelSelector": f"kubernetes.io/service-name={service}"}
    )
    for endpoint_slice in slices:
        for endpoint in endpoint_slice.get("endpoints") or []:
            is_ready = (endpoint.get("conditions") or {}).get("ready", True)
            if endpoint["addresses"] and is_ready:
                return True
    return False
