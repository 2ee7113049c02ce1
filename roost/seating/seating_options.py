"""The options of `roost seating`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roost_core import options
from roost_core.release.seating_pace import SEATING_START_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatingOptions:
    """`roost seating`."""

    settings_path: Path = options.release_settings()
    hub_url: str = options.required(
        "--hub-url",
        metavar="URL",
        chart="values.seating.hubUrl",
        help="JupyterHub's API: http://hub:8081/hub/api.",
    )
    token_path: Path = options.required_file(
        "--token-file", chart='"/etc/roost/token/token"', help="The token of its role."
    )
    bookings_path: Path | None = options.file(
        "--bookings",
        chart='"/etc/roost/bookings/events.yaml"',
        chart_if="values.events.enabled and values.events.configMaps",
        help="What roost book wrote.",
    )
    state_path: Path | None = options.file(
        "--state",
        chart='"/state/seating.json"',
        help="Keeps over restarts what the hub doesn't store.",
    )
    grace_minutes: float = options.option(
        "--grace-minutes",
        chart="values.seating.graceMinutes | int",
        type=options.ABOVE_0,
        default=20.0,
        show_default=True,
        help="Unused servers are stopped so long after the class began.",
    )
    start_seconds: float = options.option(
        "--start-seconds",
        type=options.ABOVE_0,
        default=SEATING_START_SECONDS,
        show_default=True,
        help="What a start takes, until some were seen.",
    )
    bind_address: str = options.bind_address()
    port: int = options.metrics_port("--port", component="seating")
    log_level: str = options.log_level(component="seating")
