"""What is told of the cluster, as changes with the records that they make: the model and the
metrics read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from roost_lab.recorder.recording.reading import NodeReading, PodReading, Step
from roost_lab.recorder.recording.streams import Observation
from roost_lab.recorder.store.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What has happened: the records of it."""

    records: list[Record] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodChange(Change):
    """A pod in a new state, or gone."""

    key: str
    # Its last state, if it is gone; in the API server's time.
    pod: PodReading
    # "": none.
    pod_class: str
    # As exact as it is known.
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
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListEnd(Change):
    """All objects of a kind are known; those that went unseen are gone."""

    kind: str
    # Microseconds since 1970.
    at: int


def records_of(changes: Iterable[Change]) -> list[Record]:
    """All records of changes, in order."""
    return [record for change in changes for record in change.records]
