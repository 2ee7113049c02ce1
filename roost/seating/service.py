"""Seat people: look at the hub, decide, ask it, and keep what was seen."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from roost.seating import memory_file
from roost.seating.bookings import BookingFile
from roost.seating.hub import AnswerError, Hub, HubError, RefusedConnectionError
from roost.seating.listed import ListedPeople, some_names
from roost.seating.memory import Memory, ServerKey
from roost.seating.metrics import SeatingMetrics
from roost.seating.observing import LOOK_SECONDS, View, forget, observe
from roost.seating.pace import MOST_FAILED_SPAWNS
from roost.seating.people import ClassKey, HubUser
from roost.seating.plan import LATE_SECONDS, Limits, SeatedClass, Stop, may_stop, plan_seating
from roost.seating.settings import ReleaseFile, SeatingSettings
from roost.seating.starts import Looks, Starts, class_words
from roost.seating.status import Status
from roost.seating.stops import Stops
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
        metrics: SeatingMetrics,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._hub = hub
        self._release = release
        self._bookings = bookings
        self._times = times
        self._state_path = state_path
        self._clock = clock
        self.metrics = metrics
        self._settings = release.settings
        self.limits = _limits_of(self._settings, times)
        self.memory: Memory = memory_file.load(state_path)
        self._saved = ""
        self._status = Status()
        self._people = ListedPeople(hub, self._status.say)
        self._starts = Starts(hub, self.memory, self.metrics, clock)
        self._stops = Stops(self._stop, self._status, clock)
        self._failures = 0
        self._turned_at = time.monotonic()
        # The last look at the hub, in words; "": it went well.
        self.trouble = ""
        self._has_looked = False
        self._looks = Looks()
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
        lines = [self.trouble or "the hub answers", *self._status.shown()]
        return self._has_looked and not self.trouble, "\n".join(lines) + "\n"

    def run(self, stop: threading.Event) -> None:
        """Turn until `stop`."""
        while not stop.is_set():
            stop.wait(self.turn())
        self._starts.end()
        self._stops.end()
        self._save()

    def turn(self) -> float:
        """Look once, decide and act; seconds until the next turn. Raises nothing of the hub's."""
        self._turned_at = time.monotonic()
        now = self._clock()
        self._starts.collect(self._looks)
        try:
            wait = self._seat(now)
        except HubError as error:
            self.metrics.hub_errors.inc()
            if _says_that_no_hub_is_there(error):
                self._starts.doubt_failures()
            # While nobody listens, no server becomes ready and nobody opens one: nothing was
            # missed, as after a look. A hub that answers with an error may go on starting unseen.
            nobody_listens = isinstance(error, RefusedConnectionError)
            if nobody_listens and now - self._looks.at <= LOOK_SECONDS:
                self._looks = self._looks._replace(at=now)
            if str(error) != self.trouble:
                # `roost doctor` looks for these words: `roost/doctor/checks/seating.py`.
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
        self._settings = self._release.read_again()
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
        self._starts.count_failures()
        in_flight = frozenset(self._starts.running)
        view = View(
            now=self._clock(),
            users=users,
            in_flight=in_flight,
            looked_at=self._looks.at,
            seen_at=self._looks.answered_at,
        )
        # The view has the looks before this one.
        self._looks = Looks(at=now, answered_at=now)
        observe(view, self.memory)
        forget(view, self.memory)
        plan = plan_seating(view, classes, self.memory, self.limits)
        for start in plan.starts:
            self._starts.start(start, now)
        self._tell(classes, users)
        are_all_stopped = self._stops.stop_all(plan.stops)
        if starting or self._starts.running or not are_all_stopped:
            return _BUSY_SECONDS
        has_marked = any(user.server and user.server.mark for user in users.values())
        usual = _GRACE_SECONDS if has_marked or classes else _IDLE_SECONDS
        return min(usual, self._times.grace)

    # What is booked, and who is there

    def _current_classes(self, now: float, event: Event, seated: Seated) -> Iterator[SeatedClass]:
        """Yield the occurrences of a booking for which people are seated now, or unused servers
        kept. Raises HubError.
        """
        # Nobody is started once the grace is over: the server would be stopped at once.
        late = min(LATE_SECONDS, self._times.grace)
        # A grace may last longer than the time between two occurrences: then both count.
        in_grace = first_start_after(event, int(now - self._times.grace))
        begun = first_start_after(event, int(now - late))
        following = first_start_after(event, int(now))
        starts = {in_grace, begun, following}
        start_seconds = self.memory.pace.usual_start_seconds(self._times.start)
        limit = self.limits.concurrent_spawn_limit
        ahead = seating_seconds(event.people, limit, start_seconds)
        options = {"profile": seated.profile} if seated.profile else {}
        for start in sorted(
            start for start in starts if start is not None and now >= start - ahead
        ):
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
        log.info("stopped the server of %s: not used for %s", stop.name, class_words(stop.key))

    # What is said

    def _tell(self, classes: Sequence[SeatedClass], users: Mapping[str, HubUser]) -> None:
        """Say what became of the people of each class, when it changed."""
        totals: Counter[str] = Counter()
        for seated in classes:
            counts = self._counts(seated, users)
            totals += counts
            key = seated.key
            skipped = self.memory.skipped.get(key, {})
            public = f"{class_words(key)}: {len(seated.names)} listed, {seated.people} booked, "
            states = ", ".join(f"{count} {state}" for state, count in counts.items())
            public += states or "nobody yet"
            for_log = public
            if skipped:
                name, why = next(iter(skipped.items()))
                for_log += f" (skipped: {some_names(sorted(skipped))}; {name}: {why})"
            self._status.say(f"class {key}", for_log, shown=public)
        is_stuck = bool(classes) and self.memory.pace.failed_spawns >= MOST_FAILED_SPAWNS
        failures = ""
        if is_stuck:
            failures = (
                f"{MOST_FAILED_SPAWNS} starts in a row failed: nobody is seated until somebody's"
                " start succeeds"
            )
        self._status.say("failures", failures)
        self._status.drop_others("class ", {f"class {seated.key}" for seated in classes})
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

    def _save(self) -> None:
        if self._state_path is None:
            return
        text = memory_file.dump(self.memory)
        if text == self._saved:
            return
        try:
            memory_file.save(self._state_path, text)
        except OSError as error:
            self._status.say("state", f"{self._state_path}: can't be written ({error.strerror})")
            return
        self._saved = text


def _says_that_no_hub_is_there(error: HubError) -> bool:
    """Whether nobody listens at the hub's address, or a proxy answers that nobody does."""
    if isinstance(error, AnswerError):
        return error.status in (502, 503, 504)
    return isinstance(error, RefusedConnectionError)


def _limits_of(settings: SeatingSettings, times: SeatingTimes) -> Limits:
    return Limits(settings.concurrent_spawn_limit, settings.active_server_limit, times.grace)
