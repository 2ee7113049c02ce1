"""The slowest starts, each with the command that explains it."""

from __future__ import annotations

from typing import Final

from roost_lab.pages.dates import US
from roost_lab.pages.table import Unit
from roost_lab.report.start_times import SlowStart, StartTimes
from roost_lab.report.subject import Field, Section, TableOf, time_field


def _seconds(span_us: int | None) -> float | None:
    return None if span_us is None else max(0, span_us) / US


TABLE: Final = TableOf[SlowStart](
    "slowest_starts",
    "Slowest starts",
    (
        Field("whole_seconds", "whole start", Unit.SECONDS, lambda row: _seconds(row.whole_us)),
        Field("why", "what explains it", Unit.COMMAND, lambda row: row.command),
        Field("node_seconds", "until it has a node", Unit.SECONDS, lambda row: _seconds(row.node_us)),
        Field("containers_seconds", "until its containers run", Unit.SECONDS, lambda row: _seconds(row.containers_us)),
        Field("ready_seconds", "until it is ready", Unit.SECONDS, lambda row: _seconds(row.ready_us)),
        time_field("created", "created", lambda row: row.created_us),
        Field("node", "node", Unit.TEXT, lambda row: row.node),
        Field("image", "image", Unit.TEXT, lambda row: row.image),
    ),
    lambda report: report[StartTimes].slowest,
)
SECTION: Final = Section(
    "slowest-starts",
    TABLE.title,
    StartTimes,
    (TABLE,),
    about="Run the command with --database, or with ROOST_DATABASE set.",
)
