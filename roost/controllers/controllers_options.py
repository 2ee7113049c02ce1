"""The options of `roost controllers`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from roost_core import options

# The condition, in a template, under which controllers keep the webhook's certificates. Otherwise
# there is no webhook, or somebody else makes its certificate.
_KEEPS_CERTIFICATES: Final = (
    'values.admission.mode == "webhook" and values.webhook.certificates.mode == "self" and'
    " values.clusterResources"
)
_certificate_option = partial(options.name, chart_if=_KEEPS_CERTIFICATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllersOptions:
    """`roost controllers`."""

    settings_path: Path = options.release_settings()
    # None where the cluster's own scheduler places pods.
    scheduler_configuration_path: Path | None = options.scheduler_configuration()
    release: str = options.required("--release", metavar="NAME", chart="release.name")
    namespace: str = options.required("--namespace", metavar="NAME", chart="release.namespace")
    lease_name: str = options.name(
        "--lease-name",
        chart='object_name("controllers")',
        help="The Lease of the replica that works.",
    )
    kubeconfig: Path | None = options.kubeconfig()
    bind_address: str = options.bind_address()
    port: int = options.metrics_port("--port", component="controllers")
    identity: str = options.name(
        "--identity", help="This replica; default: host and a random part."
    )
    # The MutatingWebhookConfiguration; "": somebody else keeps the webhook's certificates, or there
    # is no webhook.
    webhook_configuration: str = _certificate_option(
        "--webhook-configuration",
        chart='cluster_object_name("webhook")',
        help="Keep its certificates, and its caBundle.",
    )
    webhook_service: str = _certificate_option(
        "--webhook-service",
        chart='object_name("webhook")',
        help="The Service that the certificate is for.",
    )
    ca_secret: str = _certificate_option(
        "--ca-secret", chart='object_name("webhook-ca")', help="The Secret that holds the CA."
    )
    leaf_secret: str = _certificate_option(
        "--leaf-secret",
        chart='(values.webhook.certificates.secretName or object_name("webhook-leaf"))',
        help="The Secret that the webhook mounts.",
    )
    webhook_url: str = options.name(
        "--webhook-url",
        metavar="URL",
        chart="values.webhook.url",
        chart_if=f"{_KEEPS_CERTIFICATES} and values.webhook.url",
        help="The URL that API servers call instead of the Service.",
    )
    ca_days: float = options.option(
        "--ca-days", type=options.ABOVE_0, default=365.0, show_default=True
    )
    leaf_hours: float = options.option(
        "--leaf-hours", type=options.ABOVE_0, default=168.0, show_default=True
    )
    own_namespace_only: bool = options.flag(
        "--own-namespace-only",
        chart_if="not values.clusterResources",
        help="Read no pods of other namespaces.",
    )
    dry_run: bool = options.flag(
        "--dry-run", help="Print what would be done now, do nothing, and end."
    )
    log_level: str = options.log_level(component="controllers")

    @property
    def files(self) -> tuple[Path | None, ...]:
        """The files that are read at start; None for a file that there isn't."""
        return self.settings_path, self.scheduler_configuration_path
