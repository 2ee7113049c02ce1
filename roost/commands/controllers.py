"""`roost controllers`: one replica of the controllers."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict
from urllib.parse import urlsplit

from roost.controllers.main import CertificateOptions, ControllersOptions, serve


class Arguments(TypedDict):
    """What the command line gives; see roost/cli.py."""

    settings: str
    scheduler_config: str | None
    release: str
    namespace: str
    lease_name: str
    kubeconfig: str | None
    bind_address: str
    port: int
    identity: str
    only: tuple[str, ...]
    webhook_configuration: str
    webhook_service: str
    webhook_url: str
    ca_secret: str
    leaf_secret: str
    ca_days: float
    leaf_hours: float
    own_namespace_only: bool
    dry_run: bool
    log_level: str


def run(arguments: Arguments) -> int:
    """Serve until SIGTERM, or print one plan."""
    return serve(
        ControllersOptions(
            settings_path=Path(arguments["settings"]),
            scheduler_configuration_path=_path(arguments["scheduler_config"]),
            release=arguments["release"],
            namespace=arguments["namespace"],
            lease_name=arguments["lease_name"],
            kubeconfig=_path(arguments["kubeconfig"]),
            bind_address=arguments["bind_address"],
            port=arguments["port"],
            identity=arguments["identity"],
            only=frozenset(arguments["only"]),
            certificates=_certificates(arguments),
            all_namespaces=not arguments["own_namespace_only"],
            dry_run=arguments["dry_run"],
            log_level=arguments["log_level"],
        )
    )


def _certificates(arguments: Arguments) -> CertificateOptions | None:
    """What is told of the webhook's certificates; None: somebody else keeps them."""
    if not arguments["webhook_configuration"]:
        return None
    host = urlsplit(arguments["webhook_url"]).hostname
    return CertificateOptions(
        configuration=arguments["webhook_configuration"],
        service=arguments["webhook_service"],
        extra_names=(host,) if host else (),
        ca_secret=arguments["ca_secret"],
        leaf_secret=arguments["leaf_secret"],
        ca_days=arguments["ca_days"],
        leaf_hours=arguments["leaf_hours"],
    )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
