"""Keep each replay's result in a file, so that an interrupted sweep continues where it stopped.

A result is found by its inputs: values, assumptions, seed, trace and code. Files are written atomically.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, Final

import orjson

from roost_core.kube.process import version
from roost_lab.simulator.engine.results import RunResult

# Packages that decide a replay's result; what the generator renders is in a policy's digest.
_DECIDING: Final = ("roost_core", "webhook", "roost", "roost_lab")


class SweepError(Exception):
    """A sweep can't go on: a replay failed, or results can't be stored; the text says which, and why."""


@cache
def code_fingerprint() -> str:
    """Of Roost's version and the code that replays: results of other code are never reused.

    Computed once: what this process has loaded stays the same when files change.
    """
    digest = sha256(version().encode())
    for name in _DECIDING:
        for path in sorted(Path(str(resources.files(name))).rglob("*.py")):
            digest.update(f"\0{path.parent.name}/{path.name}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def result_key(parts: Mapping[str, Any]) -> str:
    """The name of the result of these inputs, a JSON object."""
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


class ResultStore:
    """A folder of results."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if it isn't there. Raises SweepError."""
        self.folder = folder
        # Files without a valid result; they are replaced.
        self.broken: list[str] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SweepError(f"{folder}: results can't be stored: {error.strerror}. Name another --results.") from None

    def find(self, key: str) -> RunResult | None:
        """The result of that key; None where it is missing or invalid. Raises SweepError."""
        path = self._path(key)
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SweepError(f"{path}: can't be read: {error.strerror}") from None
        try:
            return RunResult.from_json(orjson.loads(text)["result"])
        except (ValueError, KeyError, TypeError, AttributeError):
            self.broken.append(str(path))
            return None

    def put(self, key: str, about: Mapping[str, Any], result: RunResult) -> None:
        """Store a result; about: its inputs, for people. Raises SweepError."""
        text = orjson.dumps({"about": about, "result": result}, option=orjson.OPT_NON_STR_KEYS)
        try:
            handle, name = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                Path(name).replace(self._path(key))
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise SweepError(f"{self.folder}: a result can't be stored: {error.strerror}") from None

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"
