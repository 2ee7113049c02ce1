"""What one replica of the controllers is told at start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from roost_core import options

if TYPE_CHECKING:
    from pathlib import Path

_ABOVE_0: Final = click.FloatRange(0, min_open=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllersOptions:
    """`roost controllers`."""

    settings_path: Path = options.required_file("--settings", help="controllers.json of the rendered ConfigMap.")
    # None where the cluster's own scheduler places pods.
    scheduler_configuration_path: Path | None = options.file(
        "--scheduler-config", help="The rendered KubeSchedulerConfiguration."
    )
    release: str = options.required("--release", metavar="NAME")
    namespace: str = options.required("--namespace", metavar="NAME")
    lease_name: str = options.option(
        "--lease-name", metavar="NAME", default="", help="The Lease of the replica that works."
    )
    kubeconfig: Path | None = options.kubeconfig()
    bind_address: str = options.bind_address()
    port: int = options.port("--port", 8080, help="HTTP: metrics, probes.")
    identity: str = options.option(
        "--identity", metavar="NAME", default="", help="This replica; default: host and a random part."
    )
    # Empty: all.
    only: tuple[str, ...] = options.option(
        "--only", metavar="CONTROLLER", multiple=True, help="Run just these (repeatable)."
    )
    # The MutatingWebhookConfiguration; "": somebody else keeps the webhook's certificates, or there is no webhook.
    webhook_configuration: str = options.option(
        "--webhook-configuration", metavar="NAME", default="", help="Keep its certificates, and its caBundle."
    )
    webhook_service: str = options.option(
        "--webhook-service", metavar="NAME", default="", help="The Service that the certificate is for."
    )
    webhook_url: str = options.option(
        "--webhook-url", metavar="URL", default="", help="The URL that API servers call instead of the Service."
    )
    ca_secret: str = options.option("--ca-secret", metavar="NAME", default="", help="The Secret that holds the CA.")
    leaf_secret: str = options.option(
        "--leaf-secret", metavar="NAME", default="", help="The Secret that the webhook mounts."
    )
    ca_days: float = options.option("--ca-days", type=_ABOVE_0, default=365.0, show_default=True)
    leaf_hours: float = options.option("--leaf-hours", type=_ABOVE_0, default=168.0, show_default=True)
    all_namespaces: bool = options.flag("--own-namespace-only", off=True, help="Read no pods of other namespaces.")
    dry_run: bool = options.flag("--dry-run", help="Print what would be done now, do nothing, and end.")
    log_level: str = options.log_level()

    @property
    def files(self) -> tuple[Path | None, ...]:
        """What is read at start."""
        return self.settings_path, self.scheduler_configuration_path
