"""Compute the best hit rates of one cache of images, and the reach of yesterday's popular images, from a trace alone.

Sources: Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966;
for images of different sizes Berger, Beckmann and Harchol-Balter, "Practical bounds on optimal caching with variable
object sizes", POMACS 2(2), 2018 (PFOO-L).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

# Images that a cache holds.
CACHE_SIZES: Final = (10, 20, 50, 100, 200, 500, 1000)
COVER_SIZES: Final = (10, 20, 50, 100, 200)
# Sizes of caches: a node's disk divided by each.
DISK_PARTS: Final = (16, 8, 4, 2, 1)
_NEVER: Final = 1 << 60


class CacheRow(NamedTuple):
    """Shares of launches, 0..1, that find their image in one cache of so many equal images."""

    size: int
    lru: float
    # The best of any cache that must hold each image when it is launched.
    best: float


class DiskRow(NamedTuple):
    """Shares of launches, 0..1, that find their image in one cache of so many bytes."""

    disk_bytes: int
    lru: float
    # An upper bound for any cache.
    most: float


class CoverRow(NamedTuple):
    """Share of a day's launches, 0..1, of the images that were most popular the day before."""

    size: int
    share: float


def cache_rows(launches: Sequence[int], sizes: Sequence[int] = CACHE_SIZES) -> list[CacheRow]:
    """launches: image numbers. Of the sizes that hold all images only the first is kept."""
    distinct = len(set(launches))
    rows = []
    following = _following(launches)
    for size in sizes:
        number = len(launches)
        rows.append(CacheRow(size, lru_hits(launches, size) / number, best_hits(launches, size, following) / number))
        if size >= distinct:
            break
    return rows


def lru_hits(launches: Sequence[int], size: int) -> int:
    """Hits of a cache that drops the least recently launched image."""
    return lru_hits_of_bytes(launches, [1] * (max(launches, default=-1) + 1), size)


def best_hits(launches: Sequence[int], size: int, following: Sequence[int] | None = None) -> int:
    """Hits of a cache that drops the image whose next launch is furthest away (MIN)."""
    upcoming = _following(launches) if following is None else following
    # Image -> its next launch; the heap also has outdated entries.
    cache: dict[int, int] = {}
    heap: list[tuple[int, int]] = []
    hits = 0
    for place, image in enumerate(launches):
        if image in cache:
            hits += 1
        elif len(cache) >= size:
            while True:
                farthest, victim = heappop(heap)
                if cache.get(victim) == -farthest:
                    del cache[victim]
                    break
        cache[image] = upcoming[place]
        heappush(heap, (-upcoming[place], image))
    return hits


def disk_rows(launches: Sequence[int], sizes: Sequence[int], disks: Sequence[int]) -> list[DiskRow]:
    """launches: image numbers. sizes: bytes by image. disks: ascending; stops at the first that holds all images."""
    if not launches:
        return []
    total = sum(sizes[image] for image in set(launches))
    rows = []
    for disk_bytes, most in zip(disks, most_hits_of_bytes(launches, sizes, disks), strict=True):
        lru = lru_hits_of_bytes(launches, sizes, disk_bytes)
        rows.append(DiskRow(disk_bytes, lru / len(launches), most / len(launches)))
        if disk_bytes >= total:
            break
    return rows


def most_hits_of_bytes(launches: Sequence[int], sizes: Sequence[int], capacities: Sequence[int]) -> list[int]:
    """An upper bound of the hits of any cache of so many bytes, for each capacity.

    A hit costs the image's bytes for the time since its last launch, counted in launches. All hits together can't cost
    more than the cache's bytes for all the time, so the cheapest ones are the most there can be.
    """
    last: dict[int, int] = {}
    costs: list[tuple[int, int]] = []
    for place, image in enumerate(launches):
        before = last.get(image)
        if before is not None:
            costs.append((sizes[image] * (place - before), sizes[image]))
        last[image] = place
    costs.sort()
    hits_of = []
    for capacity in capacities:
        left, hits = capacity * max(0, len(launches) - 1), 0
        for cost, size in costs:
            if cost > left:
                break
            if size <= capacity:
                left -= cost
                hits += 1
        hits_of.append(hits)
    return hits_of


def lru_hits_of_bytes(launches: Sequence[int], sizes: Sequence[int], capacity: int) -> int:
    """Hits of a cache that drops the least recently launched images until the new one fits."""
    cache: OrderedDict[int, None] = OrderedDict()
    used = hits = 0
    for image in launches:
        if image in cache:
            hits += 1
            cache.move_to_end(image)
            continue
        cache[image] = None
        used += sizes[image]
        while used > capacity:
            gone, _ = cache.popitem(last=False)
            used -= sizes[gone]
    return hits


def cover_rows(launches: Sequence[int], days: Sequence[int], sizes: Sequence[int] = COVER_SIZES) -> list[CoverRow]:
    """launches, days: image number and day of each launch. Empty without two consecutive days."""
    by_day: dict[int, Counter[int]] = {}
    for image, day in zip(launches, days, strict=True):
        by_day.setdefault(day, Counter())[image] += 1
    pairs = [(by_day[day - 1], by_day[day]) for day in by_day if day - 1 in by_day]
    total = sum(today.total() for _, today in pairs)
    if not total:
        return []
    rows = []
    for size in sizes:
        covered = 0
        for yesterday, today in pairs:
            popular = sorted(yesterday, key=lambda image: (-yesterday[image], image))[:size]
            covered += sum(today[image] for image in popular)
        rows.append(CoverRow(size, covered / total))
    return rows


def _following(launches: Sequence[int]) -> list[int]:
    """For each launch the index of its image's next launch; distinct large numbers for images that never return."""
    upcoming = [0] * len(launches)
    last: dict[int, int] = {}
    for place in range(len(launches) - 1, -1, -1):
        upcoming[place] = last.get(launches[place], _NEVER + launches[place])
        last[launches[place]] = place
    return upcoming
