"""The webhook's event loop from start to end: wait for a certificate, serve reviews, drain on SIGTERM.

Reviews run on the event loop itself, not in threads: they use memory only, and handing one to a thread costs more than
the review (docs/decisions/0002-webhook-server.md). Probes and metrics have a thread of their own.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket
    import threading
    from collections.abc import Callable

    from roost_core.http.server import Server
    from webhook.certificates.tls import ServingCertificate

log = logging.getLogger(__name__)

# A loop without an iteration for so long is stuck: each review is bounded far below it.
STUCK_SECONDS: Final = 30.0


class Pulse:
    """Tells whether the event loop runs: the loop beats each second, another thread checks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = clock()

    def beat(self) -> None:
        """Note that the loop runs."""
        self._at = self._clock()

    def is_beating(self) -> bool:
        """Whether the loop has run in the last STUCK_SECONDS."""
        return self._clock() - self._at < STUCK_SECONDS


async def serve(
    server: Server,
    bound: socket.socket,
    certificate: ServingCertificate,
    *,
    draining: threading.Event,
    drain_seconds: float,
    pulse: Pulse,
) -> None:
    """Serve until SIGTERM or SIGINT, then set `draining` and serve `drain_seconds` more; a second signal ends at once.

    Doesn't listen until there is a certificate.
    """
    loop = asyncio.get_running_loop()
    end = asyncio.Event()

    def on_signal() -> None:
        if draining.is_set():
            end.set()
            return
        log.info("draining seconds=%g", drain_seconds)
        draining.set()
        loop.call_later(drain_seconds, end.set)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    while not certificate.is_loaded and not end.is_set():
        pulse.beat()
        await asyncio.sleep(0.05)
    await server.serve(bound, end, pulse.beat)
