"""The options of `roost record`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roost_core import options


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderOptions:
    """`roost record`."""

    settings_path: Path = options.release_settings()
    # The model judges pods of these profiles and of the cluster's default one.
    scheduler_configuration_path: Path | None = options.scheduler_configuration()
    database: str = options.required(
        "--database",
        metavar="FILE|URL",
        envvar="ROOST_DATABASE",
        help=(
            "An SQLite file, or postgresql://user@host/name. ROOST_DATABASE does the same, and"
            " hides a password."
        ),
    )
    kubeconfig: Path | None = options.kubeconfig()
    bind_address: str = options.bind_address()
    port: int = options.metrics_port("--port", component="recorder")
    log_level: str = options.log_level(component="recorder")
