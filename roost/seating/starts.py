"""Ask the hub for starts, each in a thread, and take in how they went."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Final, NamedTuple

from roost.seating.hub import Hub, HubError, Outcome, Result
from roost.seating.memory import Memory, ServerKey
from roost.seating.metrics import SeatingMetrics
from roost.seating.observing import LOOK_SECONDS
from roost.seating.people import ClassKey
from roost.seating.plan import Start

log = logging.getLogger(__name__)

_MOST_THREADS: Final = 128
# How long after a server was ready the hub is still asked about it.
_CONFIRM_SECONDS: Final = 60.0


class Looks(NamedTuple):
    """When the last looks at the hub began; Unix time."""

    # At which the hub told all, or nobody listened there.
    at: float = 0.0
    # At which the hub told all.
    answered_at: float = 0.0


class _RunningStart(NamedTuple):
    """A start that the hub was asked for and hasn't answered."""

    start: Start
    # Unix time.
    asked_at: float
    future: Future[Outcome]


class _FailedStart(NamedTuple):
    """A start that the hub said failed."""

    start: Start
    outcome: Outcome


class Starts:
    """Starts that the hub was asked for."""

    def __init__(
        self, hub: Hub, memory: Memory, metrics: SeatingMetrics, clock: Callable[[], float]
    ) -> None:
        self._hub = hub
        self._memory = memory
        self._metrics = metrics
        self._clock = clock
        self._pool = ThreadPoolExecutor(_MOST_THREADS, "start")
        # By name, as all of these.
        self.running: dict[str, _RunningStart] = {}
        # Who was said to be ready by a hub that could not be asked afterwards.
        self._unconfirmed: set[str] = set()
        # Starts that the hub said failed, until the next look at it. A hub that is stopped fails
        # the starts that it has in hand: then nobody's server failed.
        self._failed: dict[str, _FailedStart] = {}

    def start(self, start: Start, now: float) -> None:
        """Ask for a start."""
        self._memory.note_try(start.key, start.name)
        future = self._pool.submit(self._hub.start, start.name, start.options)
        self.running[start.name] = _RunningStart(start, now, future)

    def end(self) -> None:
        """Ask for no more; those that were asked for go on at the hub."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def collect(self, looks: Looks) -> None:
        """Take in how the starts went that have ended."""
        for name, (start, asked_at, future) in list(self.running.items()):
            if not future.done():
                continue
            try:
                outcome = future.result()
            except Exception as error:  # one start's fault ends no other's
                log.exception("asking for the server of %s failed", name)
                outcome = Outcome(Result.UNKNOWN, f"asking for it failed ({type(error).__name__})")
            if outcome.result is Result.READY and not self._note_ready(
                start, asked_at, outcome, looks
            ):
                continue
            del self.running[name]
            self._unconfirmed.discard(name)
            if outcome.result is Result.FAILED:
                self._failed[name] = _FailedStart(start, outcome)
                if outcome.is_refusal:
                    self._count_failure(name)
                continue
            self._metrics.starts.labels(outcome.result.value).inc()
            if outcome.result is Result.UNKNOWN:
                self._note_unknown(name, outcome)
            elif outcome.result is Result.BUSY:
                log.info("the hub is busy: %s", outcome.words)
                self._memory.note_busy(start.key, name, outcome.retry_seconds, self._clock())

    def _note_unknown(self, name: str, outcome: Outcome) -> None:
        log.info("whether the server of %s starts isn't known: %s", name, outcome.words)
        self._memory.ended[name] = self._clock()

    def count_failures(self) -> None:
        """Count the starts that the hub said failed: it answers, so it wasn't its end that failed
        them.
        """
        for name in list(self._failed):
            self._count_failure(name)

    def _count_failure(self, name: str) -> None:
        start, outcome = self._failed.pop(name)
        self._metrics.starts.labels(Result.FAILED.value).inc()
        log.warning(
            "%s: the server of %s did not start: %s", class_words(start.key), name, outcome.words
        )
        now = self._clock()
        if outcome.is_outside:
            self._memory.skip(start.key, name, outcome.words, now)
            return
        is_refusal = outcome.is_refusal
        self._memory.note_failure(start.key, name, outcome.words, now, is_refusal=is_refusal)

    def doubt_failures(self) -> None:
        """The hub went away before it answered a look: nothing is known of these starts."""
        for name, failed in self._failed.items():
            self._metrics.starts.labels(Result.UNKNOWN.value).inc()
            self._note_unknown(name, failed.outcome)
        self._failed.clear()

    def _note_ready(self, start: Start, asked_at: float, outcome: Outcome, looks: Looks) -> bool:
        """Keep when a server was first ready; False: the hub can't be asked about it just now."""
        try:
            user = self._hub.user(start.name)
        except HubError:
            # A server whose time isn't known is taken for a used one. So it is asked for again,
            # however long the hub is away, unless it answers looks meanwhile.
            self._unconfirmed.add(start.name)
            return looks.answered_at - outcome.at > _CONFIRM_SECONDS
        server = user.server if user else None
        is_doubtful = start.name in self._unconfirmed
        if server is None or server.started is None or server.mark is None:
            return True
        # A hub that is stopped calls a server ready whose start it breaks off. The next hub gives
        # the route. So the look that finds it ready tells when it was, if no look was missed.
        is_left_to_look = is_doubtful and self._clock() - looks.at <= LOOK_SECONDS
        if not is_left_to_look:
            key = ServerKey(start.name, server.started)
            self._memory.note_ready(key, outcome.at, outcome.at - asked_at)
        return True


def class_words(key: ClassKey) -> str:
    """A class, for logs."""
    return f"{key.booking} at {datetime.fromtimestamp(key.start, UTC):%Y-%m-%d %H:%M} UTC"
