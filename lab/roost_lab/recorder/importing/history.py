"""Import files: read them to their end, store what can be stored, and count the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

import sqlalchemy as sa

from roost_core.objects.fields import JSONObject
from roost_lab.recorder.importing.audit import audit_records
from roost_lab.recorder.importing.clocks import Clocks, clocks_behind
from roost_lab.recorder.importing.files import Counts, read_values
from roost_lab.recorder.importing.hub_log import news_records
from roost_lab.recorder.importing.objects import Unusable, event_records, pod_records
from roost_lab.recorder.importing.wrappers import (
    AUDIT,
    EVENTS,
    HUB_NEWS,
    NOTHING,
    PODS,
    find_objects,
)
from roost_lab.recorder.recording.hub_log import HubNews
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import Phase, PhaseRecord, PodRecord, Record

# Rows of one transaction.
BATCH: Final = 5_000
# What malformed objects make the readers raise: they expect the API server's.
_MALFORMED: Final = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
_READ: Final = {EVENTS: event_records, PODS: pod_records, AUDIT: audit_records}
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_INTEGER: Final = 2**31 - 1
_BIG_INTEGER: Final = 2**63 - 1


@dataclass(slots=True)
class ImportedHistory:
    """What is being imported into one database."""

    store: Store
    counts: Counts = field(default_factory=Counts)
    # Uid of each pod -> its class.
    pods: dict[str, str] = field(default_factory=dict)
    # (time in µs, record, where it stands): not stored yet.
    _waiting: list[tuple[int, Record, str]] = field(default_factory=list)
    # What nodes' clocks date, and where it stands, until these are known: pods before Events, as
    # they know more.
    _dated: list[tuple[str, JSONObject, str]] = field(default_factory=list)
    _clocks: Clocks = field(default_factory=dict)
    # Hubs' news and where they stand, until all pods are known.
    _news: list[tuple[HubNews, str]] = field(default_factory=list)
    # When starts of each server failed, by its name in hubs' logs.
    _failures_us: dict[str, list[int]] = field(default_factory=dict)
    # Uids of the pods that hubs' news told of.
    _told: set[str] = field(default_factory=set)

    def read(self, names: Iterable[str]) -> None:
        """Import these files.

        Raises UnreadableError, StoreError; what was read before is stored.
        """
        try:
            for name in names:
                for value, place in read_values(name, self.counts):
                    for kind, item in find_objects(value):
                        if kind == NOTHING:
                            self.counts.skip(item, place)
                        elif kind == HUB_NEWS:
                            self._news.append((item, place))
                        else:
                            self._dated.append((kind, item, place))
                    if len(self._dated) >= BATCH:
                        self._take_dated()
        finally:
            self._take_dated()
            self._store()
            self._take_news()

    def _take_news(self) -> None:
        for news, _ in self._news:
            if news.outcome is Phase.FAILED:
                self._failures_us.setdefault(news.who, []).append(news.when.at_us)
        for failures_us in self._failures_us.values():
            failures_us.sort()
        # What became of seating's servers comes last: it is told of those that are stored as
        # seating's.
        later: list[tuple[HubNews, str]] = []
        for news, place in self._news:
            if news.outcome in (Phase.OPENED, Phase.UNUSED):
                later.append((news, place))
            else:
                self._take(HUB_NEWS, news, place)
        self._store()
        for news, place in later:
            self._take(HUB_NEWS, news, place)
        self._store()

    def _take_dated(self) -> None:
        self._clocks |= clocks_behind(item for kind, item, _ in self._dated if kind == EVENTS)
        for (node, _), behind in self._clocks.items():
            if behind:
                self.counts.clocks[node] = max(behind, self.counts.clocks.get(node, behind))
        for kind, item, place in sorted(self._dated, key=lambda dated: dated[0] == EVENTS):
            self._take(kind, item, place)
        self._dated.clear()

    def _take(self, kind: str, item: Any, place: str) -> None:  # noqa: ANN401 - JSON, or HubNews
        try:
            if kind == HUB_NEWS:
                at_us = 0
                records = news_records(self.store, item, self._failures_us.get(item.who, ()))
            else:
                at_us, records = _READ[kind](item, self._clocks)
        except Unusable as error:
            self.counts.skip(str(error), place)
            return
        except _MALFORMED:
            self.counts.skip(f"malformed {kind}", place)
            return
        for record in records:
            column = column_that_refuses(record)
            if column:
                self.counts.skip(f"{kind} with a value that no database holds ({column})", place)
                return
        if kind != HUB_NEWS:
            self.counts.used[kind] += 1
        elif records:
            # A start counts once, whatever its log says of it.
            self._told |= {record.pod_uid for record in records if isinstance(record, PhaseRecord)}
            self.counts.used[kind] = len(self._told)
        for record in records:
            if isinstance(record, PodRecord) and not self.pods.get(record.uid):
                self.pods[record.uid] = record.pod_class
            self._waiting.append((at_us, record, place))
        if len(self._waiting) >= BATCH:
            self._store()

    def _store(self) -> None:
        # By time: of a pod's images, the first one is that of its first container.
        self._waiting.sort(key=itemgetter(0))
        places = {id(record): place for _, record, place in self._waiting}

        def note_refused(record: Record, _: object) -> None:
            self.counts.skip("a row that the database refuses", places[id(record)])

        self.store.write_what_fits([record for _, record, _ in self._waiting], {}, note_refused)
        self._waiting.clear()


def column_that_refuses(record: Record) -> str:
    """The first column whose database type can't hold the record's value; "" when all can."""
    for name, limit in _LIMITS[type(record)]:
        value = getattr(record, name)
        if isinstance(value, str):
            is_too_long = limit is not None and len(value) > limit
            if is_too_long or "\0" in value or _HALF_PAIR.search(value):
                return name
        elif isinstance(value, int) and limit is not None and not -limit <= value <= limit:
            return name
    return ""


def _limit(column: sa.ColumnElement[object]) -> int | None:
    if isinstance(column.type, sa.String):
        return column.type.length
    return _BIG_INTEGER if isinstance(column.type, sa.BigInteger) else _INTEGER


_LIMITS: Final = {
    kind: [(column.name, _limit(column)) for column in kind.table.columns]
    for kind in Record.__subclasses__()
}
