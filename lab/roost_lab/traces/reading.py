"""Open a launch trace, one or more files of any format, as attempts in order of time.

The steps of a trace, each in a module of its own:

1. files.py: a file's bytes, plain or gzip, become lines.
2. line_formats.py: each line becomes a launch. Its `schema` says whether archive.py or recorder.py reads it; sniffer.py
   reads files without schemas.
3. order.py: the launches of one file are sorted, and those with one rounded time are spread inside it.
4. reading.py, here: the launches of all files are merged and numbered: Attempts (attempt.py).

What is skipped on the way is counted in InputCounts (counts.py). Memory holds the sorting window and one rounded time
of each open file, however long the trace is.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Final, TypeAlias

from roost_lab.traces import sniffer
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.chance import Chance
from roost_lab.traces.counts import InputCounts, TraceError
from roost_lab.traces.files import STDIN, Breakage, name_of, open_bytes, read_lines
from roost_lab.traces.launch_line import UnusableLine
from roost_lab.traces.line_formats import LineReader
from roost_lab.traces.order import LATE, Spreader, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from roost_lab.traces.counts import Skip
    from roost_lab.traces.launch_line import LaunchDetails, LaunchLine

# A line may come so much later than its time and is still played in order.
DEFAULT_SORT_WINDOW_SECONDS: Final = 600.0
# After so many unusable lines in a row the file is refused.
MOST_USELESS_LINES: Final = 1_000_000
# (moment, line, launch); the line is below 1 where several lines made it.
Placed: TypeAlias = "tuple[float, int, LaunchDetails]"


def open_trace(
    paths: Sequence[Path],
    *,
    seed: int,
    counts: InputCounts,
    sort_window_seconds: float = DEFAULT_SORT_WINDOW_SECONDS,
    strict: bool = False,
) -> Iterator[Attempt]:
    """Attempts of all files in order of time; `-` is standard input; gzip is recognised by its content.

    Times rounded to the minute or second are spread inside it, from the seed. `counts` is filled in on the
    way and complete when the iterator ends. strict: the first line that would be skipped is an error.
    Raises TraceError: at once for files that can't be opened, later for a trace without anything usable.
    """
    if not paths:
        raise TraceError("the trace", 0, "no files", "one or more files, or - for standard input")
    seen: set[Path] = set()
    for path in paths:
        where = path if path == STDIN else path.resolve()
        if where in seen:
            raise TraceError(name_of(path), 0, "the file named twice", "each file once")
        seen.add(where)
    for path in paths:
        with open_bytes(path):
            pass
    chance = Chance(seed)
    reader = _Reader(counts, sort_window_seconds, Spreader(chance), strict=strict)
    return _attempts(reader, list(paths))


def read_launches(paths: Sequence[Path], counts: InputCounts) -> Iterator[LaunchLine]:
    """The launches of each file as stamped, in the order of a replay, one file after the other; fills `counts` in.

    Raises TraceError as `open_trace` does, but not for a trace without launches.
    """
    reader = _Reader(counts, DEFAULT_SORT_WINDOW_SECONDS, Spreader(Chance(0)), strict=False)
    for path in paths:
        yield from reader.sorted(path)


def _attempts(reader: _Reader, paths: list[Path]) -> Iterator[Attempt]:
    counts = reader.counts
    placed = _merged(reader, paths) if len(paths) > 1 else reader.placed(paths[0])
    number = 0
    for moment, line, launch in placed:
        if not number:
            counts.first_moment = moment
        counts.last_moment = moment
        if line > 0:
            counts.used += 1
        yield Attempt(number, moment, *launch[:7])
        number += 1
        counts.attempts = number
    if not number:
        raise _nothing(counts, paths)
    late = counts.skipped.get(LATE)
    if late is not None and late.number > counts.used:
        # Such as a trace from the newest to the oldest: what was played doesn't represent it.
        found = f"{late.number} of {counts.lines} lines that come after later ones"
        fix = "Sort it: jq -sc 'sort_by(.timestamp)[]' FILE."
        raise TraceError(late.file, late.line, found, "lines in order of time", fix)


def _nothing(counts: InputCounts, paths: list[Path]) -> TraceError:
    file = name_of(paths[0]) if len(paths) == 1 else f"{len(paths)} files from {name_of(paths[0])} on"
    if not counts.lines:
        return TraceError(file, 0, "an empty trace", fix="Name another file.")
    if not counts.skipped:
        return TraceError(file, 0, f"no launch in {counts.lines} lines")
    reason, tally = max(counts.skipped.items(), key=lambda item: item[1].number)
    found = f"no launch in {counts.lines} lines; {tally.number} of them: {reason}"
    return TraceError(tally.file, tally.line, found, fix="Name another file, or mend this one.")


def _merged(reader: _Reader, paths: list[Path]) -> Iterator[Placed]:
    """All files in order of time. A file is opened only when its first time comes: a trace may have thousands."""
    first = [reader.peek(path) for path in paths]
    waiting = sorted(range(len(paths)), key=lambda index: (first[index], index), reverse=True)
    # The next launch of each open file; the place breaks ties.
    heap: list[tuple[float, int, Placed, Iterator[Placed]]] = []
    last = float("-inf")
    while waiting or heap:
        while waiting and (not heap or first[waiting[-1]] - reader.window_seconds <= heap[0][0]):
            place = waiting.pop()
            placed = reader.placed(paths[place])
            head = next(placed, None)
            if head is not None:
                heappush(heap, (head[0], place, head, placed))
        if not heap:
            continue
        moment, place, head, placed = heap[0]
        if moment >= last:
            last = moment
            yield head
        else:
            # A later line of its file is older than the first one.
            reader.skip(LATE, name_of(paths[place]), max(head[1], 0))
        following = next(placed, None)
        if following is None:
            heappop(heap)
        else:
            heapreplace(heap, (following[0], place, following, placed))


@dataclass(slots=True)
class _Reader:
    """Reads the files of one trace."""

    counts: InputCounts
    window_seconds: float
    spreader: Spreader
    strict: bool

    def placed(self, path: Path) -> Iterator[Placed]:
        """(moment, line, launch) of one file, in order of time."""
        return self.spreader.spread(self.sorted(path))

    def sorted(self, path: Path) -> Iterator[LaunchLine]:
        """The launches of one file as stamped, in order of time."""
        file = name_of(path)

        def skip(launch: LaunchLine, reason: str) -> None:
            self.skip(reason, file, launch.line)

        return in_order(_launches(path, self.counts, self.skip), self.window_seconds, skip)

    def skip(self, reason: str, file: str, line: int, number: int = 1) -> None:
        """Count lines as skipped; when strict, raise TraceError."""
        if self.strict:
            raise TraceError(file, line, reason, fix="Mend the line, or read without being strict.")
        self.counts.skip(reason, file, line, number)

    def peek(self, path: Path) -> float:
        """The time of a file's first launch; -inf for a stream, which can be read only once."""
        if path == STDIN or not path.is_file():
            return float("-inf")
        counts = InputCounts()
        return next((launch.stamp for launch in _launches(path, counts, counts.skip)), float("-inf"))


def _launches(path: Path, counts: InputCounts, skip: Skip) -> Iterator[LaunchLine]:
    """The launches of one file, in the order of its lines."""
    file = name_of(path)
    reader = LineReader(file, counts)
    with open_bytes(path) as stream:
        batches = read_lines(path, stream)
        number = last_used = 0
        try:
            for batch in batches:
                counts.lines += len(batch)
                for index, text in enumerate(batch):
                    number += 1
                    try:
                        launch = reader.read(text, number)
                    except UnusableLine as reason:
                        skip(str(reason), file, number)
                        if number - last_used > MOST_USELESS_LINES:
                            found = f"{MOST_USELESS_LINES} lines in a row that are no launches; the last: {reason}"
                            raise TraceError(file, number, found) from None
                        continue
                    if launch is None:
                        yield from sniffer.read_file(file, batch[index:], batches, number, counts=counts, skip=skip)
                        return
                    yield launch
                    last_used = number
        except Breakage as breakage:
            # How many lines follow is unknown: they count as one.
            counts.lines += 1
            skip(str(breakage), file, number + 1)
