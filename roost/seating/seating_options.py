"""The options of `roost seating`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from roost_core import options
from roost_core.release.events import SEATING_START_SECONDS

_ABOVE_0: Final = click.FloatRange(0, min_open=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatingOptions:
    """`roost seating`."""

    settings_path: Path = options.required_file(
        "--settings", help="release.json of the rendered ConfigMap."
    )
    hub_url: str = options.required(
        "--hub-url", metavar="URL", help="JupyterHub's API: http://hub:8081/hub/api."
    )
    token_path: Path = options.required_file("--token-file", help="The token of its role.")
    bookings_path: Path | None = options.file("--bookings", help="What roost book wrote.")
    state_path: Path | None = options.file(
        "--state", help="Keeps over restarts what the hub doesn't store."
    )
    grace_minutes: float = options.option(
        "--grace-minutes",
        type=_ABOVE_0,
        default=20.0,
        show_default=True,
        help="Unused servers are stopped so long after the class began.",
    )
    start_seconds: float = options.option(
        "--start-seconds",
        type=_ABOVE_0,
        default=SEATING_START_SECONDS,
        show_default=True,
        help="What a start takes, until some were seen.",
    )
    bind_address: str = options.bind_address()
    port: int = options.port("--port", 8080, help="HTTP: metrics, probes.")
    log_level: str = options.option(
        "--log-level",
        type=click.Choice(["Debug", "Info", "Warning", "Error"]),
        default="Info",
        show_default=True,
    )
