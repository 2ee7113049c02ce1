"""`roost controllers`: one replica of the controllers."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from controllers.main import ControllersOptions, serve


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
            all_namespaces=not arguments["own_namespace_only"],
            dry_run=arguments["dry_run"],
            log_level=arguments["log_level"],
        )
    )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
