"""Read what seating needs of release.json: limits, and the bookings of the values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from roost_core.release.bookings import Event, Limits, bookable_sets, parse_events
from roost_core.release.reader import Reader, SettingsError, load_document


@dataclass(frozen=True, slots=True)
class SeatingSettings:
    """What seating needs of release.json."""

    # Events that the values book; none while `events` are switched off.
    booked: tuple[Event, ...]
    # Whether bookings of the ConfigMap count.
    config_maps: bool
    limits: Limits
    # The hub's own limits on starts at once, and on servers at once; 0: none.
    concurrent_spawn_limit: int
    active_server_limit: int


def load_settings(path: Path) -> SeatingSettings:
    """Read release.json. Raises SettingsError with all faults."""
    document, _ = load_document(str(path), path.read_bytes)
    read = Reader()
    events = read.mapping(document.get("events"), "events")
    limits = Limits(
        bookable_sets(document), read.integer(events.get("maxPeople"), "events.maxPeople")
    )

    def optional_limit(key: str) -> int:
        value = events.get(key)
        return 0 if value is None else read.integer(value, f"events.{key}")

    is_enabled = read.flag(events.get("enabled"), "events.enabled")
    reads_config_maps = read.flag(events.get("configMaps"), "events.configMaps")
    booked = parse_events(read, events.get("booked"), "events.booked", limits)
    settings = SeatingSettings(
        booked=booked if is_enabled else (),
        config_maps=is_enabled and reads_config_maps,
        limits=limits,
        concurrent_spawn_limit=optional_limit("concurrentSpawnLimit"),
        active_server_limit=optional_limit("activeServerLimit"),
    )
    if read.faults:
        raise SettingsError(read.faults)
    return settings


class ReleaseFile:
    """The settings in release.json, read again when the file changes.

    If the changed file has faults, the settings stay as they were.
    """

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        """report: called with the faults of a changed file. Raises SettingsError."""
        self._path = path
        self._report = report
        self._text = _bytes_of(path)
        self.settings = load_settings(path)

    def read_again(self) -> SeatingSettings:
        """Read the file again if it changed. Returns the settings that count now."""
        text = _bytes_of(self._path)
        if text != self._text:
            self._text = text
            try:
                self.settings = load_settings(self._path)
            except SettingsError as error:
                self._report(f"{self._path}: the settings stay as they were: {error.one_line()}")
        return self.settings


def _bytes_of(path: Path) -> bytes:
    """The content of a file; b"" if it can't be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
