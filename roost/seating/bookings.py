"""Which bookings seat people: those of the values, and those that `roost book` wrote.

Both are files: release.json, and the ConfigMap of bookings, which the pod mounts if it exists. So
no right in Kubernetes is needed to read them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from roost_core.release.bookings import (
    MOST_TEXT,
    Event,
    Limits,
    bookable_sets,
    parse_events,
    read_events,
)
from roost_core.release.reader import Reader, SettingsError, load_document

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SeatingSettings:
    """What seating needs of release.json."""

    # Events that the values book; none while `events` are switched off.
    booked: tuple[Event, ...]
    # Whether bookings of the ConfigMap count.
    config_maps: bool
    limits: Limits
    concurrent_spawn_limit: int
    active_server_limit: int


def load_settings(path: Path) -> SeatingSettings:
    """Read release.json. Raises SettingsError."""
    document, _ = load_document(str(path), path.read_bytes)
    read = Reader()
    events = read.mapping(document.get("events"), "events")
    limits = Limits(
        bookable_sets(document), read.integer(events.get("maxPeople"), "events.maxPeople")
    )

    def limit(key: str) -> int:
        return read.integer(events.get(key), f"events.{key}") if events.get(key) is not None else 0

    is_enabled = read.flag(events.get("enabled"), "events.enabled")
    reads_config_maps = read.flag(events.get("configMaps"), "events.configMaps")
    booked = parse_events(read, events.get("booked"), "events.booked", limits)
    settings = SeatingSettings(
        booked=booked if is_enabled else (),
        config_maps=is_enabled and reads_config_maps,
        limits=limits,
        concurrent_spawn_limit=limit("concurrentSpawnLimit"),
        active_server_limit=limit("activeServerLimit"),
    )
    if read.faults:
        raise SettingsError(read.faults)
    return settings


class ReleaseFile:
    """release.json, read again when it changed; the last good one counts."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        """Raises SettingsError."""
        self._path = path
        self._say = say
        self._text = _bytes_of(path)
        self.settings = load_settings(path)

    def look(self) -> SeatingSettings:
        """The settings as they are now."""
        text = _bytes_of(self._path)
        if text != self._text:
            self._text = text
            try:
                self.settings = load_settings(self._path)
            except SettingsError as error:
                self._say(f"{self._path}: the settings stay as they were: {error.one_line()}")
        return self.settings


def _bytes_of(path: Path) -> bytes:
    """What a file holds; b"" where it can't be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


class BookingFile:
    """The file of bookings, read again when it changed."""

    def __init__(self, path: Path | None, say: Callable[[str], None]) -> None:
        self._path = path
        self._limits = Limits((), 0)
        self._say = say
        # Why the file can't be read, as last said; "": it was read.
        self._fault = ""
        self._text: bytes | None = None
        self._events: tuple[Event, ...] = ()

    def events(self, limits: Limits) -> Sequence[Event]:
        """What is booked there; faults are told once, and those bookings left out."""
        text = b""
        if self._path is not None:
            try:
                text = self._path.read_bytes()
            except FileNotFoundError:
                text = b""
            except OSError as error:
                fault = f"{self._path}: can't be read ({error.strerror})"
                if fault != self._fault:
                    self._say(fault)
                    self._fault = fault
                return self._events
        self._fault = ""
        if text != self._text or limits != self._limits:
            self._text = text
            self._limits = limits
            self._events = self._read(text)
        return self._events

    def _read(self, text: bytes) -> tuple[Event, ...]:
        if len(text) > MOST_TEXT:
            self._say(f"bookings: found {len(text)} bytes, expected at most {MOST_TEXT}")
            return ()
        read = Reader()
        events = read_events(read, text.decode(errors="replace") or "[]", self._limits)
        for fault in read.faults:
            self._say(f"{fault} That booking is left out.")
        return events
