"""Tell how far a sweep is: a bar with the time left in a terminal, else a line now and then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as TimeLeft

from roost.pages.phrases import show_span
from roost.simulator.sweep.run import Progress as Moved
from roost.simulator.sweep.run import ReplayEnd

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rich.console import Console

    from roost.simulator.sweep.run import Event

LINE_EVERY_SECONDS: Final = 10.0
US: Final = 1_000_000


class Meter:
    """How much of a sweep is done, by attempts; results of earlier sweeps cost nothing and count for nothing."""

    def __init__(self, replays: int, attempts: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.replays = replays
        self.ended = 0
        self.kept = 0
        self._attempts = attempts
        self._clock = clock
        self._begin = clock()
        # Key -> attempts done, of replays under way.
        self._under_way: dict[str, int] = {}

    def note(self, event: Event) -> None:
        """Take in what happened."""
        if isinstance(event, Moved):
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
        """Attempts to be replayed in it."""
        return (self.replays - self.kept) * self._attempts

    def seconds_left(self) -> float | None:
        """As fast as until now; None when nothing is known yet."""
        done = self.done
        return (self._clock() - self._begin) / done * (self.total - done) if done else None


class Teller:
    """Use as a context manager and as `tell` of a sweep. replays: different ones."""

    def __init__(self, console: Console, replays: int, attempts: int) -> None:
        self._console = console
        self.meter = Meter(replays, attempts)
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._told_at = time.monotonic()
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
        """Take in what happened, and tell it."""
        meter = self.meter
        meter.note(event)
        replays = f"{meter.kept + meter.ended} of {meter.replays}"
        if self._bar is not None:
            self._bar.update(self._task, completed=meter.done, total=meter.total, replays=replays)
            return
        now = time.monotonic()
        if now - self._told_at >= LINE_EVERY_SECONDS:
            self._told_at = now
            left = meter.seconds_left()
            told = "" if left is None else f", about {show_span(round(left) * US)} left"
            self._console.print(f"{replays} replays{told}", highlight=False, soft_wrap=True)
