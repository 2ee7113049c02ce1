"""Open a launch trace, one or more files of any format, as attempts in order of time.

The steps of a trace, each in a module of its own:

1. files.py: a file's bytes, plain or gzip, become lines.
2. line_formats.py: each line becomes a launch. Its `schema` says whether
binderhub_launches.py or recorder.py reads it.
3. order.py: the launches of one file are sorted, and those with one rounded time are spread inside
it.
4. reading.py, here: the launches of all files are merged and numbered: Attempts (attempt.py).

What is skipped on the way is counted in InputCounts (counts.py). Memory holds the sorting window
and one rounded time of each open file, however long the trace is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Final, TypeAlias

from roost_lab.traces.attempt import Attempt
from roost_lab.traces.chance import Chance
from roost_lab.traces.counts import InputCounts, TraceError
from roost_lab.traces.files import read_lines
from roost_lab.traces.launch_line import LaunchDetails, LaunchLine, UnusableLine
from roost_lab.traces.line_formats import LineReader
from roost_lab.traces.order import LATE, Spreader, in_order

# A line may come so much later than its time and is still played in order.
DEFAULT_SORT_WINDOW_SECONDS: Final = 600.0
# After so many unusable lines in a row the file is refused.
MOST_USELESS_LINES: Final = 1_000_000
# (moment, line, launch; None: of a file that is still closed).
Placed: TypeAlias = "tuple[float, int, LaunchDetails | None]"


def open_trace(
    paths: Sequence[Path],
    *,
    seed: int,
    counts: InputCounts,
    sort_window_seconds: float = DEFAULT_SORT_WINDOW_SECONDS,
) -> Iterator[Attempt]:
    """Attempts of all files in order of time; gzip is recognised by its content.

    Times rounded to the minute or second are spread inside it, from the seed. `counts` is filled in
    on the way and complete when the iterator ends. Raises TraceError: at once for files that can't
    be opened, later for a trace without anything usable.
    """
    read_files: set[Path] = set()
    for path in paths:
        next(read_lines(path), None)
        if path.resolve() in read_files:
            raise TraceError(str(path), 0, "the file named twice", "each file once")
        read_files.add(path.resolve())
    spreader = Spreader(Chance(seed))

    def placed(path: Path) -> Iterator[Placed]:
        """The launches of one file, in order of time; before them, while it is closed, a time from
        which on they are.

        So a file is opened only when its time comes: a trace may have thousands.
        """

        def skip(launch: LaunchLine, reason: str) -> None:
            counts.skip(reason, str(path), launch.line)

        begin = float("-inf")
        if len(paths) > 1:
            # Two lines: a single one may have a wrong year.
            first = islice(_launches(path, InputCounts()), 2)
            stamps = [launch.stamp for launch in first]
            begin = min(stamps, default=begin) - sort_window_seconds
        yield begin, 0, None
        for entry in spreader.spread(in_order(_launches(path, counts), sort_window_seconds, skip)):
            moment, line, _ = entry
            if moment >= begin:
                yield entry
            else:
                counts.skip(LATE, str(path), line)

    # Lines of the same moment stay in the order of the files.
    launches = merge(*(placed(path) for path in paths), key=itemgetter(0))
    return _attempts(launches, paths, counts)


def _attempts(
    launches: Iterator[Placed], paths: Sequence[Path], counts: InputCounts
) -> Iterator[Attempt]:
    for moment, _, launch in launches:
        if launch is not None:
            counts.used += 1
            yield Attempt(counts.used - 1, moment, *launch[:7])
    if not counts.used:
        raise _nothing(counts, paths)
    late = counts.skipped.get(LATE)
    if late is not None and late.number > counts.used:
        # A trace may run from the newest to the oldest line: what was played doesn't represent it.
        found = f"{late.number} of {counts.lines} lines that come after later ones"
        fix = "Sort it: jq -sc 'sort_by(.timestamp)[]' FILE."
        raise TraceError(late.file, late.line, found, "lines in order of time", fix)


def _nothing(counts: InputCounts, paths: Sequence[Path]) -> TraceError:
    file = str(paths[0]) if len(paths) == 1 else f"{len(paths)} files from {paths[0]} on"
    if not counts.lines:
        return TraceError(file, 0, "an empty trace", fix="Name another file.")
    lines = "1 line" if counts.lines == 1 else f"{counts.lines} lines"
    if not counts.skipped:
        return TraceError(file, 0, f"no launch in {lines}")
    reason, tally = max(counts.skipped.items(), key=lambda item: item[1].number)
    share = ":" if tally.number == counts.lines else f"; {tally.number} of them:"
    found = f"no launch in {lines}{share} {reason}"
    return TraceError(tally.file, tally.line, found, fix="Name another file, or mend this one.")


def _launches(path: Path, counts: InputCounts) -> Iterator[LaunchLine]:
    """The launches of one file, in the order of its lines."""
    file = str(path)
    reader = LineReader(file, counts)
    last_used = 0
    for number, text in enumerate(read_lines(path), 1):
        counts.lines += 1
        try:
            launch = reader.read(text, number)
        except UnusableLine as reason:
            counts.skip(str(reason), file, number)
            if number - last_used > MOST_USELESS_LINES:
                found = (
                    f"{MOST_USELESS_LINES} lines in a row that are no launches; the last: {reason}"
                )
                raise TraceError(file, number, found) from None
            continue
        yield launch
        last_used = number
