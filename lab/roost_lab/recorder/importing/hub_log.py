"""Find whose start a hub's log tells of, by the names that KubeSpawner gives to pods: the log names
users.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

import sqlalchemy as sa

from roost_lab.recorder.importing.objects import Unusable
from roost_lab.recorder.recording.hub_log import EARLY_US, LONGEST_US, HubNews
from roost_lab.recorder.recording.pod_records import hub_records
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import Phase, Record
from roost_lab.units import DAY_US, US

NO_POD: Final = "news in a hub's log of a start whose pod isn't recorded"
SEVERAL: Final = "news in a hub's log of a user with pods in several namespaces"
# How long a server that seating asked for may wait for its user, at most.
LONGEST_LIFE_US: Final = 7 * DAY_US
_PLAIN: Final = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_LENGTH: Final = 37


def news_records(store: Store, news: HubNews, failures_us: Sequence[int] = ()) -> list[Record]:
    """The records of a hub's news, about the pod that it may mean: the newest, or of a request of
    seating the next. What seating's servers came to is told of these alone.

    failures_us: when the hub said that starts of that server failed, sorted. Raises Unusable,
    StoreError.
    """
    at_us = news.when.at_us
    if news.outcome is Phase.SEATED:
        # Pods of starts that failed before it, and of those after it has failed, aren't its.
        before = [failed for failed in failures_us if failed < news.asked_us]
        after = failures_us[len(before) :]
        since_us = max(news.asked_us - EARLY_US, max(before, default=0) // US * US)
        until_us = min([news.latest_us, *after[:1]])
        found = _pods(store, news, since_us, until_us)[-1:]
        return hub_records(found[0], news) if found else []
    if news.outcome in (Phase.OPENED, Phase.UNUSED):
        seated = _newest_if_seated(store, news)
        return hub_records(seated, news) if seated is not None else []
    since_us = at_us - (news.span_us or LONGEST_US) - EARLY_US
    found = _pods(store, news, since_us, at_us + EARLY_US)
    if not found:
        raise Unusable(NO_POD)
    return hub_records(found[0], news)


def _newest_if_seated(store: Store, news: HubNews) -> str | None:
    """The uid of the pod that somebody opened, or that was stopped, if it was seating's.

    Each visit of each user to a server is such news, so a server that isn't seating's skips
    nothing. Raises Unusable, StoreError.
    """
    found = _find(store, news, news.asked_us - LONGEST_LIFE_US, news.asked_us)
    newest: dict[str, str] = {}
    for uid, namespace in found:
        newest.setdefault(namespace, uid)
    if not any(_is_seated(store, uid) for uid in newest.values()):
        return None
    return _of_one_namespace(found)[0]


def _pods(store: Store, news: HubNews, since_us: int, until_us: int) -> Sequence[str]:
    """The pods of its server that were created in a time, by uid, the newest first.

    Raises Unusable, StoreError.
    """
    return _of_one_namespace(_find(store, news, since_us, until_us))


def _of_one_namespace(found: Sequence[tuple[str, str]]) -> Sequence[str]:
    if len({namespace for _, namespace in found}) > 1:
        raise Unusable(SEVERAL)
    return [uid for uid, _ in found]


def _find(store: Store, news: HubNews, since_us: int, until_us: int) -> Sequence[tuple[str, str]]:
    """The pods that may be of its server in any namespace, by uid and namespace, the newest first.

    Raises StoreError.
    """
    user, _, server = news.who.partition(":")
    pod = schema.pod.c
    named = sa.or_(*(pod.name.startswith(f"{name}--", autoescape=True) for name in pod_names(user)))
    default = pod.name.in_(pod_names(user))
    if server:
        names = named
    elif news.outcome is Phase.FAILED:
        names = sa.or_(named, default)
    else:
        names = default
    query = sa.select(pod.uid, pod.namespace).where(
        names, pod.created_us.between(since_us, until_us)
    )
    with store.reading() as connection:
        found = connection.execute(query.order_by(pod.created_us.desc()))
        return [(row.uid, row.namespace) for row in found]


def _is_seated(store: Store, uid: str) -> bool:
    phase = schema.phase.c
    query = sa.select(phase.pod_uid).where(phase.pod_uid == uid, phase.phase == Phase.SEATED)
    with store.reading() as connection:
        return connection.execute(query).first() is not None


def arrivals_us(news: Iterable[HubNews]) -> list[int]:
    """When people came, by a hub's log alone: when they asked for their server, or first opened one
    that seating had asked for. Sorted, in microseconds.
    """
    arrivals: list[int] = []
    requests: dict[str, HubNews] = {}
    waiting: set[str] = set()
    ordered = sorted(news, key=lambda item: (item.asked_us, item.outcome is not Phase.SEATED))
    for item in ordered:
        who = item.who
        if item.outcome is Phase.SEATED:
            requests[who] = item
            waiting.add(who)
        elif item.outcome is Phase.OPENED and who in waiting:
            waiting.discard(who)
            arrivals.append(item.when.at_us)
        elif item.outcome is Phase.ANSWERED:
            request = requests.get(who)
            if request is None or not request.may_have_begun(item.asked_us):
                waiting.discard(who)
                arrivals.append(item.asked_us)
    return sorted(arrivals)


def pod_names(user: str) -> list[str]:
    """What KubeSpawner may call a user's pod: as it is, in its own way of escaping, and in that
    before version 7.
    """
    short = re.sub(r"[^a-z0-9]+", "-", user.lower()).lstrip("-")[:_LENGTH].rstrip("-")
    if not short[:1].isalpha():
        short = f"x-{short[: _LENGTH - 2]}" if short else "x"
    safe = f"{short}---{sha256(user.encode()).hexdigest()[:8]}"
    old = "".join(
        char if char in _UNESCAPED else "".join(f"-{byte:02x}" for byte in char.encode())
        for char in user
    )
    plain = [user] if _PLAIN.fullmatch(user) and "--" not in user else []
    return [f"jupyter-{name}" for name in (*plain, safe, old)]


_UNESCAPED: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
