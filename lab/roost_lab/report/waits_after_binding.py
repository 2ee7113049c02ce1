"""What starts waited for after they were bound: volumes, sandboxes, init containers, images whose
pull failed, containers, and what nothing explains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

import sqlalchemy as sa

from roost_lab.pages.table import Unit
from roost_lab.recorder.answers.after_binding import LEAST_US, AfterBinding, Wait, find_waits
from roost_lab.recorder.answers.explanation import WORTH_ASKING_US
from roost_lab.recorder.recording.pod_events import WaitKind
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import Phase
from roost_lab.recorder.store.start_times import is_by_user
from roost_lab.report.query import Query
from roost_lab.report.slow_starts import why_command
from roost_lab.report.start_phases import leading_classes
from roost_lab.report.statistics import Spans
from roost_lab.report.subject import Field, Section, TableOf, percentile_fields
from roost_lab.units import US

# Starts whose rows are read, the slowest first.
MAX_READ: Final = 20_000
# Pods of one query.
_CHUNK: Final = 500
# As reports and JSON name what nothing explains.
UNEXPLAINED: Final = "nothing recorded"
_WORDS: Final[Mapping[str, str]] = {
    WaitKind.VOLUME: "its volume",
    WaitKind.DEVICES: "its devices",
    WaitKind.SANDBOX: "its sandbox",
    WaitKind.INIT: "init containers",
    WaitKind.IMAGE: "an image whose pull failed",
    WaitKind.CONTAINER: "a container that didn't start",
    UNEXPLAINED: "nothing that was recorded",
}


@dataclass(slots=True)
class WaitsOfKind:
    """Waits of one kind: one span for each start."""

    kind: str
    spans: Spans = field(default_factory=Spans)
    # The longest of them.
    longest_us: int = 0
    # What the start that waited so long waited for, and why.
    awaits: str = ""
    cause: str = ""
    # Of that start: the command that tells its story.
    command: str = ""

    @property
    def words(self) -> str:
        """What was waited for, in words."""
        return _WORDS[self.kind]


@dataclass(slots=True)
class WaitsAfterBinding:
    """What users' starts of the window waited for after their binding, those of most starts
    first.
    """

    kinds: Sequence[WaitsOfKind] = ()

    @classmethod
    def read(cls, query: Query) -> Self:
        """The rows of the pods whose containers took long after their binding."""
        by_kind: dict[str, WaitsOfKind] = {}
        for pod, after in _waits_of_pods(query):
            spans: dict[str, int] = defaultdict(int)
            longest: dict[str, Wait] = {}
            for wait in sorted(after.waits, key=lambda wait: -wait.span_us):
                spans[wait.kind] += wait.span_us
                longest.setdefault(wait.kind, wait)
            if after.unexplained_us >= WORTH_ASKING_US:
                spans[UNEXPLAINED] = after.unexplained_us
            for kind, span_us in spans.items():
                if span_us < LEAST_US:
                    continue
                of_kind = by_kind.setdefault(kind, WaitsOfKind(kind))
                # To a second: kubelets' Events have no more.
                of_kind.spans.add(-(-span_us // US) * US, 1, span_us)
                if span_us > of_kind.longest_us:
                    longest_wait = longest.get(kind)
                    of_kind.longest_us = span_us
                    of_kind.awaits = "" if longest_wait is None else longest_wait.awaits
                    of_kind.cause = "" if longest_wait is None else longest_wait.cause
                    of_kind.command = why_command(pod.namespace, pod.name, pod.created_us)
        kinds = sorted(
            by_kind.values(),
            key=lambda waits: (waits.kind == UNEXPLAINED, -waits.spans.count, waits.kind),
        )
        return cls(kinds)

    @property
    def explained(self) -> Sequence[WaitsOfKind]:
        """The kinds of waits whose cause is known."""
        return [of_kind for of_kind in self.kinds if of_kind.kind != UNEXPLAINED]


class _Bound(NamedTuple):
    uid: str
    namespace: str
    name: str
    created_us: int
    bound_us: int


def _waits_of_pods(query: Query) -> Iterator[tuple[_Bound, AfterBinding]]:
    """The pods of the leading classes whose containers took a second or more, the slowest first."""
    start = schema.start.c
    kind = schema.start_kind.c
    pod = schema.pod.c
    kinds = sa.select(kind.id).where(kind.pod_class.in_(leading_classes(query)))
    took = sa.func.coalesce(start.started_us, start.ready_us) - start.bound_us
    chosen = (
        sa.select(start.pod_uid, pod.namespace, pod.name, start.created_us, start.bound_us)
        .join(schema.pod, pod.uid == start.pod_uid)
        .where(
            query.within(start.created_us, start.pod_uid),
            is_by_user,
            start.kind_id.in_(kinds),
            start.bound_us.is_not(None),
            sa.or_(took >= LEAST_US, took.is_(None)),
        )
        .order_by(took.desc(), start.created_us, start.pod_uid)
        .limit(MAX_READ)
    )
    pods = [_Bound(*tuple(row)) for row in query.rows(chosen)]
    for begin in range(0, len(pods), _CHUNK):
        chunk = pods[begin : begin + _CHUNK]
        uids = [bound.uid for bound in chunk]
        phases, pulls, events = (
            query.rows_by_pod(sa.select(table).where(table.c.pod_uid.in_(uids)))
            for table in (schema.phase, schema.pull, schema.pod_event)
        )
        for bound in chunk:
            uid = bound.uid
            steps = {step["phase"] for step in phases[uid]}
            # Of a start that goes on, only what was told until the window's end is known.
            until_us = None if Phase.STARTED in steps else query.window.to_us
            after = find_waits(phases[uid], pulls[uid], events[uid], bound.bound_us, until_us)
            if after.is_over or after.waits:
                yield bound, after


SECTION: Final = Section(
    "start-waits",
    "What starts waited for after they were bound",
    WaitsAfterBinding,
    (
        TableOf[WaitsOfKind](
            "start_waits",
            "What starts waited for after they were bound",
            (
                Field("wait", "wait", Unit.TEXT, lambda row: row.words),
                Field("pods", "pods", Unit.COUNT, lambda row: row.spans.count),
                *percentile_fields(lambda row: row.spans),
                Field("longest_seconds", "longest", Unit.SECONDS, lambda row: row.longest_us / US),
                Field("what", "the longest", Unit.TEXT, lambda row: row.awaits),
                Field("cause", "its cause", Unit.TEXT, lambda row: row.cause),
                Field("why", "command that tells its story", Unit.COMMAND, lambda row: row.command),
            ),
            lambda report: report[WaitsAfterBinding].kinds,
        ),
    ),
    about=(
        "By the Events of kubelets and of what attaches volumes, and by init containers' times."
        " Pulls are below, by image."
    ),
)
