"""Rows of the table phase, which is most of the record: kept short by a number in place of the pod's uid.

Guarantee: a pod has one number for as long as anything is stored under it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from roost_lab.recorder.store import schema
from roost_lab.recorder.store.phase_codes import PHASE_CODES, SOURCE_CODES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

# Uids that are looked up in one statement.
_PART: Final = 1_000
# As `shorten` gives them.
COLUMNS: Final = ("pod_number", "phase", "detail", "at_us", "resolution_us", "source")
_POD_UID, _PHASE, _DETAIL, _AT_US, _RESOLUTION_US, _SOURCE = range(6)


def shorten(connection: sa.Connection, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Fields of PhaseRecord as COLUMNS of the table, sorted by key; rows of one key keep their order."""
    numbers = _number_pods(connection, {row[_POD_UID] for row in rows})
    short = [
        (
            numbers[row[_POD_UID]],
            PHASE_CODES[row[_PHASE]],
            row[_DETAIL],
            row[_AT_US],
            row[_RESOLUTION_US],
            # None, for a source without a code, is refused by the database as any odd row is.
            SOURCE_CODES.get(row[_SOURCE]),
        )
        for row in rows
    ]
    short.sort(key=lambda row: row[: _DETAIL + 1])
    return short


def _number_pods(connection: sa.Connection, uids: Collection[str]) -> dict[str, int]:
    """The number of each pod; new ones are given within the transaction."""
    # Sorted, so that two writers cannot deadlock.
    numbers = _known(connection, sorted(uids))
    if missing := sorted(uid for uid in uids if uid not in numbers):
        insert = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(schema.pod_number)
        connection.execute(insert.on_conflict_do_nothing(), [{"uid": uid} for uid in missing])
        numbers |= _known(connection, missing)
    return numbers


def _known(connection: sa.Connection, uids: Sequence[str]) -> dict[str, int]:
    pod = schema.pod_number.c
    numbers: dict[str, int] = {}
    for start in range(0, len(uids), _PART):
        query = sa.select(pod.uid, pod.number).where(pod.uid.in_(uids[start : start + _PART]))
        numbers.update((uid, number) for uid, number in connection.execute(query))
    return numbers


def forget(connection: sa.Connection, uids: Collection[str]) -> int:
    """Delete the phases of these pods, and their numbers; returns how many phases."""
    phase, pod = schema.phase, schema.pod_number
    numbers = sa.select(pod.c.number).where(pod.c.uid.in_(uids))
    deleted = connection.execute(sa.delete(phase).where(phase.c.pod_number.in_(numbers))).rowcount
    connection.execute(sa.delete(pod).where(pod.c.uid.in_(uids)))
    return deleted
