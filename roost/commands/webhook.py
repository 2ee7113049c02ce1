"""`roost webhook`: one replica of the admission webhook."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict
from urllib.parse import urlsplit

from webhook.main import CertificateMode, WebhookOptions, serve


class Arguments(TypedDict):
    """What the command line gives; see roost/cli.py."""

    policy: str
    release: str
    namespace: str
    no_cluster: bool
    kubeconfig: str | None
    bind_address: str
    port: int
    metrics_port: int
    certificate_mode: str
    certificate_folder: str | None
    service_name: str
    url: str
    webhook_configuration: str
    secret_name: str
    lease_name: str
    ca_days: float
    leaf_hours: float
    identity: str
    drain_seconds: float
    log_level: str


def run(arguments: Arguments) -> int:
    """Serve until SIGTERM."""
    host = urlsplit(arguments["url"]).hostname
    return serve(
        WebhookOptions(
            policy_path=Path(arguments["policy"]),
            release=arguments["release"],
            namespace=arguments["namespace"],
            uses_cluster=not arguments["no_cluster"],
            kubeconfig=_path(arguments["kubeconfig"]),
            bind_address=arguments["bind_address"],
            port=arguments["port"],
            metrics_port=arguments["metrics_port"],
            certificate_mode=CertificateMode(arguments["certificate_mode"]),
            certificate_folder=_path(arguments["certificate_folder"]),
            service_name=arguments["service_name"],
            extra_names=(host,) if host else (),
            webhook_configuration=arguments["webhook_configuration"],
            secret_name=arguments["secret_name"],
            lease_name=arguments["lease_name"],
            ca_days=arguments["ca_days"],
            leaf_hours=arguments["leaf_hours"],
            identity=arguments["identity"],
            drain_seconds=arguments["drain_seconds"],
            log_level=arguments["log_level"],
        )
    )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
