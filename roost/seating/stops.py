"""Stop several servers at once. If a server can't be stopped, the others still are."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from roost.seating.hub import AnswerError, HubError
from roost.seating.listed import some_names
from roost.seating.plan import Stop
from roost.seating.status import Status

# Servers that are stopped at once. The hub answers a stop when the server is gone, or after ten
# seconds: one after the other, a hundred would take minutes.
_STOPS_AT_ONCE: Final = 8
# After so many unanswered stops, the other stops wait for the next turn: each may take as long as a
# request may.
_MOST_STOPS_UNANSWERED: Final = 3
# After this time, the other stops wait, too: people of another class may have to be seated.
_STOPPING_SECONDS: Final = 20.0


class Stops:
    """Stops servers, and remembers which couldn't be stopped."""

    def __init__(
        self, stop: Callable[[Stop], None], status: Status, clock: Callable[[], float]
    ) -> None:
        """stop: stops a server; called in other threads; raises HubError. clock: Unix time."""
        self._stop = stop
        self._status = status
        self._clock = clock
        # Stops don't share the threads of starts, which are busy until servers answer.
        self._pool = ThreadPoolExecutor(_STOPS_AT_ONCE, "stop")
        # When the hub was last asked in vain to stop a person's server, by name; Unix time.
        self._failed: dict[str, float] = {}

    def stop_all(self, stops: Sequence[Stop]) -> bool:
        """Stop servers; False: some are left for the next turn.

        Raises HubError if the hub didn't answer a stop, after all stops of this turn.
        """
        wanted = {stop.name for stop in stops}
        failed = {name: at for name, at in self._failed.items() if name in wanted}
        # Why servers couldn't be stopped in this turn, by the person's name.
        reasons: dict[str, str] = {}
        unanswered: list[HubError] = []
        # Servers whose stop failed come last, the longest ago first.
        left = sorted(stops, key=lambda stop: failed.get(stop.name, 0.0))
        until = time.monotonic() + _STOPPING_SECONDS
        while left:
            batch = left[:_STOPS_AT_ONCE]
            left = left[_STOPS_AT_ONCE:]
            running = [(stop.name, self._pool.submit(self._stop, stop)) for stop in batch]
            for name, future in running:
                try:
                    future.result()
                except HubError as error:
                    failed[name] = self._clock()
                    reasons[name] = str(error)
                    if not isinstance(error, AnswerError):
                        unanswered.append(error)
                else:
                    failed.pop(name, None)
            if len(unanswered) >= _MOST_STOPS_UNANSWERED or time.monotonic() >= until:
                break
        self._failed = failed
        text = ""
        if reasons:
            name, reason = min(reasons.items())
            names = some_names(sorted(reasons))
            text = f"the servers of {names} could not be stopped; {name}: {reason}"
        self._status.say(
            "stops", text, f"servers that could not be stopped: {len(reasons)}; the log says whose"
        )
        if unanswered:
            raise unanswered[-1]
        return not left

    def end(self) -> None:
        """Begin no more stops."""
        self._pool.shutdown(wait=False, cancel_futures=True)
