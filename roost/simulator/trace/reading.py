"""Open a launch trace of any kind, in one or many files, as attempts in order of time.

Memory holds the sorting window and one rounded time of each file being read, whatever the length of the trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import orjson

from roost.recorder.answers.sniffer_log import SnifferReport
from roost.simulator.chance import Chance
from roost.simulator.trace import archive as trace_archive
from roost.simulator.trace import recorder as trace_recorder
from roost.simulator.trace import sniffer as trace_sniffer
from roost.simulator.trace.attempt import Attempt
from roost.simulator.trace.counts import InputCounts, TraceError, show
from roost.simulator.trace.files import MOST_LINE_BYTES, STDIN, TOO_LONG, Breakage, name_of, open_bytes, read_lines
from roost.simulator.trace.order import LATE, Spreader, in_order
from roost.simulator.trace.records import OddLine, Record, read_stamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from roost.simulator.trace.records import LaunchDetails

# So late a line may be behind a later one and still be played at its time.
DEFAULT_SORT_WINDOW_SECONDS: Final = 600.0
_MOST_CACHED: Final = 50_000
_SNIFFER: Final = "scheduler-sniffer"
_SNIFFED: Final = ("Pod", "Node")
_MOST_BRACKETS: Final = 200
# So many lines in a row that can't be used: the rest is no trace either.
MOST_USELESS_LINES: Final = 1_000_000
# (moment, line, launch); the line is below 1 where no single one made it.
Placed: TypeAlias = "tuple[float, int, LaunchDetails]"


def open_trace(
    paths: Sequence[Path],
    *,
    seed: int,
    counts: InputCounts,
    sort_window_seconds: float = DEFAULT_SORT_WINDOW_SECONDS,
    strict: bool = False,
) -> Iterator[Attempt]:
    """Attempts of all files in order of time; `-` is standard input; gzip is told by its content.

    Times rounded to the minute or second are spread inside it, from the seed. `counts` is filled in on the way and is
    complete when the iterator ends. strict: the first line that would be skipped is an error.
    Raises TraceError at once for files that can't be opened, and later where nothing usable was found.
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
        yield Attempt(number, moment, *launch[:6])
        number += 1
        counts.attempts = number
    if not number:
        raise _nothing(counts, paths)
    late = counts.skipped.get(LATE)
    if late is not None and late.number > counts.used:
        # A trace from the newest to the oldest, say: what was played says nothing of it.
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
    """All files in order of time. A file is opened when its first time comes, so that years of days can be named."""
    first = [reader.peek(path) for path in paths]
    waiting = sorted(range(len(paths)), key=lambda index: (first[index], index), reverse=True)
    # Of each open file the next launch; the place tells equal times apart.
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
            # Its file began long before the first time in it.
            reader.skip(LATE, name_of(paths[place]), max(head[1], 0))
        following = next(placed, None)
        if following is None:
            heappop(heap)
        else:
            heapreplace(heap, (following[0], place, following, placed))


class Skip(Protocol):
    """Takes why a line was passed over, its file and number, and how many such there are."""

    def __call__(self, reason: str, file: str, line: int, number: int = 1) -> None:
        """Count them; or raise TraceError."""


@dataclass(slots=True)
class _Reader:
    """What all files of one trace share."""

    counts: InputCounts
    window_seconds: float
    spreader: Spreader
    strict: bool

    def placed(self, path: Path) -> Iterator[Placed]:
        """(moment, line, launch) of one file, in order of time."""
        file = name_of(path)

        def skip(record: Record, reason: str) -> None:
            self.skip(reason, file, record.line)

        return self.spreader.spread(in_order(_records(path, self.counts, self.skip), self.window_seconds, skip))

    def skip(self, reason: str, file: str, line: int, number: int = 1) -> None:
        """Count lines as passed over, or end it all."""
        if self.strict:
            raise TraceError(file, line, reason, fix="Mend the line, or read without being strict.")
        self.counts.skip(reason, file, line, number)

    def peek(self, path: Path) -> float:
        """The time of a file's first launch; -inf when that can't be told without using the file up."""
        if path == STDIN or not path.is_file():
            return float("-inf")
        counts = InputCounts()
        return next((record.stamp for record in _records(path, counts, counts.skip)), float("-inf"))


def _records(path: Path, counts: InputCounts, skip: Skip) -> Iterator[Record]:
    """One file's launches as they stand in it."""
    file = name_of(path)
    reader = _LineReader(file, counts)
    with open_bytes(path) as stream:
        batches = read_lines(path, stream)
        number = last_used = 0
        try:
            for batch in batches:
                counts.lines += len(batch)
                for index, text in enumerate(batch):
                    number += 1
                    try:
                        yield reader.read(text, number)
                        last_used = number
                    except OddLine as odd:
                        skip(str(odd), file, number)
                        if number - last_used > MOST_USELESS_LINES:
                            found = f"{MOST_USELESS_LINES} lines in a row that are no launches; the last: {odd}"
                            raise TraceError(file, number, found) from None
                    except _SnifferFile:
                        yield from _sniffed(file, batch[index:], batches, number, counts=counts, skip=skip)
                        return
        except Breakage as breakage:
            # What follows can't be counted: it is one line more.
            counts.lines += 1
            skip(str(breakage), file, number + 1)


class _SnifferFile(Exception):  # noqa: N818 - the file is of another kind, which is no error
    """The first known line is scheduler-sniffer's."""


class _LineReader:
    """Tells the formats of one file's lines apart and reads them."""

    def __init__(self, file: str, counts: InputCounts) -> None:
        self._file, self._counts = file, counts
        self._known = False
        self._text: object = None
        self._stamp, self._resolution = 0.0, 0
        self._launches: dict[tuple[str, str, str], LaunchDetails] = {}

    def read(self, text: bytes, number: int) -> Record:
        """Raises OddLine for a line that can't be used, _SnifferFile for another kind of file."""
        try:
            entry = orjson.loads(text)
        except orjson.JSONDecodeError:
            raise OddLine(_why_no_json(text)) from None
        if type(entry) is not dict:
            raise OddLine("no JSON object")
        schema, version = entry.get("schema"), entry.get("version")
        if schema == trace_archive.SCHEMA:
            launch = self._archive(entry, version, number)
        elif schema == trace_recorder.SCHEMA:
            self._check(entry, trace_recorder.FIELDS, schema, version, number)
            launch = trace_recorder.read_launch(entry)
        elif schema is None:
            if entry.get("object") in _SNIFFED and type(entry.get("name")) is str:
                if self._known:
                    raise OddLine("a line of scheduler-sniffer among launches: give it as a file of its own")
                raise _SnifferFile
            raise OddLine("no `schema`")
        else:
            raise OddLine(f"schema {show(schema)} isn't known")
        moment = entry.get("timestamp")
        if moment != self._text or type(moment) is not str:
            self._stamp, self._resolution = read_stamp(moment)
            self._text = moment
        if launch.notes:
            for note in launch.notes:
                self._counts.note(note, self._file, number)
        self._known = True
        return Record(self._stamp, number, self._resolution, launch)

    def _archive(self, entry: dict[str, Any], version: object, number: int) -> LaunchDetails:
        self._check(entry, trace_archive.FIELDS, trace_archive.SCHEMA, version, number)
        status = entry.get("status")
        if status != "success":
            if status != "failure":
                raise OddLine(f"`status` is {show(status)}, neither success nor failure")
            self._counts.note("`status` is failure: played all the same, somebody asked", self._file, number)
        provider, spec = entry.get("provider"), entry.get("spec")
        ref = entry.get("ref", "") if version in trace_archive.WITH_REF else ""
        if type(provider) is not str or type(spec) is not str or type(ref) is not str:
            return trace_archive.read_launch(provider, spec, ref)
        key = (provider, spec, ref)
        launch = self._launches.get(key)
        if launch is None:
            launch = trace_archive.read_launch(provider, spec, ref)
            if len(self._launches) >= _MOST_CACHED:
                self._launches.clear()
            self._launches[key] = launch
        return launch

    def _check(
        self,
        entry: dict[str, Any],
        fields: Mapping[int, frozenset[str]],
        schema: str,
        version: object,
        number: int,
    ) -> None:
        if type(version) is not int or version not in fields:
            raise OddLine(f"version {show(version)} of {schema} isn't known")
        if not entry.keys() <= fields[version]:
            for name in sorted(entry.keys() - fields[version]):
                self._counts.note(f"field {show(name)} isn't of version {version}: not used", self._file, number)
        key = f"{schema} {version}"
        formats = self._counts.formats
        formats[key] = formats.get(key, 0) + 1


def _why_no_json(text: bytes) -> str:
    if text == TOO_LONG:
        return f"longer than {MOST_LINE_BYTES} bytes"
    return "no JSON" if text.strip() else "empty"


def _sniffed(
    file: str, batch: list[bytes], batches: Iterator[list[bytes]], number: int, *, counts: InputCounts, skip: Skip
) -> Iterator[Record]:
    """The launches of a scheduler-sniffer log whose first line is `batch[0]`, the file's `number`th."""
    report = SnifferReport()
    broken: list[str] = []

    def lines() -> Iterator[str]:
        yield from map(_sniffer_text, batch)
        try:
            for more in batches:
                counts.lines += len(more)
                yield from map(_sniffer_text, more)
        except Breakage as breakage:
            broken.append(str(breakage))

    records, timeless = trace_sniffer.read_log(lines(), report)
    for reason, lines_skipped in report.skipped.items():
        skip(reason, file, number - 1 + report.first_skipped[reason], lines_skipped)
    if broken:
        counts.lines += 1
        skip(broken[0], file, number + report.lines)
    counts.used += report.lines - report.skipped.total()
    counts.formats[_SNIFFER] = counts.formats.get(_SNIFFER, 0) + report.lines
    if timeless:
        counts.note("pods without any time: not played", file, 0, timeless)
    yield from records


def _sniffer_text(text: bytes) -> str:
    # The standard library's JSON reader has no bound for depth but the interpreter's stack.
    if text.count(b"[") + text.count(b"{") > _MOST_BRACKETS:
        return "too deep"
    return text.decode(errors="replace")
