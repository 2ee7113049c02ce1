"""Keep how many users a pool had, minute by minute, for the last weeks, and what was learned of its
nodes.

Pure: times are Unix time and are passed in. Minutes are whole ones since 1970.
"""

from __future__ import annotations

import json
import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from math import ceil
from operator import sub
from statistics import fmean
from typing import Final

from roost_core.placement.headroom_account import Account, read_account

MINUTE_SECONDS: Final = 60
HOUR_MINUTES: Final = 60
DAY_MINUTES: Final = 1440
KEPT_DAYS: Final = 56
KEPT_MINUTES: Final = KEPT_DAYS * DAY_MINUTES
# After a longer pause, what happened meanwhile is unknown.
PAUSE_MINUTES: Final = 5
MOST_USERS: Final = 100_000
# The longest text of a stored history.
MOST_TEXT: Final = 90_000
# The longest text of all histories: they are in one ConfigMap, of which the admission policy takes
# 768 KiB.
MOST_TEXT_IN_ALL: Final = 700_000
# What the ConfigMap's key ends with, after the set's name, when the text couldn't be read.
UNUSABLE_SUFFIX: Final = ".unusable"
# How many of the last boots are kept.
KEPT_BOOTS: Final = 20
# With fewer, a boot is guessed.
LEAST_BOOTS: Final = 3
GUESSED_BOOT_SECONDS: Final = 240
MOST_BOOT_SECONDS: Final = 3600
# All but the longest tenth of the boots count, but never the longest: it may be a node that failed.
# Time to spare is added, for the autoscaler and for images.
BOOT_SHARE: Final = 0.9
SPARE_SECONDS: Final = 120
# For how many of the last people who waited for a new node it is kept how long that node pulled
# images.
KEPT_PULLS: Final = 40
# After so many minutes of users, the mean of what a user fills counts older ones a third.
PEOPLE_MINUTES: Final = 20_000
MOST_SEATS_PER_PERSON: Final = 1000.0
# With fewer, pulls count for nothing: what learning saved is told too low, never too high.
LEAST_PULLS: Final = 3
MOST_PULL_SECONDS: Final = 3600
UNSEEN: Final = -1
# zlib's level. A higher one takes three times as long for a tenth less.
_COMPRESSION: Final = 6
# Far beyond any clock.
_MOST_MINUTE: Final = 10**9
# The text's version. Version 2 also has keys of an older rule of cost; they are ignored.
_VERSION: Final = 3
_READABLE_VERSIONS: Final = (2, 3)


class HistoryError(ValueError):
    """A text isn't a history; says why."""


@dataclass(frozen=True, slots=True)
class History:
    """How many users there were, in placeholders' sizes, each minute of the last eight weeks at
    most.
    """

    # The minute of the first level.
    first: int = 0
    # UNSEEN where nobody looked. Not changed: a longer history is another one.
    levels: array[int] = field(default_factory=lambda: array("i"))
    # Seconds from the first pod that waited until a new node was ready, of the last boots that were
    # measured.
    boots: tuple[int, ...] = ()
    # Seconds from when a node was ready until somebody who had waited for it had a server there, of
    # the last people.
    pulls: tuple[int, ...] = ()
    # How many placeholders fit a node, as last seen; 0: no node was seen yet.
    per_node: int = 0
    # How many placeholders a user fills, in the mean of the last days.
    seats_per_person: float = 1.0
    # What learning saved and cost.
    account: Account = field(default_factory=Account)

    @property
    def end(self) -> int:
        """The minute after the last level."""
        return self.first + len(self.levels)

    @property
    def seen_minutes(self) -> int:
        """How many minutes were seen."""
        return len(self.levels) - self.levels.count(UNSEEN)

    @property
    def boot_seconds(self) -> int:
        """The seconds that most nodes took to boot."""
        if len(self.boots) < LEAST_BOOTS:
            return GUESSED_BOOT_SECONDS
        counted = min(ceil(BOOT_SHARE * len(self.boots)), len(self.boots) - 1)
        return sorted(self.boots)[counted - 1]

    @property
    def pull_seconds(self) -> float:
        """How long people who waited for a new node also waited there, in the mean."""
        return fmean(self.pulls) if len(self.pulls) >= LEAST_PULLS else 0.0

    @property
    def ahead_minutes(self) -> int:
        """How far to look ahead: as long as most nodes took, and some time to spare."""
        return ceil((self.boot_seconds + SPARE_SECONDS) / MINUTE_SECONDS)

    def at(self, minute: int) -> int:
        """Return the level of a minute; UNSEEN where nobody looked."""
        index = minute - self.first
        return self.levels[index] if 0 <= index < len(self.levels) else UNSEEN

    def growth(self, minute: int, ahead: int) -> int | None:
        """How many users the level rose by at most within so many minutes; None: nobody looked."""
        level = self.at(minute)
        if level == UNSEEN:
            return None
        index = minute - self.first
        return max(self.levels[index : index + ahead + 1]) - level

    def with_level(self, minute: int, level: float) -> History:
        """Return the history with the level of a minute after its last; over a short pause, the
        last one stayed.
        """
        users = min(MOST_USERS, max(0, round(level)))
        gap = minute - self.end
        if not self.levels or not -DAY_MINUTES <= gap <= KEPT_MINUTES:
            # The first one, or nothing of before can be told from what is to come, as after a clock
            # was set.
            return replace(self, first=minute, levels=array("i", [users]))
        if gap < 0:
            return self
        between = [self.levels[-1] if gap <= PAUSE_MINUTES else UNSEEN] * gap
        levels = self.levels + array("i", [*between, users])
        # Whole days go at once.
        drop = max(0, (len(levels) - KEPT_MINUTES) // DAY_MINUTES * DAY_MINUTES)
        return replace(self, first=self.first + drop, levels=levels[drop:])

    def with_people(self, sizes: Sequence[float]) -> History:
        """Return the history after a minute with users of these sizes, in placeholders."""
        if not sizes:
            return self
        weight = min(1.0, len(sizes) / PEOPLE_MINUTES)
        mean = self.seats_per_person + (fmean(sizes) - self.seats_per_person) * weight
        return replace(self, seats_per_person=min(MOST_SEATS_PER_PERSON, mean))

    def as_text(self, set_name: str = "", most_text: int = MOST_TEXT) -> str:
        """The history in the form that `read_history` reads. The oldest days are left out of a text
        that is too long.

        set_name: of the placeholder set; "": of any. most_text: in characters.
        """
        account = self.account.as_json()
        most = most_text - len(json.dumps(account))
        kept = len(self.levels)
        packed = _packed(self.levels)
        while len(packed) > most and kept > 1:
            kept = kept * 3 // 4
            packed = _packed(self.levels[-kept:])
        body = {
            "version": _VERSION,
            **({"set": set_name} if set_name else {}),
            "perNode": self.per_node,
            "seatsPerPerson": round(self.seats_per_person, 3),
            "bootSeconds": self.boots,
            "pullSeconds": self.pulls,
            "account": account,
            "first": self.end - kept,
            "levels": packed,
        }
        return json.dumps(body, separators=(",", ":"))


def _packed(levels: array[int]) -> str:
    if not levels:
        return ""
    changes = array("i", map(sub, levels, chain((0,), levels)))
    return b64encode(zlib.compress(changes.tobytes(), _COMPRESSION)).decode("ascii")


def share_of_text(sets: int, others: int = 0) -> int:
    """How long the text of each of so many sets may be. others: characters that are there
    besides.
    """
    return max(0, min(MOST_TEXT, (MOST_TEXT_IN_ALL - others) // max(1, sets)))


def read_history(text: str, now: int = _MOST_MINUTE, set_name: str = "") -> History:
    """Read a history up to the present. Raises HistoryError for anything else, saying what was
    found and expected.

    set_name: of the set that it must be of, if it says so; "": any. A faulty account is left out.
    """
    try:
        body = json.loads(text)
        # No text makes more of itself than what is kept.
        packed = zlib.decompressobj().decompress(
            b64decode(body["levels"]), 4 * (KEPT_MINUTES + DAY_MINUTES)
        )
        levels = array("i", accumulate(array("i", packed))) if packed else array("i")
        boots = tuple(map(int, body["bootSeconds"]))[-KEPT_BOOTS:]
        # Older texts have none.
        pulls = tuple(map(int, body.get("pullSeconds", ())))[-KEPT_PULLS:]
        history = History(
            int(body["first"]),
            levels,
            boots,
            pulls,
            per_node=int(body.get("perNode", 0)),
            seats_per_person=float(body.get("seatsPerPerson", 1.0)),
            account=_account_of(body, now + DAY_MINUTES),
        )
        version = body["version"]
        of_set = body.get("set", set_name)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, zlib.error) as error:
        raise HistoryError(
            f"found {text[:30]!r}, expected a history as the controllers write it: {error}"
        ) from None
    is_sound = (
        0 <= history.first <= history.end <= now + DAY_MINUTES
        and UNSEEN <= min(levels, default=0) <= max(levels, default=0) <= MOST_USERS
        and 0 <= min(boots, default=0) <= max(boots, default=0) <= MOST_BOOT_SECONDS
        and 0 <= min(pulls, default=0) <= max(pulls, default=0) <= MOST_PULL_SECONDS
        and 0 <= history.per_node <= MOST_USERS
        and 0 <= history.seats_per_person <= MOST_SEATS_PER_PERSON
    )
    if set_name and of_set != set_name:
        raise HistoryError(
            f"found what set {str(of_set)[:60]} learned, expected what set {set_name} did"
        )
    if not is_sound or version not in _READABLE_VERSIONS:
        raise HistoryError(
            f"found {text[:30]!r} of days to come or out of range, expected version {_VERSION}"
        )
    return history


def _account_of(body: Mapping[str, object], now: int) -> Account:
    """The account; an empty one in place of a faulty one, for the weeks of people matter more."""
    try:
        return read_account(body.get("account"), now)
    except (ValueError, KeyError, TypeError, OverflowError):
        return Account()


def size_in_placeholders(
    cpu: float, memory: float, placeholder_cpu: float, placeholder_memory: float
) -> float:
    """Return a pod's requests in placeholders, by the scarcer of CPU and memory; 1 where nothing
    can be compared.
    """
    shares = [
        asked / own
        for asked, own in ((cpu, placeholder_cpu), (memory, placeholder_memory))
        if asked > 0 and own > 0
    ]
    return max(shares, default=1.0)


def history_of(
    past_sessions: Iterable[tuple[float, float, float]], seen: Collection[int] = ()
) -> History:
    """Make a history of past sessions: (begin, end, size in placeholders).

    seen: the minutes in which somebody looked; none: from the first begin to the last.
    """
    sessions = [(begin, end, size) for begin, end, size in past_sessions if end > begin]
    # When the level changes, and by how much.
    changes = sorted(
        change for begin, end, size in sessions for change in ((begin, size), (end, -size))
    )
    if not changes:
        return History()
    if seen:
        first = min(seen)
        last = max(seen)
    else:
        first_begin = min(begin for begin, _, _ in sessions)
        last_begin = max(begin for begin, _, _ in sessions)
        first = ceil(first_begin / MINUTE_SECONDS)
        last = ceil(last_begin / MINUTE_SECONDS)
    end_minute = last + 1
    first = max(first, end_minute - KEPT_MINUTES)
    # By how much the level changes at each minute.
    steps = [0.0] * (end_minute - first)
    for at, change in changes:
        index = max(0, ceil(at / MINUTE_SECONDS) - first)
        if index < len(steps):
            steps[index] += change
    levels = array("i")
    for minute, level in enumerate(accumulate(steps), first):
        users = min(MOST_USERS, max(0, round(level)))
        levels.append(users if not seen or minute in seen else UNSEEN)
    seconds = sum(end - begin for begin, end, _ in sessions)
    seat_seconds = sum((end - begin) * size for begin, end, size in sessions)
    return History(
        first, levels, seats_per_person=min(MOST_SEATS_PER_PERSON, seat_seconds / seconds)
    )
