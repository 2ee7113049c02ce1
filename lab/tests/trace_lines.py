"""Lines of launch traces, and a reader that holds what must be true of every trace."""

import itertools
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from roost_lab.traces.attempt import Attempt
from roost_lab.traces.counts import InputCounts
from roost_lab.traces.reading import open_trace
from tests.recorded_data import object_of

NOON = datetime(2019, 5, 22, 12, tzinfo=UTC).timestamp()


def stamp(seconds: float, timespec: str = "seconds") -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=timespec)


def launch(minute: float = 0, spec: Any = "ada/engine/master", **more: Any) -> dict[str, Any]:
    """A line of the public archive, so many minutes after noon."""
    usual = {
        "schema": "binderhub.jupyter.org/launch",
        "version": 2,
        "provider": "GitHub",
        "status": "success",
    }
    return {"timestamp": stamp(NOON + 60 * minute), **usual, "spec": spec, **more}


def recorded(second: float = 0, **more: Any) -> dict[str, Any]:
    """A line of `roost records export`, so many seconds after noon."""
    return {
        "timestamp": stamp(NOON + second, "microseconds"),
        **object_of("recorded-launch"),
        **more,
    }


def as_bytes(lines: Iterable[dict[str, Any] | str]) -> bytes:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    return "".join(f"{text}\n" for text in texts).encode()


def write(folder: Path, *lines: dict[str, Any] | str, name: str = "trace.jsonl") -> Path:
    path = folder / name
    path.write_bytes(as_bytes(lines))
    return path


def read(*paths: Path, seed: int = 1, **more: Any) -> tuple[list[Attempt], InputCounts]:
    counts = InputCounts()
    attempts = list(open_trace(paths, seed=seed, counts=counts, **more))
    assert (counts.lines, counts.used) == (counts.used + counts.skipped_lines, len(attempts))
    assert [attempt.number for attempt in attempts] == list(range(len(attempts)))
    assert all(one.moment <= other.moment for one, other in itertools.pairwise(attempts))
    return attempts, counts


def reasons(counts: InputCounts) -> dict[str, int]:
    return {reason: tally.number for reason, tally in counts.skipped.items()}
