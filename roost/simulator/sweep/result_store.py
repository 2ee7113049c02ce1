"""Keep each replay's result as a file of its own, so that an interrupted sweep goes on where it was.

A result is found by what it came from: values, assumptions, seed, trace and the code that replays. Files appear whole
or not at all.
"""

from __future__ import annotations

import json
import os
import tempfile
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from roost.simulator.engine.results import RunResult
from roost_core.kube.process import version

if TYPE_CHECKING:
    from collections.abc import Mapping

# Packages and modules whose code decides what a replay gives; what the generator renders is in a policy's digest.
_DECIDING: Final = (
    "roost_core.placement",
    "roost_core.scheduler",
    "webhook",
    "roost.controllers",
    "roost.simulator.engine",
    "roost.simulator.trace",
    "roost.simulator.chance",
    "roost.simulator.setup.assumptions",
    "roost.simulator.setup.policy",
    # They read scheduler-sniffer's lines.
    "roost.pages.moments",
    "roost.recorder.answers.sniffer_log",
    "roost.recorder.recording.reading",
    "roost.recorder.store.records",
)
# They bring traces to disk, and sum them up without a replay.
_AROUND: Final = frozenset({"download.py", "offline.py"})


class StoreError(Exception):
    """Results can't be kept; the message names the folder."""


@cache
def code_fingerprint() -> str:
    """Of the code that replays, and Roost's version: results of other code are never taken for this one's.

    As this process found it first: what it has loaded stays the same when files change.
    """
    digest = sha256(version().encode())
    for path in deciding_files():
        digest.update(f"\0{path.parent.name}/{path.name}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def deciding_files() -> list[Path]:
    """The modules that decide what a replay gives."""
    found = []
    for name in _DECIDING:
        package, _, module = name.rpartition(".")
        file = Path(str(resources.files(package or name)), f"{module}.py")
        if package and file.is_file():
            found.append(file)
        else:
            listed = sorted(Path(str(resources.files(name))).rglob("*.py"))
            found += [path for path in listed if path.name not in _AROUND]
    return found


def result_key(parts: Mapping[str, Any]) -> str:
    """The name of the result that comes from these parts, which JSON must be able to say."""
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


class ResultStore:
    """A folder of results."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if it isn't there. Raises StoreError."""
        self.folder = folder
        # Files that held no result; they are made anew.
        self.broken: list[str] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{folder}: results can't be kept there: {error.strerror}. Name another --results."
            ) from None

    def find(self, key: str) -> RunResult | None:
        """The result of that key; None when there is none, or none that can be read."""
        path = self._path(key)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{path}: can't be read: {error.strerror}") from None
        try:
            found = json.loads(text)
            return RunResult.from_json(found["result"])
        except (ValueError, KeyError, TypeError):
            self.broken.append(str(path))
            return None

    def put(self, key: str, about: Mapping[str, Any], result: RunResult) -> None:
        """Keep a result; about: what it came from, for people. Raises StoreError."""
        text = json.dumps({"about": about, "result": result.to_json()}, separators=(",", ":"))
        try:
            handle, name = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".part")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                Path(name).replace(self._path(key))
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise StoreError(f"{self.folder}: a result can't be kept: {error.strerror}") from None

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"
