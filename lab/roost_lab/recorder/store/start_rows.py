"""Keep a short row for each pod with what reports count, updated in the transaction that changes
its sources.

Guarantee: everything here follows from the tables pod, node, decision and phase. A report over a
million pods reads one row of numbers for each, in order of time, and looks nothing up.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import (
    MAX_IMAGE,
    DecisionKind,
    DecisionRecord,
    Phase,
    PhaseRecord,
    PodRecord,
    PodSource,
    Record,
)
from roost_lab.recorder.store.schema import POSTGRESQL, SQLITE
from roost_lab.units import US

# What the columns are the times of, where phases tell them; of several the last.
_REACHED: Final = {
    "running": (Phase.STARTED,),
    "ready": (Phase.READY,),
    "asked": (Phase.ASKED,),
    "answered": (Phase.ANSWERED,),
    "failed": (Phase.FAILED, Phase.ABANDONED),
    "seated": (Phase.SEATED,),
    "opened": (Phase.OPENED,),
    "unused": (Phase.UNUSED,),
}
_PHASES: Final = frozenset(
    {Phase.CREATED, *(phase for phases in _REACHED.values() for phase in phases)}
)
_TIME: Final = "max(CASE WHEN phase IN ('{}') THEN at_us END) AS {}_us"
_TIMES: Final = ", ".join(
    _TIME.format("', '".join(phases), name) for name, phases in _REACHED.items()
)
# Number of PostgreSQL's advisory lock for kinds and places; arbitrary, different from that of
# migrations.
_LOCK: Final = 7026422
# How a list of uids is passed as one parameter.
_AMONG: Final = {SQLITE: "IN (SELECT value FROM json_each(:uids))", POSTGRESQL: "= ANY(:uids)"}

# Known values stay, whatever another writer hasn't seen yet.
_UPDATED: Final = tuple(column.name for column in schema.start.columns if not column.primary_key)
_UPDATES: Final = ", ".join(
    f"{name} = coalesce(excluded.{name}, start.{name})" for name in _UPDATED
)
# Kinds and places that may no longer be used.
_UNUSED: Final = (
    (schema.start_kind, schema.start_kind.c.id, schema.start.c.kind_id),
    (schema.start_place, schema.start_place.c.id, schema.start.c.place_id),
)


def pod_of(record: Record) -> str | None:
    """The uid of the pod whose start a record is about; None when it is about none."""
    match record:
        case PodRecord():
            return record.uid
        case PhaseRecord() if record.phase in _PHASES:
            return record.pod_uid
        case DecisionRecord() if record.kind == DecisionKind.BIND:
            return record.pod_uid
    return None


def refresh(connection: sa.Connection, uids: Collection[str]) -> None:
    """Update the starts of these pods from the other tables, within the transaction that wrote
    those.
    """
    if not uids:
        return
    dialect = connection.dialect.name
    if dialect != SQLITE:
        # Keeps kinds and places from being deleted while starts refer to them; SQLite has one
        # writer anyway.
        connection.execute(sa.text(f"SELECT pg_advisory_xact_lock_shared({_LOCK})"))
    for statement in _STATEMENTS[dialect][:-1]:
        connection.execute(statement, _parameters(dialect, uids))


def forget_estimates(connection: sa.Connection, uids: Collection[str]) -> None:
    """Delete the starts of pods known from Events alone, before records that may correct when they
    were created.
    """
    if not uids:
        return
    dialect = connection.dialect.name
    connection.execute(_STATEMENTS[dialect][-1], _parameters(dialect, uids))


def _parameters(dialect: str, uids: Collection[str]) -> dict[str, object]:
    ordered = sorted(uids)
    return {"uids": json.dumps(ordered) if dialect == SQLITE else ordered}


def forget(connection: sa.Connection, uids: Collection[str]) -> int:
    """Delete the starts of pods that are about to be deleted; returns how many."""
    start = schema.start
    pod = schema.pod.c
    keys = sa.select(pod.created_us, pod.uid).where(pod.uid.in_(uids))
    deletion = sa.delete(start).where(sa.tuple_(start.c.created_us, start.c.pod_uid).in_(keys))
    return connection.execute(deletion).rowcount


def forget_unused(connection: sa.Connection) -> None:
    """Delete the kinds and places that no start refers to."""
    if connection.dialect.name != SQLITE:
        connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    for table, number, used in _UNUSED:
        connection.execute(
            sa.delete(table).where(number.not_in(sa.select(used).where(used.is_not(None))))
        )


def _read(among: str) -> tuple[sa.TextClause, ...]:
    names = {
        "most": MAX_IMAGE,
        "bind": DecisionKind.BIND,
        "event": PodSource.EVENT,
        "created": Phase.CREATED,
    }
    text = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    text = text.format(among=among, updates=_UPDATES, times=_TIMES, second=US, **names)
    return tuple(map(sa.text, text.split(";\n")[:-1]))


# By dialect. The last statement of start_rows.sql forgets estimates.
_STATEMENTS: Final = {dialect: _read(among) for dialect, among in _AMONG.items()}
