"""`roost webhook`: one replica of the admission webhook."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from webhook.main import WebhookOptions, serve


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
    certificate_folder: str
    client_ca: str | None
    client_name: str
    drain_seconds: float
    log_level: str


def run(arguments: Arguments) -> int:
    """Serve until SIGTERM."""
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
            certificate_folder=Path(arguments["certificate_folder"]),
            client_ca=_path(arguments["client_ca"]),
            client_name=arguments["client_name"],
            drain_seconds=arguments["drain_seconds"],
            log_level=arguments["log_level"],
        )
    )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
