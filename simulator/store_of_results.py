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

from cluster.process import version
from simulator.results import RunResult

if TYPE_CHECKING:
    from collections.abc import Mapping

# Packages whose code decides what a replay gives; what the generator renders is in a policy's digest.
_DECIDING: Final = ("placement", "webhook", "controllers", "simulator")
# Modules of others that read traces.
_READING: Final[Mapping[str, tuple[str, ...]]] = {"recorder": ("moments.py", "reading.py", "records.py", "sniffer.py")}
# Modules of the simulator that only start replays, or tell of them.
_AROUND: Final = frozenset(
    {
        "asked.py",
        "checks.py",
        "dask_cluster.py",
        "figures.py",
        "formats.py",
        "misfits.py",
        "offline.py",
        "page.py",
        "progress.py",
        "shipped.py",
        "store_of_results.py",
        "suggest.py",
        "summary.py",
        "survey.py",
        "sweep.py",
        "tables.py",
        "terminal.py",
        "trace_download.py",
    }
)


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
    for package in _DECIDING:
        listed = sorted(Path(str(resources.files(package))).rglob("*.py"))
        found += [path for path in listed if package != "simulator" or path.name not in _AROUND]
    for package, names in _READING.items():
        found += [Path(str(resources.files(package)), name) for name in names]
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
