"""Show the progress of a sweep: a bar with the time left in a terminal, otherwise a line now and then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as TimeLeft

from roost_lab.pages.phrases import show_span
from roost_lab.simulator.sweep.run import ReplayEnd, ReplayProgress

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rich.console import Console

    from roost_lab.simulator.sweep.run import Event

LINE_EVERY_SECONDS: Final = 10.0
US: Final = 1_000_000


class Meter:
    """How much of a sweep is done, in attempts, without the results that an earlier sweep kept."""

    def __init__(self, replays: int, attempts: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.replays = replays
        self.ended = 0
        self.kept = 0
        self._attempts = attempts
        self._clock = clock
        self._begin = clock()
        # Key of a replay under way -> attempts done.
        self._under_way: dict[str, int] = {}

    def note(self, event: Event) -> None:
        """Count an event."""
        if isinstance(event, ReplayProgress):
            self._under_way[event.key] = min(event.attempts, self._attempts)
        elif isinstance(event, ReplayEnd):
            self._under_way.pop(event.key, None)
            if event.was_kept:
                self.kept += 1
                self._begin = self._clock()
            else:
                self.ended += 1

    @property
    def done(self) -> int:
        """Attempts replayed in this sweep."""
        return self.ended * self._attempts + sum(self._under_way.values())

    @property
    def total(self) -> int:
        """Attempts to replay in this sweep."""
        return (self.replays - self.kept) * self._attempts

    def seconds_left(self) -> float | None:
        """At the pace so far; None before the first progress."""
        done = self.done
        return (self._clock() - self._begin) / done * (self.total - done) if done else None


class ProgressDisplay:
    """A context manager, and the `report` of a sweep. replays: how many different ones."""

    def __init__(self, console: Console, replays: int, attempts: int) -> None:
        self._console = console
        self.meter = Meter(replays, attempts)
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._shown_at = time.monotonic()
        if console.is_terminal:
            self._bar = Progress(
                TextColumn("replays"),
                TextColumn("{task.fields[replays]}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("attempts"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeLeft(),
                console=console,
                transient=True,
            )
            self._task = self._bar.add_task("", total=self.meter.total, replays="")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Event) -> None:
        """Count an event and show the progress."""
        meter = self.meter
        meter.note(event)
        replays = f"{meter.kept + meter.ended} of {meter.replays}"
        if self._bar is not None:
            self._bar.update(self._task, completed=meter.done, total=meter.total, replays=replays)
            return
        now = time.monotonic()
        if now - self._shown_at >= LINE_EVERY_SECONDS:
            self._shown_at = now
            left = meter.seconds_left()
            ending = "" if left is None else f", about {show_span(round(left) * US)} left"
            self._console.print(f"{replays} replays{ending}", highlight=False, soft_wrap=True)
