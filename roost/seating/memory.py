"""Keep what seating saw over a restart of its container, in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from roost.seating.plan import ClassKey, Memory

# People whose coming is remembered, and classes.
_MOST_PEOPLE: Final = 20_000
_MOST_CLASSES: Final = 100


def dump(memory: Memory) -> str:
    """The memory as text."""
    keys = sorted({*memory.tries, *memory.skipped}, key=lambda key: key.start)[-_MOST_CLASSES:]
    classes = [[*key, memory.tries.get(key, {}), memory.skipped.get(key, {})] for key in keys]
    body = {
        "version": 1,
        "ready": [[*at, ready_at] for at, ready_at in memory.ready_at.items()],
        "used": sorted([*at, *key] for at, key in memory.used.items()),
        "starting": sorted(memory.starting),
        "classes": classes,
        "came": dict(list(memory.came.items())[-_MOST_PEOPLE:]),
        "startSeconds": memory.start_seconds,
        "pausedUntil": memory.paused_until,
        "failuresInARow": memory.failures_in_a_row,
        "failedSpawns": memory.failed_spawns,
        "failedAt": memory.failed_at,
        "ended": dict(list(memory.ended.items())[-_MOST_PEOPLE:]),
    }
    return json.dumps(body)


def parse(text: str) -> Memory:
    """The memory of a text; what can't be read is forgotten, whole. Raises nothing."""
    memory = Memory()
    try:
        body: dict[str, Any] = json.loads(text)
        if body["version"] != 1:
            return Memory()
        memory.ready_at = {
            (str(name), float(at)): float(ready) for name, at, ready in body["ready"]
        }
        memory.used = {
            (str(name), float(at)): ClassKey(str(booking), int(start))
            for name, at, booking, start in body["used"]
        }
        memory.starting = {(str(name), float(at)) for name, at in body["starting"]}
        for booking, start, tries, skipped in body["classes"]:
            key = ClassKey(str(booking), int(start))
            memory.tries[key] = {str(name): int(count) for name, count in tries.items()}
            memory.skipped[key] = {str(name): str(why) for name, why in skipped.items()}
        memory.came = {str(name): float(seconds) for name, seconds in body["came"].items()}
        memory.start_seconds = [float(seconds) for seconds in body["startSeconds"]]
        memory.paused_until = float(body["pausedUntil"])
        memory.failures_in_a_row = int(body["failuresInARow"])
        memory.failed_spawns = int(body["failedSpawns"])
        memory.failed_at = float(body["failedAt"])
        memory.ended = {str(name): float(at) for name, at in body["ended"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return Memory()
    return memory


def load(path: Path | None) -> Memory:
    """The memory of a file; an empty one without it. Raises nothing."""
    try:
        return parse(path.read_text()) if path is not None else Memory()
    except (OSError, ValueError):
        return Memory()


def save(path: Path, text: str) -> None:
    """Write the file whole or not at all. Raises OSError."""
    beside = path.with_suffix(".new")
    beside.write_text(text)
    beside.replace(path)
