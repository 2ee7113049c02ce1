"""Seat people: look at the hub, decide, ask it, and keep what was seen."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from roost.seating import memory as stored
from roost.seating.bookings import BookingFile, ReleaseFile, SeatingSettings
from roost.seating.hub import Hub, HubError, Outcome, Result
from roost.seating.metrics import SeatingMetrics
from roost.seating.people import HubUser, listed_people
from roost.seating.plan import (
    LATE_SECONDS,
    ClassKey,
    Limits,
    Memory,
    SeatedClass,
    Start,
    Stop,
    View,
    count_busy,
    count_failure,
    count_ready,
    forget,
    learned_start_seconds,
    may_stop,
    observe,
    plan_seating,
)
from roost_core.release.events import Event, Seated, first_start_after, seating_seconds

log = logging.getLogger(__name__)

# Between two looks at the hub: while servers are started, while a class's grace lasts, and else.
_BUSY_SECONDS: Final = 1.0
_GRACE_SECONDS: Final = 30.0
_IDLE_SECONDS: Final = 60.0
# Groups, and users who have no server, are read again after so long.
_PEOPLE_SECONDS: Final = 30.0
# After a look that failed: twice as long each time.
_MOST_BACKOFF_SECONDS: Final = 60.0
_MOST_BUSY_BACKOFF_SECONDS: Final = 4.0
# The loop is alive as long as its last turn began so recently.
_ALIVE_SECONDS: Final = 300.0
_MOST_THREADS: Final = 128


@dataclass(frozen=True, slots=True)
class SeatingTimes:
    """What the options say of times, in seconds."""

    grace: float
    # Of one start, until some were seen.
    start: float


class Service:
    """Seats people of one hub. `turn` belongs to one thread."""

    def __init__(
        self,
        hub: Hub,
        release: ReleaseFile,
        bookings: BookingFile,
        times: SeatingTimes,
        *,
        state_path: Path | None = None,
        metrics: SeatingMetrics | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._hub = hub
        self._release = release
        self._bookings = bookings
        self._times = times
        self._state_path = state_path
        self._clock = clock
        self.metrics = metrics or SeatingMetrics()
        self._settings = release.settings
        self.limits = _limits_of(self._settings, times)
        self.memory: Memory = stored.load(state_path)
        self._saved = ""
        self._running: dict[str, tuple[Start, float, Future[Outcome]]] = {}
        self._pool = ThreadPoolExecutor(_MOST_THREADS, "start")
        self._everyone: dict[str, HubUser] = {}
        self._everyone_at = float("-inf")
        self._groups: dict[str, tuple[float, Sequence[str]]] = {}
        self._said: dict[str, str] = {}
        self._failures = 0
        self._turned_at = time.monotonic()
        # The last look at the hub, in words; "": it went well.
        self.trouble = ""
        self._has_looked = False
        # When this look at the hub began, and the one before.
        self._looking_at = 0.0
        self._looked_at = 0.0
        # Whether people are being seated, by the last look that the hub answered.
        self._is_starting = False

    @property
    def is_alive(self) -> bool:
        """Whether the loop turns."""
        return time.monotonic() - self._turned_at < _ALIVE_SECONDS

    def readiness(self) -> tuple[bool, str]:
        """Whether the hub answers, and what is going on, in words."""
        lines = [self.trouble or "the hub answers", *self._said.values()]
        return self._has_looked and not self.trouble, "\n".join(lines) + "\n"

    def run(self, stop: threading.Event) -> None:
        """Turn until `stop`."""
        while not stop.is_set():
            stop.wait(self.turn())
        # Starts go on at the hub.
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._save()

    def turn(self) -> float:
        """Look once, decide and act; seconds until the next turn. Raises nothing of the hub's."""
        self._turned_at = time.monotonic()
        now = self._clock()
        self._collect()
        self._looked_at = self._looking_at
        self._looking_at = now
        try:
            wait = self._seat(now)
        except HubError as error:
            self.metrics.hub_errors.inc()
            if str(error) != self.trouble:
                log.warning("nothing is started or stopped: %s", error)
            self.trouble = str(error)
            self._failures += 1
            most = _MOST_BUSY_BACKOFF_SECONDS if self._is_starting else _MOST_BACKOFF_SECONDS
            wait = min(most, _BUSY_SECONDS * 2.0**self._failures)
        else:
            self._has_looked = True
            self.trouble = ""
            self._failures = 0
        self._save()
        return wait

    def _seat(self, now: float) -> float:
        """Look, decide and act. Raises HubError."""
        self._settings = self._release.look()
        self.limits = _limits_of(self._settings, self._times)
        events = [*self._settings.booked, *self._bookings.events(self._settings.limits)]
        classes = [
            seated
            for event in events
            if event.seated is not None
            and (seated := self._current_class(now, event, event.seated)) is not None
        ]
        starting = [seated for seated in classes if now < seated.key.start + LATE_SECONDS]
        self._is_starting = bool(starting)
        if not starting:
            # A start that took long, or failed, says nothing of the next class.
            self.memory.window = Memory().window
        users = self._look(now, classes)
        view = View(self._clock(), users, frozenset(self._running), self._looked_at)
        observe(view, self.memory)
        forget(view, self.memory)
        plan = plan_seating(view, classes, self.memory, self.limits)
        for start in plan.starts:
            self._start(start, now)
        for stop in plan.stops:
            self._stop(stop)
        self._tell(classes, users)
        if starting or self._running:
            return _BUSY_SECONDS
        marked = any(user.server and user.server.mark for user in users.values())
        return min(_GRACE_SECONDS if marked or classes else _IDLE_SECONDS, self._times.grace)

    # What is booked, and who is listed

    def _current_class(self, now: float, event: Event, seated: Seated) -> SeatedClass | None:
        """The occurrence of a booking for which people are seated now, or unused servers kept."""
        start = first_start_after(event, int(now - self._times.grace))
        if start is None:
            return None
        start_seconds = learned_start_seconds(self.memory, self._times.start)
        limit = self.limits.concurrent_spawn_limit
        begins_at = start - seating_seconds(event.people, limit, start_seconds)
        if now < begins_at:
            return None
        options = {"profile": seated.profile} if seated.profile else {}
        names = self._listed(now, event.name, seated)
        return SeatedClass(ClassKey(event.name, start), event.people, names, begins_at, options)

    def _listed(self, now: float, booking: str, seated: Seated) -> Sequence[str]:
        """A booking's people, in the order in which they are started. Raises HubError."""
        self._read_everyone(now)
        names = [self._known_name(name) for name in seated.users]
        if seated.group:
            read_at, members = self._groups.get(seated.group, (float("-inf"), ()))
            if now - read_at >= _PEOPLE_SECONDS:
                found = self._hub.group(seated.group)
                if found is None:
                    self._say(
                        f"group of {booking}",
                        f"{booking}: the hub has no group {seated.group!r}, or the token's role"
                        " lacks read:groups: nobody of it is seated",
                    )
                elif not found:
                    self._say(f"group of {booking}", f"{booking}: group {seated.group!r} is empty")
                else:
                    self._say(f"group of {booking}", "")
                members = found or ()
                self._groups[seated.group] = (now, members)
            names += members
        unknown = sorted({name for name in names if name not in self._everyone})
        text = f"{booking}: the hub doesn't know {_some(unknown)}: skipped" if unknown else ""
        self._say(f"unknown of {booking}", text)
        return listed_people(names, self._everyone, self.memory.came)

    def _known_name(self, name: str) -> str:
        """A listed name as the hub writes it: JupyterHub makes names lower case."""
        return name if name in self._everyone else name.lower()

    def _read_everyone(self, now: float) -> None:
        if now - self._everyone_at >= _PEOPLE_SECONDS:
            self._everyone = {user.name: user for user in self._hub.users()}
            self._everyone_at = now

    def _look(self, now: float, classes: Sequence[SeatedClass]) -> Mapping[str, HubUser]:
        """All users who count now: who has a server is read anew."""
        active = {user.name: user for user in self._hub.users("active")}
        if not classes:
            return active
        self._read_everyone(now)
        idle = {name: HubUser(name, user.last_activity) for name, user in self._everyone.items()}
        return {**idle, **active}

    # What is done

    def _start(self, start: Start, now: float) -> None:
        tries = self.memory.tries.setdefault(start.key, {})
        tries[start.name] = tries.get(start.name, 0) + 1
        future = self._pool.submit(self._hub.start, start.name, start.options)
        self._running[start.name] = (start, now, future)

    def _stop(self, stop: Stop) -> None:
        """Stop a server, after one more look at it."""
        user = self._hub.user(stop.name)
        server = user.server if user else None
        if user is None or server is None or server.started != stop.started:
            return
        if not may_stop(self._clock(), user, server, self.memory, self.limits):
            return
        self._hub.stop(stop.name)
        self.metrics.stops.inc()
        log.info("stopped the server of %s: not used for %s", stop.name, _class_words(stop.key))

    def _collect(self) -> None:
        """Take in how the starts went that have ended."""
        for name, (start, asked_at, future) in list(self._running.items()):
            if not future.done():
                continue
            outcome = future.result()
            now = self._clock()
            if outcome.result is Result.READY and not self._note_ready(start, asked_at, outcome):
                continue
            del self._running[name]
            self.metrics.starts.labels(outcome.result.value).inc()
            if outcome.result is Result.FAILED:
                log.warning(
                    "%s: the server of %s did not start: %s",
                    _class_words(start.key),
                    name,
                    outcome.words,
                )
                count_failure(self.memory, start.key, name, outcome.words, now)
            elif outcome.result is Result.BUSY:
                log.info("the hub is busy: %s", outcome.words)
                # It was not tried.
                self.memory.tries[start.key][name] -= 1
                count_busy(self.memory, outcome.retry_seconds, now)

    def _note_ready(self, start: Start, asked_at: float, outcome: Outcome) -> bool:
        """Keep when a server was first ready; False: the hub can't be asked about it just now."""
        try:
            user = self._hub.user(start.name)
        except HubError:
            # A server whose time isn't known is taken for a used one: it is asked for again.
            return self._clock() - outcome.at > _MOST_BACKOFF_SECONDS
        server = user.server if user else None
        if server is not None and server.started is not None and server.mark is not None:
            seconds = outcome.at - asked_at
            count_ready(self.memory, start.name, server.started, outcome.at, seconds)
        return True

    # What is said

    def _tell(self, classes: Sequence[SeatedClass], users: Mapping[str, HubUser]) -> None:
        """Say what became of the people of each class, when it changed."""
        totals: Counter[str] = Counter()
        for seated in classes:
            counts = self._counts(seated, users)
            totals += counts
            key = seated.key
            skipped = self.memory.skipped.get(key, {})
            text = f"{_class_words(key)}: {len(seated.names)} listed, {seated.people} booked, "
            text += ", ".join(f"{count} {state}" for state, count in counts.items()) or "nobody yet"
            if skipped:
                name, why = next(iter(skipped.items()))
                text += f" (skipped: {_some(sorted(skipped))}; {name}: {why})"
            self._say(f"class {key}", text)
        current = {f"class {seated.key}" for seated in classes}
        for what in [what for what in self._said if what.startswith("class ")]:
            if what not in current:
                del self._said[what]
        for state in ("seated", "starting", "came", "by themselves", "skipped"):
            self.metrics.people.labels(state).set(totals[state])

    def _counts(self, seated: SeatedClass, users: Mapping[str, HubUser]) -> Counter[str]:
        counts: Counter[str] = Counter()
        skipped = self.memory.skipped.get(seated.key, {})
        for name in seated.names:
            user = users.get(name)
            server = user.server if user else None
            if server is None:
                state = "skipped" if name in skipped else ""
            elif server.mark is None or server.started is None:
                state = "by themselves"
            elif (name, server.started) in self.memory.used:
                state = "came"
            else:
                state = "seated" if server.is_ready else "starting"
            if state:
                counts[state] += 1
        return counts

    def _say(self, what: str, text: str) -> None:
        """Log a text when it differs from what was said of the same before; "": nothing."""
        if self._said.get(what, "") == text:
            return
        if text:
            self._said[what] = text
            log.info("%s", text)
        else:
            del self._said[what]

    def _save(self) -> None:
        if self._state_path is None:
            return
        text = stored.dump(self.memory)
        if text == self._saved:
            return
        try:
            stored.save(self._state_path, text)
        except OSError as error:
            self._say("state", f"{self._state_path}: can't be written ({error.strerror})")
            return
        self._saved = text


def _limits_of(settings: SeatingSettings, times: SeatingTimes) -> Limits:
    return Limits(settings.concurrent_spawn_limit, settings.active_server_limit, times.grace)


def _class_words(key: ClassKey) -> str:
    return f"{key.booking} at {datetime.fromtimestamp(key.start, UTC):%Y-%m-%d %H:%M} UTC"


def _some(names: Sequence[str]) -> str:
    """A list of names, of which it shows three."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
