"""Find whose start a hub's log tells of, by the names that KubeSpawner gives to pods: the log names
users.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

import sqlalchemy as sa

from roost_lab.recorder.importing.objects import Unusable
from roost_lab.recorder.recording.hub_log import EARLY_US, LONGEST_US, HubNews
from roost_lab.recorder.recording.pod_records import hub_records
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import Phase, Record

NO_POD: Final = "news in a hub's log of a start whose pod isn't recorded"
SEVERAL: Final = "news in a hub's log of a user with pods in several namespaces"
_PLAIN: Final = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_LENGTH: Final = 37


def news_records(store: Store, news: HubNews) -> list[Record]:
    """The records of a hub's news, about the newest pod that it may mean.

    Raises Unusable, StoreError.
    """
    user, _, server = news.who.partition(":")
    pod = schema.pod.c
    at_us = news.when.at_us
    named = sa.or_(*(pod.name.startswith(f"{name}--", autoescape=True) for name in pod_names(user)))
    default = pod.name.in_(pod_names(user))
    if server:
        names = named
    elif news.outcome is Phase.FAILED:
        names = sa.or_(named, default)
    else:
        names = default
    since_us = at_us - (news.span_us or LONGEST_US) - EARLY_US
    query = sa.select(pod.uid, pod.namespace).where(
        names, pod.created_us.between(since_us, at_us + EARLY_US)
    )
    with store.reading() as connection:
        found = connection.execute(query.order_by(pod.created_us.desc())).all()
    if not found:
        raise Unusable(NO_POD)
    if len({row.namespace for row in found}) > 1:
        raise Unusable(SEVERAL)
    return hub_records(found[0].uid, news)


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
