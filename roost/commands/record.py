"""`roost record`: the recorder."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from recorder.main import RecorderOptions, serve


class Arguments(TypedDict):
    """What the command line gives; see roost/cli.py."""

    settings: str
    database: str
    kubeconfig: str | None
    bind_address: str
    port: int
    log_level: str


def run(arguments: Arguments) -> int:
    """Record until SIGTERM."""
    kubeconfig = arguments["kubeconfig"]
    return serve(
        RecorderOptions(
            settings_path=Path(arguments["settings"]),
            database=arguments["database"],
            kubeconfig=Path(kubeconfig) if kubeconfig else None,
            bind_address=arguments["bind_address"],
            port=arguments["port"],
            log_level=arguments["log_level"],
        )
    )
