"""Show the progress of a sweep: a bar with the time left in a terminal, otherwise a line now and then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console

    from roost_lab.simulator.sweep.run import ReplayEnd

LINE_EVERY_SECONDS: Final = 10.0


class ProgressDisplay:
    """A context manager, and the `report` of a sweep. replays: how many different ones."""

    def __init__(self, console: Console, replays: int) -> None:
        self._console = console
        self.replays = replays
        self.done = 0
        self._shown_at = time.monotonic()
        columns = (TextColumn("replays"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        left = (TextColumn("left"), TimeRemainingColumn())
        self._bar = Progress(*columns, *left, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=replays)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, _end: ReplayEnd) -> None:
        """Count a replay that ended, and show the progress."""
        self.done += 1
        self._bar.advance(self._task)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._shown_at >= LINE_EVERY_SECONDS:
            self._shown_at = now
            self._console.print(f"{self.done} of {self.replays} replays", highlight=False, soft_wrap=True)
