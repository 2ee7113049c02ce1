"""The options of `roost record`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roost_core import options


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderOptions:
    """`roost record`."""

    settings_path: Path = options.required_file(
        "--settings",
        chart='"/etc/roost/release/release.json"',
        help="release.json of the rendered ConfigMap.",
    )
    # The model judges pods of these profiles and of the cluster's default one.
    scheduler_configuration_path: Path | None = options.file(
        "--scheduler-config",
        chart='"/etc/roost/scheduler/config.yaml"',
        chart_if='values.scheduler.target == "deploy"',
        help="The rendered KubeSchedulerConfiguration.",
    )
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
