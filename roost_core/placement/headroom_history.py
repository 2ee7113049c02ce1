"""Keep how many users a pool had, minute by minute, for the last weeks, and what was learned of its nodes.

Pure: times are Unix time and are passed in. Minutes are whole ones since 1970.
"""

from __future__ import annotations

import json
import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from math import ceil
from typing import Final

MINUTE_SECONDS: Final = 60
DAY_MINUTES: Final = 1440
KEPT_DAYS: Final = 56
KEPT_MINUTES: Final = KEPT_DAYS * DAY_MINUTES
# After a longer pause, what happened meanwhile is unknown.
PAUSE_MINUTES: Final = 5
MOST_USERS: Final = 100_000
# Of a stored history: all sets' are in one ConfigMap, which may have a mebibyte.
MOST_TEXT: Final = 90_000
# The last nodes whose boots are kept; with fewer than the least, a boot is guessed. All but the longest fifth count,
# and time to spare for the autoscaler and for images.
KEPT_BOOTS, LEAST_BOOTS, GUESSED_BOOT_SECONDS, MOST_BOOT_SECONDS = 20, 3, 240, 3600
BOOT_SHARE, SPARE_SECONDS = 0.8, 120
UNSEEN: Final = -1
# The second is far beyond any clock.
_VERSION, _MOST_MINUTE = 2, 10**9


class HistoryError(ValueError):
    """A text isn't a history; says why."""


@dataclass(frozen=True, slots=True)
class History:
    """How many users there were, in placeholders' sizes, each minute of the last eight weeks at most."""

    # The minute of the first level.
    first: int = 0
    # UNSEEN where nobody looked. Not changed: a longer history is another one.
    levels: array[int] = field(default_factory=lambda: array("i"))
    # From which share of days on a seat is likely to be needed, as calibrated; None: not yet.
    threshold: float | None = None
    # Seconds from the first pod that waited until the node was there, of the last nodes.
    boots: tuple[int, ...] = ()
    # Node-hours of the last week that placeholders beyond `replicas` kept, and all.
    kept_hours: float = 0.0
    node_hours: float = 0.0

    @property
    def end(self) -> int:
        """The minute after the last level."""
        return self.first + len(self.levels)

    @property
    def seen_minutes(self) -> int:
        """How many minutes were seen."""
        return len(self.levels) - self.levels.count(UNSEEN)

    @property
    def ahead_minutes(self) -> int:
        """How far to look ahead: as long as most nodes took, and some time to spare."""
        boots = sorted(self.boots)
        boot = boots[ceil(BOOT_SHARE * len(boots)) - 1] if len(boots) >= LEAST_BOOTS else GUESSED_BOOT_SECONDS
        return ceil((boot + SPARE_SECONDS) / MINUTE_SECONDS)

    @property
    def cost_share(self) -> float:
        """Of the node-hours of the last week, those that placeholders beyond `replicas` kept."""
        return self.kept_hours / self.node_hours if self.node_hours else 0.0

    def at(self, minute: int) -> int:
        """Return the level of a minute; UNSEEN where nobody looked."""
        index = minute - self.first
        return self.levels[index] if 0 <= index < len(self.levels) else UNSEEN

    def growth(self, minute: int, ahead: int) -> int | None:
        """By how many users the level rose at most within so many minutes; None: nobody looked."""
        if (level := self.at(minute)) == UNSEEN:
            return None
        index = minute - self.first
        return max(self.levels[index : index + ahead + 1]) - level

    def with_level(self, minute: int, level: float) -> History:
        """Return the history with the level of a minute after its last; over a short pause, the last one stayed."""
        users, gap = min(MOST_USERS, max(0, round(level))), minute - self.end
        if not self.levels or not -DAY_MINUTES <= gap <= KEPT_MINUTES:
            # The first one, or nothing of before can be told from what is to come, as after a clock was set.
            return replace(self, first=minute, levels=array("i", [users]))
        if gap < 0:
            return self
        between = [self.levels[-1] if gap <= PAUSE_MINUTES else UNSEEN] * gap
        levels = self.levels + array("i", [*between, users])
        # Whole days go at once.
        drop = max(0, (len(levels) - KEPT_MINUTES) // DAY_MINUTES * DAY_MINUTES)
        return replace(self, first=self.first + drop, levels=levels[drop:])

    def as_text(self) -> str:
        """As `read_history` reads it; the oldest days are left out of a text that is too long."""
        packed, kept = "", len(self.levels)
        while kept and (not packed or len(packed) > MOST_TEXT):
            kept = kept if not packed else kept * 3 // 4
            changes = array("i", (after - before for before, after in pairwise([0, *self.levels[-kept:]])))
            packed = b64encode(zlib.compress(changes.tobytes(), 9)).decode("ascii")
        body = {
            "version": _VERSION,
            "threshold": self.threshold,
            "bootSeconds": self.boots,
            "nodeHours": [self.kept_hours, self.node_hours],
            "first": self.end - kept,
            "levels": packed,
        }
        return json.dumps(body, separators=(",", ":"))


def read_history(text: str, now: int = _MOST_MINUTE) -> History:
    """Read a history up to the present. Raises HistoryError for anything else, saying what was found and expected."""
    try:
        body = json.loads(text)
        # No text makes more of itself than what is kept.
        packed = zlib.decompressobj().decompress(b64decode(body["levels"]), 4 * (KEPT_MINUTES + DAY_MINUTES))
        levels = array("i", accumulate(array("i", packed))) if packed else array("i")
        threshold, (kept, total) = body["threshold"], map(float, body["nodeHours"])
        threshold, boots = None if threshold is None else float(threshold), tuple(map(int, body["bootSeconds"]))
        history = History(int(body["first"]), levels, threshold, boots[-KEPT_BOOTS:], kept, total)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, zlib.error) as error:
        raise HistoryError(f"found {text[:30]!r}, expected a history as the controllers write it: {error}") from None
    is_sound = (
        0 <= history.first <= history.end <= now + DAY_MINUTES
        and UNSEEN <= min(levels, default=0) <= max(levels, default=0) <= MOST_USERS
        and 0 <= min(boots, default=0) <= max(boots, default=0) <= MOST_BOOT_SECONDS
        and 0 <= kept <= total < _MOST_MINUTE
    )
    if not is_sound or body.get("version") != _VERSION or not -1 <= (threshold or 0) <= 1:
        raise HistoryError(f"found {text[:30]!r} of days to come or out of range, expected version {_VERSION}")
    return history


def size_in_placeholders(cpu: float, memory: float, placeholder_cpu: float, placeholder_memory: float) -> float:
    """Return a pod's requests in placeholders, by the scarcer of CPU and memory; 1 where nothing can be compared."""
    shares = [
        asked / own for asked, own in ((cpu, placeholder_cpu), (memory, placeholder_memory)) if asked > 0 and own > 0
    ]
    return max(shares, default=1.0)


def history_of(sessions: Iterable[tuple[float, float, float]], seen: Collection[int] = ()) -> History:
    """Make a history of past sessions: (begin, end, size in placeholders).

    seen: the minutes in which somebody looked; none: from the first begin to the last.
    """
    changes = sorted(change for begin, end, size in sessions if end > begin for change in ((begin, size), (end, -size)))
    if not changes:
        return History()
    end = 1 + (max(seen) if seen else ceil(max(at for at, size in changes if size > 0) / MINUTE_SECONDS))
    first = max(min(seen) if seen else ceil(changes[0][0] / MINUTE_SECONDS), end - KEPT_MINUTES)
    steps = [0.0] * (end - first)
    for at, size in changes:
        index = max(0, ceil(at / MINUTE_SECONDS) - first)
        if index < len(steps):
            steps[index] += size
    levels = (min(MOST_USERS, max(0, round(level))) for level in accumulate(steps))
    return History(first, array("i", (n if not seen or at in seen else UNSEEN for at, n in enumerate(levels, first))))
