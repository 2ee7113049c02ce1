"""`roost record`: the recorder."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from roost.recorder.main import RecorderOptions, serve


class Arguments(TypedDict):
    """What the command line gives; see roost/cli.py."""

    settings: str
    scheduler_config: str | None
    database: str
    kubeconfig: str | None
    bind_address: str
    port: int
    log_level: str


def run(arguments: Arguments) -> int:
    """Record until SIGTERM."""
    return serve(
        RecorderOptions(
            settings_path=Path(arguments["settings"]),
            scheduler_configuration_path=_path(arguments["scheduler_config"]),
            database=arguments["database"],
            kubeconfig=_path(arguments["kubeconfig"]),
            bind_address=arguments["bind_address"],
            port=arguments["port"],
            log_level=arguments["log_level"],
        )
    )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
