"""Start `roost seating`: settings, loop and probes, from options to exit code."""

from __future__ import annotations

import logging
import sys
import threading

from roost.seating.bookings import BookingFile
from roost.seating.hub import Hub, Result
from roost.seating.metrics import SeatingMetrics
from roost.seating.seating_options import SeatingOptions
from roost.seating.service import SeatingTimes, Service
from roost.seating.settings import ReleaseFile
from roost_core.http.ops_server import OpsServer
from roost_core.http.server import BindError, bind
from roost_core.kube import logs
from roost_core.kube.process import stop_on_signals, version
from roost_core.release.reader import SettingsError

log = logging.getLogger(__name__)


def serve(options: SeatingOptions) -> int:
    """Seat people until SIGTERM.

    Returns 0 after an orderly end, 1 if it could not start; stderr says why.
    """
    logs.configure(options.log_level)
    try:
        release = ReleaseFile(options.settings_path, lambda text: log.warning("%s", text))
        bound = bind(options.bind_address, options.port)
    except (SettingsError, BindError) as error:
        print(f"roost seating: {error}", file=sys.stderr)  # noqa: T201 - a command's output
        return 1
    stop = threading.Event()
    stop_on_signals(stop)
    metrics = SeatingMetrics(results=Result)
    service = Service(
        Hub(options.hub_url, options.token_path),
        release,
        BookingFile(options.bookings_path, lambda text: log.warning("%s", text)),
        SeatingTimes(60.0 * options.grace_minutes, options.start_seconds),
        state_path=options.state_path,
        metrics=metrics,
    )
    ops = OpsServer(
        bound,
        metrics_text=metrics.text,
        readiness=service.readiness,
        is_alive=lambda: service.is_alive,
    )
    ops.start()
    log.info("running seating port=%d version=%s", ops.port, version())
    service.run(stop)
    ops.stop()
    log.info("stopped")
    return 0
