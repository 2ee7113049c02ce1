"""Read which servers a hub had from Prometheus: from its address, or from a file of what its API
answered.
"""

from __future__ import annotations

import json
import sys
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from math import ceil, isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

import urllib3

from generator.faults import UsageError, count_of
from roost_core.placement.headroom_history import DAY_MINUTES, KEPT_DAYS, MINUTE_SECONDS, MOST_USERS
from roost_core.placement.headroom_windows import local_time

# kube-state-metrics: when each pod was made.
PODS: Final = "kube_pod_created"
# JupyterHub: how many servers run.
SERVERS: Final = "jupyterhub_running_servers"
# Seconds between two values. Pods' times of creation stay, so they are asked for less often.
STEPS: Final = {PODS: 300, SERVERS: MINUTE_SECONDS}
# As KubeSpawner names pods.
USER_PODS: Final = "jupyter-"
# Prometheus gives no more than 11,000 points of a series at once.
_CHUNK_SECONDS: Final = 7 * 86_400
# A sample stands for an hour at most.
_MOST_STEP_SECONDS: Final = 3600
# The largest answer. A week of 2,000 points has about 50 KiB for a pod.
_MOST_BYTES: Final = 256 * 2**20
_CHUNK_BYTES: Final = 2**16
_EXPECTED: Final = (
    f"Prometheus' JSON of /api/v1/query_range for {PODS} or {SERVERS}; give the address of"
    " Prometheus itself, such as http://localhost:9090 after kubectl port-forward, or a file of"
    " the answer"
)


class Usage(NamedTuple):
    """What Prometheus knows of a hub's servers."""

    # (begin, end) of each, Unix time.
    sessions: Sequence[tuple[float, float]]
    # Minutes since 1970 in which anything was seen.
    minutes_seen: frozenset[int]
    # What this was read from, how fine, and what is missing: a line each.
    notes: Sequence[str]


def read_usage(source: str, namespace: str) -> Usage:
    """Read an address, or a file. namespace: the hub's.

    Raises UsageError that says what was found, and the fix.
    """
    if "://" in source:
        source = urllib3.util.parse_url(source)._replace(auth=None).url
        series = _of_address(source, namespace)
    else:
        series = _of_file(source)
    strange = {time_series["metric"]["__name__"] for time_series in series} - STEPS.keys()
    if strange:
        raise UsageError(f"{source}: found {', '.join(sorted(strange))}, expected {_EXPECTED}")
    of_hub = _of_namespace(series, namespace, source)
    by_pods = any(time_series["metric"]["__name__"] == PODS for time_series in of_hub)
    metric = PODS if by_pods else SERVERS
    of_hub = [time_series for time_series in of_hub if time_series["metric"]["__name__"] == metric]
    step = _step_of(of_hub)
    minutes_seen = _minutes_with_data(of_hub, step)
    is_of_users_alone = by_pods and all(
        _is_of_users(time_series["metric"]) for time_series in of_hub
    )
    if is_of_users_alone:
        minutes_seen = _with_minutes_without_users(minutes_seen, of_hub)
    sessions = sorted(_of_pods(of_hub, step) if by_pods else _of_levels(of_hub, step))
    if not sessions:
        found = f"pods, none of them {USER_PODS}…" if by_pods else "no server at any time"
        raise UsageError(f"{source}: found {found} in {namespace}, expected users' servers")
    notes = [*_tell(source, sessions, minutes_seen, step, by_pods=by_pods)]
    if is_of_users_alone:
        notes.insert(
            2,
            f"  only pods {USER_PODS}… are in it: hours without any count as without users (an"
            " answer with all pods of the namespace tells them from gaps)",
        )
    return Usage(sessions, frozenset(minutes_seen), notes)


def _of_address(address: str, namespace: str) -> list[Any]:
    """The series of the first metric that tells of users; [] if none does."""
    for metric in STEPS:
        answer = _asked(address, metric, namespace)
        if any(_is_of_users(time_series["metric"]) for time_series in answer):
            return answer
    return []


def _of_file(path: str) -> list[Any]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path}: can't be read ({type(error).__name__}), expected {_EXPECTED}"
        ) from None
    return _series(text, path)


def _of_namespace(series: Iterable[Any], namespace: str, source: str) -> list[Any]:
    """The series of the hub's namespace, with those that name none. Raises UsageError if there are
    none.
    """
    of_hub = []
    others = set()
    for time_series in series:
        of_series = time_series["metric"].get("namespace", namespace)
        if of_series == namespace:
            of_hub.append(time_series)
        else:
            others.add(of_series)
    if of_hub:
        return of_hub
    found = f"neither {PODS} of {USER_PODS}… nor {SERVERS}"
    if others:
        found = f"those of {', '.join(sorted(others))} alone"
    raise UsageError(
        f"{source}: found {found}, expected some of namespace {namespace} in the last"
        f" {KEPT_DAYS} days; say the hub's with -n, and see that Prometheus scrapes"
        " kube-state-metrics or the hub"
    )


def _step_of(series: Iterable[Any]) -> int:
    """Seconds between two samples, by the least there are: from a minute to an hour."""
    least = min(
        (
            next_sample[0] - sample[0]
            for time_series in series
            for sample, next_sample in pairwise(time_series["values"])
        ),
        default=MINUTE_SECONDS,
    )
    return min(max(int(least), MINUTE_SECONDS), _MOST_STEP_SECONDS)


def _minutes_with_data(series: Iterable[Any], step: int) -> set[int]:
    """Minutes since 1970 of which a sample tells: it stands until the next one."""
    stands_minutes = range(ceil(step / MINUTE_SECONDS))
    return {
        at // MINUTE_SECONDS + minute
        for time_series in series
        for at, _ in time_series["values"]
        for minute in stands_minutes
    }


def _asked(source: str, metric: str, namespace: str) -> list[Any]:
    """All series of a metric; the hub's own metric with those of other namespaces, so that errors
    can name these.
    """
    query = metric
    step = STEPS[metric]
    now = int(time.time()) // 300 * 300
    if metric == PODS:
        query += f"{{namespace={json.dumps(namespace)}}}"
    series = []
    for begin in range(now - KEPT_DAYS * 86_400, now, _CHUNK_SECONDS):
        fields = {
            "query": query,
            "start": str(begin),
            "end": str(begin + _CHUNK_SECONDS - step),
            "step": str(step),
        }
        try:
            answer = urllib3.request(
                "GET",
                f"{source.rstrip('/')}/api/v1/query_range",
                fields=fields,
                retries=False,
                timeout=60,
                preload_content=False,
            )
            text = _text_of(answer, source)
        except urllib3.exceptions.HTTPError as error:
            raise UsageError(f"{source}: found {str(error)!r}, expected {_EXPECTED}") from None
        if answer.status in (301, 302, 303, 307, 308, 401, 403):
            raise UsageError(
                f"{source}: found {answer.status} {answer.reason}, expected an API without a login."
                " Save what curl gets with your token of /api/v1/query_range, and give that file"
            )
        series += _series(text, source)
    return series


def _text_of(answer: urllib3.BaseHTTPResponse, source: str) -> str:
    """An answer's text. Raises UsageError for one that is too long once it is unpacked."""
    parts: list[bytes] = []
    length = 0
    try:
        for part in answer.stream(_CHUNK_BYTES):
            length += len(part)
            if length > _MOST_BYTES:
                raise UsageError(
                    f"{source}: found an answer of more than {_MOST_BYTES // 2**20} MiB, expected"
                    f" {_EXPECTED}"
                )
            parts.append(part)
    finally:
        answer.close()
    return b"".join(parts).decode(errors="replace")


def _series(text: str, source: str) -> list[Any]:
    """The series of one answer or several, one after the other."""
    decoder = json.JSONDecoder()
    rest = text.strip() or "nothing"
    series = list[Any]()
    latest = time.time() + 86_400
    found = rest[:40]
    try:
        while rest:
            body, end = decoder.raw_decode(rest)
            rest = rest[end:].lstrip()
            found = str(body.get("error") or body["data"]["resultType"])
            for result in body["data"]["result"]:
                # Another type has no values.
                read = [(int(at), float(number)) for at, number in result["values"]]
                labels = {key: str(label) for key, label in result["metric"].items()}
                labels.setdefault("__name__", PODS if "pod" in labels else SERVERS)
                if values := [
                    (at, number) for at, number in read if 0 < at < latest and isfinite(number)
                ]:
                    series.append({"metric": labels, "values": values})
                else:
                    found = "no number at a time of the past, in seconds since 1970"
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        broken = isinstance(error, json.JSONDecodeError) and rest.startswith("{")
        ends = ", broken off or damaged" if broken else ""
        raise UsageError(f"{source}: found {found!r}{ends}, expected {_EXPECTED}") from None
    if not series and found.startswith("no number"):
        raise UsageError(f"{source}: found {found}, expected {_EXPECTED}")
    return series


def _is_of_users(metric: Mapping[str, str]) -> bool:
    return metric["__name__"] != PODS or metric.get("pod", "").startswith(USER_PODS)


def _with_minutes_without_users(
    looked_at: set[int], series: Iterable[Mapping[str, Any]]
) -> set[int]:
    """The minutes in which something was seen, and those between in which no user was there.

    Where the same pod is there before and after, Prometheus didn't look.
    """
    spans: dict[tuple[str, float], tuple[int, int]] = {}
    for time_series in series:
        for at, created in time_series["values"]:
            key = time_series["metric"]["pod"], created
            first, last = spans.get(key, (at, at))
            spans[key] = min(first, at), max(last, at)
    ordered = sorted((first // 60, last // 60) for first, last in spans.values())
    first_minutes = [first_minute for first_minute, _ in ordered]
    # For the pods up to each: the last minute in which any of them was there.
    last_minutes = list(accumulate((last_minute for _, last_minute in ordered), max))
    minutes = set(looked_at)
    for before, after in pairwise(sorted(looked_at)):
        if last_minutes[bisect_right(first_minutes, before) - 1] < after:
            minutes.update(range(before, after))
    return minutes


def _of_pods(series: Iterable[Mapping[str, Any]], step: int) -> Iterator[tuple[float, float]]:
    ends: dict[tuple[str, float], float] = {}
    for time_series in series:
        # A pod and the next one of its name may be one series.
        if _is_of_users(time_series["metric"]):
            for last, created in time_series["values"]:
                key = time_series["metric"]["pod"], created
                ends[key] = max(ends.get(key, 0.0), last + step)
    return ((created, end) for (_, created), end in ends.items())


def _of_levels(series: Iterable[Mapping[str, Any]], step: int) -> Iterator[tuple[float, float]]:
    """Stays made of levels: whoever came first leaves first. A hub's pod that is replaced begins
    another series.
    """
    levels: dict[int, int] = {}
    for time_series in series:
        for at, number in time_series["values"]:
            levels[at] = max(levels.get(at, 0), min(MOST_USERS, int(number)))
    here: deque[float] = deque()
    for at in sorted(levels):
        while len(here) > levels[at]:
            yield here.popleft(), at
        here.extend([float(at)] * (levels[at] - len(here)))
    yield from ((begin, max(levels) + step) for begin in here)


def _tell(
    source: str,
    sessions: Sequence[tuple[float, float]],
    minutes: set[int],
    step: int,
    *,
    by_pods: bool,
) -> Iterator[str]:
    first = local_time(min(minutes) * 60.0, "UTC")
    last = local_time((max(minutes) + 1) * 60.0, "UTC")
    days = len(minutes) / DAY_MINUTES
    yield f"{source}: {len(sessions)} servers in {days:.1f} days, {first} to {last}"
    if by_pods:
        yield f"  from {PODS}: begins to the second, ends to {step} s"
    else:
        yield (
            f"  from {SERVERS}, each {step} s: who came while another left isn't seen"
            f" ({PODS} would say it)"
        )
    spans = [after - before for before, after in pairwise(sorted(minutes))]
    gaps = [span - 1 for span in spans if span > 5]
    if gaps:
        yield f"  {count_of(len(gaps), 'gap')}, {sum(gaps) / 60:.1f} hours in all: unknown"
    yield (
        "  missing: sizes (each counts as one placeholder), and how long nodes boot (240 s until"
        " that is learned)"
    )
    if len(minutes) < 3 * DAY_MINUTES:
        yield "  thin: a forecast needs two earlier days, and a weekly lecture two weeks"
