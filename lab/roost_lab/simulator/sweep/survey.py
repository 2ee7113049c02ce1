"""Survey a trace before it is replayed: its fingerprint, length and skipped lines.

One pass; memory grows with distinct images.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from roost_lab.traces.counts import InputCounts, TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roost_lab.simulator.setup.assumptions import Assumptions
    from roost_lab.traces.attempt import Attempt

# Days of made-up launches when no trace is given.
USUAL_DAYS: Final = 10.0
# Each hub has a release of its own in a replay.
MOST_HUBS: Final = 100
DAY_SECONDS: Final = 86_400


@dataclass(frozen=True, slots=True)
class Trace:
    """Where attempts come from: files that every worker can read, or, without any, the synthetic generator."""

    paths: tuple[str, ...] = ()
    # Arguments of the generator, `days` among them; empty for files.
    made_up: Mapping[str, Any] = field(default_factory=dict)
    # Of the files' bytes, or of the generator's arguments.
    fingerprint: str = ""
    # Namespaces of the hubs that launches name, "" for those that name none; empty until it is surveyed.
    hubs: tuple[str, ...] = ()

    def open(self, seed: int, counts: InputCounts | None = None) -> Iterator[Attempt]:
        """Its attempts in order of time. Raises TraceError."""
        if not self.paths:
            from roost_lab.traces.synthetic import synthetic_attempts  # noqa: PLC0415 - only where no trace is given

            made_up: Iterator[Attempt] = synthetic_attempts(seed, **self.made_up)
            return made_up
        from roost_lab.traces.reading import open_trace  # noqa: PLC0415 - only where a trace is given

        if _fingerprint(self.paths) != self.fingerprint:
            raise TraceError(
                self.paths[0],
                0,
                "content that changed since the sweep began",
                "a file that does not change during a sweep",
                "Start again.",
            )
        return open_trace(
            [Path(path) for path in self.paths], seed=seed, counts=InputCounts() if counts is None else counts
        )

    def __str__(self) -> str:
        if self.paths:
            return ", ".join(Path(path).name for path in self.paths)
        return "made-up launches (" + ", ".join(f"{name} {value:g}" for name, value in self.made_up.items()) + ")"


def trace_of(paths: tuple[str, ...], days: float = USUAL_DAYS) -> Trace:
    """The trace in these files, or `days` of made-up launches. Raises TraceError for files that can't be read."""
    if not paths:
        made_up = {"days": days}
        return Trace((), made_up, f"synthetic {sha256(repr(made_up).encode()).hexdigest()[:16]}")
    if "-" in paths:
        raise TraceError(
            "-", 0, "standard input", "files, for each replay reads them again", "Write it to a file first."
        )
    absolute = tuple(str(Path(path).absolute()) for path in paths)
    return Trace(absolute, {}, _fingerprint(absolute))


def _fingerprint(paths: tuple[str, ...]) -> str:
    digest = sha256()
    for path in paths:
        try:
            with Path(path).open("rb") as file:
                digest.update(file_digest(file, "sha256").digest())
        except OSError as error:
            raise TraceError(path, 0, str(error.strerror), "a file that can be read") from None
    return digest.hexdigest()[:32]


@dataclass(slots=True, kw_only=True)
class Survey:
    """What one pass over a trace gives."""

    attempts: int = 0
    images: int = 0
    repositories: int = 0
    # As Trace.hubs.
    hubs: tuple[str, ...] = ()
    # Seconds since 1970 of the first and the last attempt.
    begin: float = 0.0
    end: float = 0.0
    # The most attempts in any window of `window_seconds`: what placeholders would have to absorb while a node boots.
    window_seconds: float = 0.0
    window_most: int = 0
    # The same, exceeded by one attempt in a thousand.
    window_p999: int = 0
    counts: InputCounts = field(default_factory=InputCounts)
    # The largest image whose size the trace has, and that size on disk; 0: it has none.
    largest_image: str = ""
    largest_image_bytes: int = 0
    # Attempts that request more than a node has, and the image of the first.
    too_large: int = 0
    first_too_large: str = ""


def survey(trace: Trace, seed: int, window_seconds: float, node: Assumptions | None = None) -> Survey:
    """Read the trace once. Raises TraceError.

    window_seconds: how long a requested node takes to come. node: its size; None: large enough for all.
    """
    result = Survey(window_seconds=window_seconds)
    images: set[str] = set()
    repositories: set[str] = set()
    hubs: set[str] = set()
    behind: deque[float] = deque()
    sizes: dict[int, int] = {}
    for attempt in trace.open(seed, result.counts):
        if not result.attempts:
            result.begin = attempt.moment
        result.attempts += 1
        result.end = attempt.moment
        images.add(attempt.image)
        repositories.add(attempt.repository)
        hubs.add(attempt.hub)
        if (attempt.image_bytes or 0) > result.largest_image_bytes:
            result.largest_image, result.largest_image_bytes = attempt.image, attempt.image_bytes or 0
        if node is not None and (
            (attempt.memory_bytes or 0) > node.node_memory_bytes
            or (attempt.cpu_millicores or 0) > node.node_cpu_millicores
        ):
            result.too_large += 1
            result.first_too_large = result.first_too_large or attempt.image
        behind.append(attempt.moment)
        while behind[0] <= attempt.moment - window_seconds:
            behind.popleft()
        sizes[len(behind)] = sizes.get(len(behind), 0) + 1
    if not result.attempts:
        raise TraceError(str(trace), 0, "no attempts", "at least one")
    if len(hubs) > MOST_HUBS:
        found = f"launches of {len(hubs)} hubs"
        raise TraceError(str(trace), 0, found, f"of at most {MOST_HUBS}", "Replay the hubs of one pool of nodes alone.")
    result.images, result.repositories, result.hubs = len(images), len(repositories), tuple(sorted(hubs))
    result.window_most = max(sizes)
    result.window_p999 = _quantile(sizes, 0.999)
    if not trace.paths:
        result.counts.attempts = result.attempts
    return result


def _quantile(sizes: Mapping[int, int], share: float) -> int:
    wanted, seen = share * sum(sizes.values()), 0
    for size in sorted(sizes):
        seen += sizes[size]
        if seen >= wanted:
            return size
    return 0
