"""What seating needs of release.json, the bookings of the values too."""

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
