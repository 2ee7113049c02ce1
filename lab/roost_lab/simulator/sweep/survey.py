"""Survey a trace before it is replayed: its fingerprint, hubs, images and skipped lines.

One pass; memory grows with distinct images.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Final

from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.counts import InputCounts, TraceError

# Days of made-up launches when no trace is given.
USUAL_DAYS: Final = 10.0
# Each hub has a release of its own in a replay.
MOST_HUBS: Final = 100


@dataclass(frozen=True, slots=True)
class Trace:
    """Where attempts come from: files that every worker can read, or, without any, the synthetic
    generator.
    """

    paths: tuple[str, ...] = ()
    # How many days of launches were made up; 0: none were.
    days: float = 0.0
    # A digest of the files' bytes, or of the days.
    fingerprint: str = ""
    # Namespaces of the hubs that launches name, "" for those that name none; empty until it is
    # surveyed.
    hubs: tuple[str, ...] = ()

    def open(self, seed: int, counts: InputCounts | None = None) -> Iterator[Attempt]:
        """Its attempts in order of time. Raises TraceError."""
        if not self.paths:
            from roost_lab.traces.synthetic import synthetic_attempts  # noqa: PLC0415 - only where no trace is given

            made_up: Iterator[Attempt] = synthetic_attempts(seed, self.days)
            return made_up
        from roost_lab.traces.reading import open_trace  # noqa: PLC0415 - only where a trace is given

        if _fingerprint(self.paths) != self.fingerprint:
            found = "content that changed since the sweep began"
            expected = "a file that does not change during a sweep"
            raise TraceError(self.paths[0], 0, found, expected, "Start again.")
        return open_trace(
            [Path(path) for path in self.paths], seed=seed, counts=counts or InputCounts()
        )

    def __str__(self) -> str:
        if self.paths:
            return ", ".join(Path(path).name for path in self.paths)
        return f"made-up launches (days {self.days:g})"


def trace_of(paths: tuple[str, ...], days: float = USUAL_DAYS) -> Trace:
    """The trace in these files, or `days` of made-up launches.

    Raises TraceError for files that can't be read.
    """
    if not paths:
        return Trace((), days, f"synthetic {days!r}")
    absolute = tuple(str(Path(path).absolute()) for path in paths)
    return Trace(absolute, 0.0, _fingerprint(absolute))


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
    counts: InputCounts = field(default_factory=InputCounts)
    # The largest image whose size the trace has, and that size on disk; 0: it has none.
    largest_image: str = ""
    largest_image_bytes: int = 0
    # Attempts that request more than a node has, and the image of the first.
    too_large: int = 0
    first_too_large: str = ""


def _is_too_large(attempt: Attempt, assumptions: Assumptions) -> bool:
    """Whether an attempt requests more than a node has."""
    if (attempt.memory_bytes or 0) > assumptions.node_memory_bytes:
        return True
    return (attempt.cpu_millicores or 0) > assumptions.node_cpu_millicores


def survey(trace: Trace, assumptions: Assumptions | None = None) -> Survey:
    """Read the trace once, as the first seed has it. Raises TraceError.

    assumptions: of them, a node's size; None: large enough for all.
    """
    result = Survey()
    images: set[str] = set()
    repositories: set[str] = set()
    hubs: set[str] = set()
    for attempt in trace.open(1, result.counts):
        result.attempts += 1
        images.add(attempt.image)
        repositories.add(attempt.repository)
        hubs.add(attempt.hub)
        if (attempt.image_bytes or 0) > result.largest_image_bytes:
            result.largest_image = attempt.image
            result.largest_image_bytes = attempt.image_bytes or 0
        if assumptions is not None and _is_too_large(attempt, assumptions):
            result.too_large += 1
            result.first_too_large = result.first_too_large or attempt.image
    if not result.attempts:
        raise TraceError(str(trace), 0, "no attempts", "at least one")
    if len(hubs) > MOST_HUBS:
        found = f"launches of {len(hubs)} hubs"
        fix = "Replay the hubs of one pool of nodes alone."
        raise TraceError(str(trace), 0, found, f"of at most {MOST_HUBS}", fix)
    result.images = len(images)
    result.repositories = len(repositories)
    result.hubs = tuple(sorted(hubs))
    return result
