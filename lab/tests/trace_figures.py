"""Measure a launch trace the way the published figures of mybinder.org's were measured."""

from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence

from roost_lab.traces.attempt import Attempt

DAY = 86400
GAP_EDGES = (60, 600, 3600, 21600, 86400)


def figures(attempts: Iterable[Attempt]) -> dict[str, float]:
    """Name -> value; shares in percent. Times count from the midnight before the first attempt."""
    moments: list[float] = []
    images: list[str] = []
    owners: list[str] = []
    for attempt in attempts:
        moments.append(attempt.moment)
        images.append(attempt.image)
        owners.append(attempt.repository)
    repositories = Counter(owners)
    begin = moments[0] // DAY * DAY
    moments = [moment - begin for moment in moments]
    found: dict[str, float] = {
        "records": len(moments),
        "specs": len(set(images)),
        "repositories": len(repositories),
    }
    _popularity(found, Counter(images), repositories)
    _time(found, moments, images, owners)
    _novelty(found, moments, images)
    _caches(found, images)
    return found


def _popularity(found: dict[str, float], specs: Counter[str], repositories: Counter[str]) -> None:
    total = specs.total()
    ranked = [number for _, number in repositories.most_common()]
    for top in (1, 5, 10, 20, 50, 100, 500, 1000):
        found[f"top {top}"] = 100 * sum(ranked[:top]) / total
    counts = Counter(specs.values())
    found["specs once"] = 100 * counts[1] / len(specs)
    found["specs twice"] = 100 * counts[2] / len(specs)
    found["specs ten or more"] = (
        100 * sum(number for size, number in counts.items() if size >= 10) / len(specs)
    )


def _time(
    found: dict[str, float], moments: Sequence[float], images: Sequence[str], owners: Sequence[str]
) -> None:
    days = int(moments[-1] // DAY) + 1
    minutes = Counter(int(moment // 60) for moment in moments)
    counts = sorted(minutes.get(minute, 0) for minute in range(days * 1440))
    mean = sum(counts) / len(counts)
    found["minute mean"] = mean
    found["minute p99"] = counts[int(0.99 * len(counts))]
    found["minute p99.9"] = counts[int(0.999 * len(counts))]
    found["minute max"] = counts[-1]
    found["minute dispersion"] = sum((count - mean) ** 2 for count in counts) / len(counts) / mean
    found["same spec in a minute max"] = max(
        Counter(zip((int(m // 60) for m in moments), images, strict=True)).values()
    )
    hours = Counter(int(moment // 3600) for moment in moments)
    found["hour max"], found["hour min"] = max(hours.values()), min(hours.values())
    by_hour = Counter(int(moment % DAY // 3600) for moment in moments)
    for hour in range(24):
        found[f"hour {hour:02}"] = by_hour[hour] / days
    # The first day is a Wednesday, in the published window as in the generator's.
    per_day = Counter(int(moment // DAY) for moment in moments)
    weekend = [per_day[day] for day in range(days) if day % 7 in (3, 4)]
    weekdays = [per_day[day] for day in range(days) if day % 7 not in (3, 4)]
    found["weekday"], found["weekend day"] = (
        sum(weekdays) / len(weekdays),
        sum(weekend) / max(1, len(weekend)),
    )
    head = {repository for repository, _ in Counter(owners).most_common(20)}
    tail = Counter(
        int(m // 60) for m, owner in zip(moments, owners, strict=True) if owner not in head
    )
    tail_counts = [tail.get(minute, 0) for minute in range(days * 1440)]
    tail_mean = sum(tail_counts) / len(tail_counts)
    found["tail dispersion"] = (
        sum((count - tail_mean) ** 2 for count in tail_counts) / len(tail_counts) / tail_mean
    )


def _novelty(found: dict[str, float], moments: Sequence[float], images: Sequence[str]) -> None:
    seen: dict[str, float] = {}
    firsts: list[float] = []
    gaps = [0] * (len(GAP_EDGES) + 2)
    hourly: dict[int, set[str]] = {}
    daily: dict[int, Counter[str]] = {}
    for moment, image in zip(moments, images, strict=True):
        before = seen.get(image)
        if before is None:
            firsts.append(moment)
            gaps[-1] += 1
        else:
            # Published from times rounded down to the minute.
            gaps[bisect_left(GAP_EDGES, moment // 60 * 60 - before // 60 * 60)] += 1
        seen[image] = moment
        hourly.setdefault(int(moment // 3600), set()).add(image)
        daily.setdefault(int(moment // DAY), Counter())[image] += 1
    for name, seconds in (
        ("1 h", 3600),
        ("6 h", 21600),
        *((f"{day} d", day * DAY) for day in (1, 2, 3, 5, 7, 10)),
    ):
        found[f"specs by {name}"] = bisect_right(firsts, seconds)
    for name, number in zip(
        ("1 min", "10 min", "1 h", "6 h", "24 h", "more", "first"), gaps, strict=True
    ):
        found[f"gap {name}"] = 100 * number / len(moments)
    found["specs an hour"] = sum(map(len, hourly.values())) / len(hourly)
    found["specs an hour max"] = max(map(len, hourly.values()))
    found["specs a day"] = sum(map(len, daily.values())) / len(daily)
    pairs = [(daily[day], daily[day + 1]) for day in sorted(daily) if day + 1 in daily]
    if not pairs:
        return
    found["next-day overlap"] = (
        100 * sum(len(a.keys() & b.keys()) / len(b) for a, b in pairs) / len(pairs)
    )
    for top in (10, 20, 50, 100, 200):
        covered = sum(sum(b[image] for image, _ in a.most_common(top)) for a, b in pairs)
        found[f"yesterday's {top}"] = 100 * covered / sum(b.total() for _, b in pairs)


def _caches(found: dict[str, float], images: Sequence[str]) -> None:
    for size in (10, 20, 50, 100, 200, 500, 1000):
        held: OrderedDict[str, None] = OrderedDict()
        hits = 0
        for image in images:
            if image in held:
                hits += 1
                held.move_to_end(image)
            else:
                held[image] = None
                if len(held) > size:
                    held.popitem(last=False)
        found[f"LRU {size}"] = 100 * hits / len(images)
