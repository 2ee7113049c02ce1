"""Keep what seating saw in a file, so that a restart of its container doesn't lose it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from roost.seating.memory import Memory, ServerKey
from roost.seating.people import ClassKey

# The most people and classes that are kept; the latest count.
_MOST_PEOPLE: Final = 20_000
_MOST_CLASSES: Final = 100


def dump(memory: Memory) -> str:
    """The memory as text that `parse` reads."""
    keys = {*memory.tries, *memory.skipped}
    latest_keys = sorted(keys, key=lambda key: key.start)[-_MOST_CLASSES:]
    pace = memory.pace
    body = {
        "version": 1,
        "ready": [[*server, ready_at] for server, ready_at in memory.ready_at.items()],
        "used": sorted([*server, *used_for] for server, used_for in memory.used.items()),
        "starting": sorted(memory.starting),
        "classes": [
            [*key, memory.tries.get(key, {}), memory.skipped.get(key, {})] for key in latest_keys
        ],
        "came": dict(list(memory.came.items())[-_MOST_PEOPLE:]),
        "startSeconds": pace.start_seconds,
        "pausedUntil": pace.paused_until,
        "failuresInARow": pace.failures_in_a_row,
        "failedSpawns": pace.failed_spawns,
        "failedAt": pace.failed_at,
        "ended": dict(list(memory.ended.items())[-_MOST_PEOPLE:]),
    }
    return json.dumps(body)


def parse(text: str) -> Memory:
    """The memory that `dump` wrote; an empty memory if any part of it can't be read.

    Raises nothing.
    """
    try:
        body: dict[str, Any] = json.loads(text)
        return _read(body) if body["version"] == 1 else Memory()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return Memory()


def _read(body: Mapping[str, Any]) -> Memory:
    memory = Memory()
    memory.ready_at = {
        ServerKey(str(user), float(started)): float(ready) for user, started, ready in body["ready"]
    }
    memory.used = {
        ServerKey(str(user), float(started)): ClassKey(str(booking), int(class_start))
        for user, started, booking, class_start in body["used"]
    }
    memory.starting = {ServerKey(str(user), float(started)) for user, started in body["starting"]}
    for booking, class_start, tries, skipped in body["classes"]:
        key = ClassKey(str(booking), int(class_start))
        memory.tries[key] = {str(name): int(count) for name, count in tries.items()}
        memory.skipped[key] = {str(name): str(why) for name, why in skipped.items()}
    memory.came = {str(name): float(seconds) for name, seconds in body["came"].items()}
    memory.ended = {str(name): float(at) for name, at in body["ended"].items()}
    # `window` is learned anew.
    memory.pace.start_seconds = [float(seconds) for seconds in body["startSeconds"]]
    memory.pace.paused_until = float(body["pausedUntil"])
    memory.pace.failures_in_a_row = int(body["failuresInARow"])
    memory.pace.failed_spawns = int(body["failedSpawns"])
    memory.pace.failed_at = float(body["failedAt"])
    return memory


def load(path: Path | None) -> Memory:
    """The memory of a file. It is empty without a file, or if the file can't be read.

    Raises nothing.
    """
    if path is None:
        return Memory()
    try:
        text = path.read_text()
    except (OSError, ValueError):
        return Memory()
    return parse(text)


def save(path: Path, text: str) -> None:
    """Replace the whole file by `text`, or leave it as it is. Raises OSError."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)
