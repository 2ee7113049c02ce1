"""Changes of the cluster, each with the records that it makes.

The assembler makes them of what the streams tell. The scheduler's model and the metrics read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from roost_lab.recorder.recording.reading import NodeReading, PodReading, Step
from roost_lab.recorder.recording.streams import Observation
from roost_lab.recorder.store.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that happened in the cluster."""

    records: list[Record] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodChange(Change):
    """A pod in a new state, or gone."""

    # namespace/name.
    key: str
    # Its state; the last one, if it is gone. Times are by the API server's clock.
    pod: PodReading
    # "": none.
    pod_class: str
    # When it was created, as exactly as that is known.
    created: Step
    observed: Observation
    is_gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange(Change):
    """A node in a new state, or gone."""

    name: str
    # None: it is gone.
    node: NodeReading | None
    # Microseconds since 1970.
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListEnd(Change):
    """A list of a kind is complete: all its objects are known.

    Those that went while nobody watched are recorded as gone by now.
    """

    kind: str
    # Microseconds since 1970.
    at_us: int


def records_of(changes: Iterable[Change]) -> list[Record]:
    """All records of changes, in order."""
    return [record for change in changes for record in change.records]
