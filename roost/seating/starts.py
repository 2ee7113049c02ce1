"""Ask the hub to start servers, each in a thread, and note how the starts went."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from time import monotonic
from typing import Final, NamedTuple

from roost.seating.hub import Hub, HubError, Outcome, Result
from roost.seating.memory import Memory, ServerKey
from roost.seating.metrics import SeatingMetrics
from roost.seating.observing import LOOK_SECONDS
from roost.seating.people import ClassKey
from roost.seating.plan import Start

log = logging.getLogger(__name__)

_MOST_THREADS: Final = 128
# After asking for so long when ready servers started, a call of `collect` asks no more: a hub that
# doesn't answer would stop the loop for as long as a request may take, for each server.
_CONFIRMING_SECONDS: Final = 20.0
# For how long after a server was ready the hub is asked when the server started.
_CONFIRM_SECONDS: Final = 60.0


class Looks(NamedTuple):
    """When the last looks at the hub began; Unix time."""

    # The last look at which the hub listed all users, or nothing listened at its address.
    at: float = 0.0
    # The last look at which the hub listed all users.
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
        # By the person's name.
        self.running: dict[str, _RunningStart] = {}
        # Names of people whose server is ready by the hub's word, but the hub couldn't be asked
        # afterwards when the server started.
        self._unconfirmed: set[str] = set()
        # Starts that the hub said failed, until the next look at it; by the person's name. While a
        # hub is stopped, it calls its unfinished starts failed. Such a start doesn't count as a
        # failure.
        self._failed: dict[str, _FailedStart] = {}

    def start(self, start: Start, now: float) -> None:
        """Ask the hub to start a server. now: Unix time."""
        self._memory.note_try(start.key, start.name)
        future = self._pool.submit(self._hub.start, start.name, start.options)
        self.running[start.name] = _RunningStart(start, now, future)

    def end(self) -> None:
        """Ask for no more starts. The hub goes on with those that it was asked for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def collect(self, looks: Looks) -> None:
        """Note how the starts went that have ended."""
        ask_until = monotonic() + _CONFIRMING_SECONDS
        for name, (start, asked_at, future) in list(self.running.items()):
            if not future.done():
                continue
            try:
                outcome = future.result()
            except Exception as error:  # a fault in one start must not stop the others
                log.exception("asking for the server of %s failed", name)
                outcome = Outcome(Result.UNKNOWN, f"asking for it failed ({type(error).__name__})")
            if outcome.result is Result.READY:
                if monotonic() >= ask_until:
                    self._unconfirmed.add(name)
                    continue
                is_noted = self._note_ready(start, asked_at, outcome, looks)
                if not is_noted:
                    # The next call tries again, after the others.
                    self.running[name] = self.running.pop(name)
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
        """Count the starts that the hub said failed.

        Call it when the hub answered a look: then it wasn't stopped, so the starts really failed.
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
        """Count the starts that the hub said failed as unknown.

        Call it when the hub went away before it answered a look.
        """
        for name, failed in self._failed.items():
            self._metrics.starts.labels(Result.UNKNOWN.value).inc()
            self._note_unknown(name, failed.outcome)
        self._failed.clear()

    def _note_ready(self, start: Start, asked_at: float, outcome: Outcome, looks: Looks) -> bool:
        """Note when a server was first ready. False: the hub can't be asked now when it started."""
        try:
            user = self._hub.user(start.name)
        except HubError:
            # Without that time, a server would count as used. So the hub is asked again, however
            # long it is away, unless it has answered looks since.
            self._unconfirmed.add(start.name)
            return looks.answered_at - outcome.at > _CONFIRM_SECONDS
        server = user.server if user else None
        if server is None or server.started is None or server.mark is None:
            return True
        # A hub that is stopped calls a server ready although users can't reach it. The next hub
        # gives it its route. So in this case a look shows when the server was ready, if no look was
        # missed.
        was_unconfirmed = start.name in self._unconfirmed
        is_left_to_look = was_unconfirmed and self._clock() - looks.at <= LOOK_SECONDS
        if not is_left_to_look:
            key = ServerKey(start.name, server.started)
            self._memory.note_ready(key, outcome.at, outcome.at - asked_at)
        return True


def class_words(key: ClassKey) -> str:
    """A class in words, for logs."""
    return f"{key.booking} at {datetime.fromtimestamp(key.start, UTC):%Y-%m-%d %H:%M} UTC"
