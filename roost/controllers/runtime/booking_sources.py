"""Read bookings where hub admins write them: ConfigMaps of the release's and of hubs' namespaces.

They are written by others than the operator: texts are short, shallow and without aliases, or
refused, and one that is refused takes nothing with it. They are bounded in number and bytes, and
all of them together in the time that reading takes.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from roost.controllers.contract.bookings import BookingSource
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import EVENTS_KEY
from roost_core.release.bookings import MOST_TEXT, Event, Limits, read_events
from roost_core.release.reader import Reader

log = logging.getLogger(__name__)

# The most characters of all keys of a hub's ConfigMap: there may be a hundred hubs.
MOST_OF_HUB: Final = 128 * 1024
MOST_EVENTS_OF_HUB: Final = 50
# ConfigMaps, and the characters of all of them.
MOST_CONFIG_MAPS: Final = 200
MOST_TEXT_IN_ALL: Final = 4 * 2**20
# Seconds a minute that reading bookings may take, all sources together; and how many of them must
# be left to begin with another ConfigMap. A large one of a hub takes a tenth of a second.
READING_SECONDS: Final = 5.0
LEAST_SECONDS: Final = 0.5
# An event that began so long ago is past.
PAST_SECONDS: Final = 86_400.0
_CALENDAR_SUFFIX: Final = ".ics"
# One Event each.
MOST_FAULTS: Final = 20
MOST_FAULT_LETTERS: Final = 500


class ReadingTime:
    """What reading bookings may take: READING_SECONDS a minute, of all sources together.

    Belongs to one thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = READING_SECONDS
        self._as_of = clock()

    def left_now(self) -> float:
        """Add the seconds that came since the last call; how many are left.

        What is left grows by READING_SECONDS a minute, and never above READING_SECONDS.
        """
        now = self._clock()
        self._left = min(READING_SECONDS, self._left + (now - self._as_of) * READING_SECONDS / 60.0)
        self._as_of = now
        return self._left

    @contextlib.contextmanager
    def spend(self) -> Iterator[None]:
        """Count the time of this block."""
        began = self._clock()
        self.left_now()
        try:
            yield
        finally:
            self._left = self.left_now() - (self._clock() - began)


class BookingText(NamedTuple):
    """A ConfigMap that books events, as it came."""

    name: str
    uid: str
    # The text of the key events.yaml. A number: the text is too long, and has so many characters.
    # None: there is no such key, or a hub's ConfigMap is too large to keep.
    text: str | int | None
    # Up to three others.
    other_keys: tuple[str, ...]
    # The namespace that it books for; "": the release's own.
    hub: str = ""
    # Characters of all that it holds.
    size: int = 0

    @property
    def length(self) -> int:
        """Characters that are read."""
        return len(self.text) if isinstance(self.text, str) else 0


def keep_config_map(item: JSONObject, hub: str = "") -> BookingText:
    """Keep what is read of a ConfigMap. Raises nothing, whatever it holds.

    hub: the namespace that it books for; "": the release's own.
    """
    data = item.get("data") or {}
    size = sum(len(str(text)) for text in data.values())
    text: str | int | None = None
    if EVENTS_KEY in data and not (hub and size > MOST_OF_HUB):
        found = str(data[EVENTS_KEY])
        text = found if len(found) <= MOST_TEXT else len(found)
    metadata = item["metadata"]
    others = tuple(sorted(data.keys() - {EVENTS_KEY})[:3])
    return BookingText(metadata["name"], metadata.get("uid") or "", text, others, hub, size)


class ConfigMapReader:
    """Reads ConfigMaps once each time that they change, as far as there is time.

    Belongs to one thread.
    """

    def __init__(self, limits: Limits, reading_time: ReadingTime) -> None:
        self._limits = limits
        self._time = reading_time
        # By key, the one that was read longest ago first.
        self._known: dict[str, tuple[BookingText, BookingSource]] = {}

    def sources(self, texts: Mapping[str, BookingText]) -> Sequence[BookingSource]:
        """Return what they book, by name.

        A ConfigMap that there was no time for yet counts as before; a new one, once it was read.
        """
        known = {key: self._known[key] for key in self._known if key in texts}
        new = [key for key in sorted(texts) if key not in known]
        length = 0
        within: set[str] = set()

        def turn(key: str) -> tuple[int, str]:
            # The release's own come first. Of hubs' ConfigMaps, those with little text come first,
            # so that no hub's much text costs another one its little.
            return (texts[key].length if texts[key].hub else 0), key

        for key in sorted(texts, key=turn):
            length += texts[key].length
            if len(within) < MOST_CONFIG_MAPS and length <= MOST_TEXT_IN_ALL:
                within.add(key)
        # Whoever writes theirs again and again comes after the others.
        for key in (*new, *[key for key in known if known[key][0] is not texts[key]]):
            if self._time.left_now() < LEAST_SECONDS:
                log.warning(
                    "bookings are read later: reading took %.0f s of the last minute",
                    READING_SECONDS,
                )
                break
            known.pop(key, None)
            with self._time.spend():
                known[key] = (texts[key], read_config_map(texts[key], self._limits))
        self._known = known
        return [
            _source_of(texts[key], known.get(key)) if key in within else _beyond(texts[key])
            for key in sorted(texts)
        ]


def _source_of(kept: BookingText, known: tuple[BookingText, BookingSource] | None) -> BookingSource:
    if known is None:
        return BookingSource(kept.name, kept.uid, (), hub=kept.hub, is_unread=True)
    known_kept, source = known
    return source if known_kept is kept else replace(source, is_unread=True)


def _beyond(kept: BookingText) -> BookingSource:
    fault = (
        f"data: found more beside the ConfigMaps that come before it, expected {MOST_CONFIG_MAPS}"
        f" with {MOST_TEXT_IN_ALL // 2**20} MiB in all."
    )
    return BookingSource(kept.name, kept.uid, (), (fault,), kept.hub)


def read_config_map(kept: BookingText, limits: Limits) -> BookingSource:
    """Read a ConfigMap's key events.yaml. Raises nothing, whatever it holds.

    A hub's ConfigMap that is too large, or that has too many events, is refused whole: one that is
    cut would book what its writer doesn't expect.
    """
    read = Reader()
    events: Sequence[Event] = ()
    try:
        events = _read_events(read, kept, limits)
    except Exception as error:  # noqa: BLE001 - plans would fail of it again and again
        read.fault("data", type(error).__name__, "events that can be read")
    if kept.hub and len(events) > MOST_EVENTS_OF_HUB:
        read.fault(
            "data",
            len(events),
            f"at most {MOST_EVENTS_OF_HUB} bookings of one hub; none of them counts",
        )
        events = ()
    # Faults quote keys and names, of any length.
    faults = tuple(str(fault)[:MOST_FAULT_LETTERS] for fault in read.faults[:MOST_FAULTS])
    return BookingSource(kept.name, kept.uid, tuple(events), faults, kept.hub)


def _read_events(read: Reader, kept: BookingText, limits: Limits) -> Sequence[Event]:
    if kept.hub and kept.size > MOST_OF_HUB:
        read.fault(
            "data",
            f"{kept.size} characters",
            f"at most {MOST_OF_HUB} of one hub; none of its bookings counts",
        )
    elif kept.text is None:
        expected = f"a key {EVENTS_KEY}"
        if any(key.endswith(_CALENDAR_SUFFIX) for key in kept.other_keys):
            expected += ", which roost book --calendar FILE writes of a calendar"
        read.fault("data", list(kept.other_keys) or None, expected)
    elif isinstance(kept.text, int):
        read.fault(EVENTS_KEY, f"{kept.text} characters", f"at most {MOST_TEXT}")
    else:
        return read_events(read, kept.text, limits)
    return ()
