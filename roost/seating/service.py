"""Seat people: look at the hub, decide, ask it, and keep what was seen."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from roost.seating import memory_file
from roost.seating.bookings import BookingFile, ReleaseFile, SeatingSettings
from roost.seating.hub import AnswerError, Hub, HubError, Outcome, RefusedConnectionError, Result
from roost.seating.listed import ListedPeople, some_names
from roost.seating.memory import Memory, ServerKey
from roost.seating.metrics import SeatingMetrics
from roost.seating.observing import LOOK_SECONDS, View, forget, observe
from roost.seating.pace import MOST_FAILED_SPAWNS
from roost.seating.people import ClassKey, HubUser
from roost.seating.plan import (
    LATE_SECONDS,
    Limits,
    SeatedClass,
    Start,
    Stop,
    may_stop,
    plan_seating,
)
from roost_core.release.bookings import Event, Seated, first_start_after
from roost_core.release.seating_pace import seating_seconds

log = logging.getLogger(__name__)

# Between two looks at the hub: while servers are started, while a class's grace lasts, and else.
_BUSY_SECONDS: Final = 1.0
_GRACE_SECONDS: Final = 30.0
_IDLE_SECONDS: Final = 60.0
# After a look that failed: twice as long each time.
_MOST_BACKOFF_SECONDS: Final = 60.0
_MOST_BUSY_BACKOFF_SECONDS: Final = 4.0
# The loop is alive as long as its last turn began so recently.
_ALIVE_SECONDS: Final = 300.0
_MOST_THREADS: Final = 128
# Servers that are stopped at once. The hub answers a stop when the server is gone, or after ten
# seconds: one after the other, a hundred would take minutes.
_STOPS_AT_ONCE: Final = 8
# After so many unanswered stops, the rest waits for the next turn: each may take as long as a
# request does.
_MOST_STOPS_UNANSWERED: Final = 3
# After so long, it does too: people of another class may have to be seated meanwhile.
_STOPPING_SECONDS: Final = 20.0


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


class _Said(NamedTuple):
    """What was said last of one matter."""

    logged: str
    # Without users' names: /readyz shows it to anybody.
    shown: str


@dataclass(frozen=True, slots=True)
class SeatingTimes:
    """What the options say of times, in seconds."""

    grace: float
    # The seconds of one start, until some were seen.
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
        self.metrics = metrics or SeatingMetrics(Result)
        self._settings = release.settings
        self.limits = _limits_of(self._settings, times)
        self.memory: Memory = memory_file.load(state_path)
        self._saved = ""
        self._running: dict[str, _RunningStart] = {}
        # Who was said to be ready by a hub that could not be asked afterwards.
        self._unconfirmed: set[str] = set()
        # Starts that the hub said failed, by name, until the next look at it. A hub that is stopped
        # fails the starts that it has in hand: then nobody's server failed.
        self._failed: dict[str, _FailedStart] = {}
        self._pool = ThreadPoolExecutor(_MOST_THREADS, "start")
        # Threads of their own: starts keep theirs until servers answer.
        self._stop_pool = ThreadPoolExecutor(_STOPS_AT_ONCE, "stop")
        self._people = ListedPeople(hub, self._say)
        # By what it is about.
        self._said: dict[str, _Said] = {}
        # Whose server the hub didn't stop, and when it was asked last; Unix time.
        self._not_stopped: dict[str, float] = {}
        self._failures = 0
        self._turned_at = time.monotonic()
        # The last look at the hub, in words; "": it went well.
        self.trouble = ""
        self._has_looked = False
        # When the last look began at which the hub told all, or nobody listened there. Unix time.
        self._looked_at = 0.0
        # When the last look began at which the hub told all. Unix time.
        self._seen_at = 0.0
        # Whether people are being seated, by the last look that the hub answered.
        self._is_starting = False

    @property
    def is_alive(self) -> bool:
        """Whether the loop turns."""
        return time.monotonic() - self._turned_at < _ALIVE_SECONDS

    def readiness(self) -> tuple[bool, str]:
        """Whether the hub answers, and what is going on, in words that name no user: anybody may
        read them.
        """
        # A copy: another thread asks this.
        shown = [said.shown for said in list(self._said.values())]
        lines = [self.trouble or "the hub answers", *shown]
        return self._has_looked and not self.trouble, "\n".join(lines) + "\n"

    def run(self, stop: threading.Event) -> None:
        """Turn until `stop`."""
        while not stop.is_set():
            stop.wait(self.turn())
        # Starts go on at the hub.
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._stop_pool.shutdown(wait=False, cancel_futures=True)
        self._save()

    def turn(self) -> float:
        """Look once, decide and act; seconds until the next turn. Raises nothing of the hub's."""
        self._turned_at = time.monotonic()
        now = self._clock()
        self._collect()
        try:
            wait = self._seat(now)
        except HubError as error:
            self.metrics.hub_errors.inc()
            if _says_that_no_hub_is_there(error):
                self._doubt_failures()
            # Where nobody listens, no server gets ready and nobody opens one: that counts as a
            # look. At a hub that answers with an error, both may happen unseen.
            if isinstance(error, RefusedConnectionError) and now - self._looked_at <= LOOK_SECONDS:
                self._looked_at = now
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
        events = list(self._settings.booked)
        if self._settings.config_maps:
            events += self._bookings.events(self._settings.limits)
        classes = [
            seated
            for event in events
            if event.seated is not None
            for seated in self._current_classes(now, event, event.seated)
        ]
        starting = [seated for seated in classes if now < seated.key.start + LATE_SECONDS]
        self._is_starting = bool(starting)
        if not starting:
            self.memory.pace.begin_anew()
        users = self._look(now, classes)
        self._count_failures()
        in_flight = frozenset(self._running)
        view = View(self._clock(), users, in_flight, self._looked_at, self._seen_at)
        observe(view, self.memory)
        self._looked_at = now
        self._seen_at = now
        forget(view, self.memory)
        plan = plan_seating(view, classes, self.memory, self.limits)
        for start in plan.starts:
            self._start(start, now)
        self._tell(classes, users)
        are_all_stopped = self._stop_all(plan.stops)
        if starting or self._running or not are_all_stopped:
            return _BUSY_SECONDS
        has_marked = any(user.server and user.server.mark for user in users.values())
        usual = _GRACE_SECONDS if has_marked or classes else _IDLE_SECONDS
        return min(usual, self._times.grace)

    # What is booked, and who is there

    def _current_classes(self, now: float, event: Event, seated: Seated) -> Iterator[SeatedClass]:
        """Yield the occurrences of a booking for which people are seated now, or unused servers
        kept. Raises HubError.
        """
        # A grace may last longer than the time between two occurrences: then both count. Nobody is
        # started once the grace is over: the server would be stopped at once.
        late = min(LATE_SECONDS, self._times.grace)
        with_grace = first_start_after(event, int(now - self._times.grace))
        just_begun = first_start_after(event, int(now - late))
        following = first_start_after(event, int(now))
        found = {with_grace, just_begun, following}
        start_seconds = self.memory.pace.usual_start_seconds(self._times.start)
        limit = self.limits.concurrent_spawn_limit
        ahead = seating_seconds(event.people, limit, start_seconds)
        options = {"profile": seated.profile} if seated.profile else {}
        for start in sorted(start for start in found if start is not None and now >= start - ahead):
            names = self._people.of_booking(now, event.name, seated, self.memory.came)
            key = ClassKey(event.name, start)
            yield SeatedClass(key, event.people, names, start - ahead, options)

    def _look(self, now: float, classes: Sequence[SeatedClass]) -> Mapping[str, HubUser]:
        """All users who count now: who has a server is read anew."""
        active = {user.name: user for user in self._hub.users("active")}
        if not classes:
            return active
        idle = {
            name: HubUser(name, user.last_activity, shows_servers=user.shows_servers)
            for name, user in self._people.everyone(now).items()
        }
        return {**idle, **active}

    # What is done

    def _start(self, start: Start, now: float) -> None:
        self.memory.note_try(start.key, start.name)
        future = self._pool.submit(self._hub.start, start.name, start.options)
        self._running[start.name] = _RunningStart(start, now, future)

    def _stop_all(self, stops: Sequence[Stop]) -> bool:
        """Stop servers: one that can't be stopped keeps none of the others. False: some are left
        for the next turn. Raises HubError.
        """
        wanted = {stop.name for stop in stops}
        failed = {name: at for name, at in self._not_stopped.items() if name in wanted}
        words: dict[str, str] = {}
        unanswered: list[HubError] = []
        # Servers whose stop failed come last, the longest ago first.
        left = sorted(stops, key=lambda stop: failed.get(stop.name, 0.0))
        until = time.monotonic() + _STOPPING_SECONDS
        while left:
            batch, left = left[:_STOPS_AT_ONCE], left[_STOPS_AT_ONCE:]
            asked = [(stop.name, self._stop_pool.submit(self._stop, stop)) for stop in batch]
            for name, future in asked:
                try:
                    future.result()
                except HubError as error:
                    failed[name] = self._clock()
                    words[name] = str(error)
                    if not isinstance(error, AnswerError):
                        unanswered.append(error)
                else:
                    failed.pop(name, None)
            if len(unanswered) >= _MOST_STOPS_UNANSWERED or time.monotonic() >= until:
                break
        self._not_stopped = failed
        text = ""
        if words:
            name, why = min(words.items())
            text = f"the servers of {some_names(sorted(words))} could not be stopped; {name}: {why}"
        self._say(
            "stops", text, f"servers that could not be stopped: {len(words)}; the log says whose"
        )
        if unanswered:
            raise unanswered[-1]
        return not left

    def _stop(self, stop: Stop) -> None:
        """Stop a server, after one more look at it. Raises HubError."""
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
            try:
                outcome = future.result()
            except Exception as error:  # noqa: BLE001 - one start's fault ends no other's
                outcome = Outcome(Result.UNKNOWN, f"asking for it failed ({type(error).__name__})")
            if outcome.result is Result.READY and not self._note_ready(start, asked_at, outcome):
                continue
            del self._running[name]
            self._unconfirmed.discard(name)
            if outcome.result is Result.FAILED:
                self._failed[name] = _FailedStart(start, outcome)
                if outcome.is_refusal:
                    self._count_failure(name)
                continue
            self.metrics.starts.labels(outcome.result.value).inc()
            if outcome.result is Result.UNKNOWN:
                self._note_unknown(name, outcome)
            elif outcome.result is Result.BUSY:
                log.info("the hub is busy: %s", outcome.words)
                self.memory.note_busy(start.key, name, outcome.retry_seconds, self._clock())

    def _note_unknown(self, name: str, outcome: Outcome) -> None:
        log.info("whether the server of %s starts isn't known: %s", name, outcome.words)
        self.memory.ended[name] = self._clock()

    def _count_failures(self) -> None:
        """Count the starts that the hub said failed: it answers, so it wasn't its end that failed
        them.
        """
        for name in list(self._failed):
            self._count_failure(name)

    def _count_failure(self, name: str) -> None:
        start, outcome = self._failed.pop(name)
        self.metrics.starts.labels(Result.FAILED.value).inc()
        log.warning(
            "%s: the server of %s did not start: %s", _class_words(start.key), name, outcome.words
        )
        now = self._clock()
        if outcome.is_outside:
            self.memory.skip(start.key, name, outcome.words, now)
            return
        is_refusal = outcome.is_refusal
        self.memory.note_failure(start.key, name, outcome.words, now, is_refusal=is_refusal)

    def _doubt_failures(self) -> None:
        """The hub went away before it answered a look: nothing is known of these starts."""
        for name, failed in self._failed.items():
            self.metrics.starts.labels(Result.UNKNOWN.value).inc()
            self._note_unknown(name, failed.outcome)
        self._failed.clear()

    def _note_ready(self, start: Start, asked_at: float, outcome: Outcome) -> bool:
        """Keep when a server was first ready; False: the hub can't be asked about it just now."""
        try:
            user = self._hub.user(start.name)
        except HubError:
            # A server whose time isn't known is taken for a used one. So it is asked for again,
            # however long the hub is away, unless it answers looks meanwhile.
            self._unconfirmed.add(start.name)
            return self._seen_at - outcome.at > _MOST_BACKOFF_SECONDS
        server = user.server if user else None
        is_doubtful = start.name in self._unconfirmed
        if server is None or server.started is None or server.mark is None:
            return True
        # A hub that is stopped calls a server ready whose start it breaks off. The next hub gives
        # the route. So the look that finds it ready tells when it was, if no look was missed.
        is_left_to_look = is_doubtful and self._clock() - self._looked_at <= LOOK_SECONDS
        if not is_left_to_look:
            key = ServerKey(start.name, server.started)
            self.memory.note_ready(key, outcome.at, outcome.at - asked_at)
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
            logged = text
            if skipped:
                name, why = next(iter(skipped.items()))
                logged += f" (skipped: {some_names(sorted(skipped))}; {name}: {why})"
            self._say(f"class {key}", logged, text)
        is_stuck = bool(classes) and self.memory.pace.failed_spawns >= MOST_FAILED_SPAWNS
        failures = ""
        if is_stuck:
            failures = (
                f"{MOST_FAILED_SPAWNS} starts in a row failed: nobody is seated until somebody's"
                " start succeeds"
            )
        self._say("failures", failures)
        current = {f"class {seated.key}" for seated in classes}
        for what in [what for what in self._said if what.startswith("class ")]:
            if what not in current:
                del self._said[what]
        for state in ("seated", "starting", "came", "by themselves", "skipped"):
            self.metrics.people.labels(state).set(totals[state])

    def _counts(self, seated: SeatedClass, users: Mapping[str, HubUser]) -> Counter[str]:
        """How many of a class's people are in each state; who has none isn't counted."""
        came = self.memory.who_came(seated.key)
        states = [self._state_of(name, seated.key, users.get(name), came) for name in seated.names]
        return Counter(state for state in states if state)

    def _state_of(self, name: str, key: ClassKey, user: HubUser | None, came: set[str]) -> str:
        """What became of a listed person, as in the metric of people; "": nothing yet."""
        server = user.server if user else None
        if user is None or server is None:
            is_outside = user is not None and not user.shows_servers
            if is_outside or name in self.memory.skipped.get(key, {}):
                return "skipped"
            return "came" if name in came else ""
        if server.mark is None or server.started is None:
            return "by themselves"
        if not self.memory.is_of_its_request(name, server.mark, server.started):
            return "by themselves"
        if ServerKey(name, server.started) in self.memory.used:
            return "came"
        return "seated" if server.is_ready else "starting"

    def _say(self, what: str, text: str, shown: str = "") -> None:
        """Log a text when it differs from what was said of the same before; "": nothing.

        shown: what /readyz says in its place, without users' names.
        """
        before = self._said.get(what)
        if not text:
            self._said.pop(what, None)
            return
        self._said[what] = _Said(text, shown or text)
        if before is None or before.logged != text:
            log.info("%s", text)

    def _save(self) -> None:
        if self._state_path is None:
            return
        text = memory_file.dump(self.memory)
        if text == self._saved:
            return
        try:
            memory_file.save(self._state_path, text)
        except OSError as error:
            self._say("state", f"{self._state_path}: can't be written ({error.strerror})")
            return
        self._saved = text


def _says_that_no_hub_is_there(error: HubError) -> bool:
    """Whether nobody listens at the hub's address, or a proxy answers that nobody does."""
    if isinstance(error, AnswerError):
        return error.status in (502, 503, 504)
    return isinstance(error, RefusedConnectionError)


def _limits_of(settings: SeatingSettings, times: SeatingTimes) -> Limits:
    return Limits(settings.concurrent_spawn_limit, settings.active_server_limit, times.grace)


def _class_words(key: ClassKey) -> str:
    return f"{key.booking} at {datetime.fromtimestamp(key.start, UTC):%Y-%m-%d %H:%M} UTC"
