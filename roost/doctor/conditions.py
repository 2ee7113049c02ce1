"""What findings bring about and follow from: states of an install's parts, and which brings about
which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import OWN_COMPONENT_LABEL


class State(Enum):
    """What is wrong with a part of an install; `_next` says what brings about what."""

    # Its pods can't be made, or can't start: `of` is its component.
    BROKEN = "broken"
    # None of its pods is ready.
    DOWN = "down"
    # Nobody holds its Lease.
    UNLED = "unled"
    # The API server doesn't reach the webhook, or doesn't trust it.
    UNREVIEWED = "unreviewed"
    # `of` is the name of a ResourceQuota that is used up.
    QUOTA_FULL = "quota full"
    # There is no such namespace.
    NO_NAMESPACE = "no namespace"
    # Helm was stopped within a change of the release.
    CUT_OFF = "cut off"


class Condition(NamedTuple):
    """A state of one component, or of one object."""

    state: State
    of: str = ""


UNREVIEWED = frozenset({Condition(State.UNREVIEWED)})
NO_NAMESPACE = frozenset({Condition(State.NO_NAMESPACE)})
CUT_OFF = frozenset({Condition(State.CUT_OFF)})


def conditions(state: State, *of: str) -> frozenset[Condition]:
    """The same state of several components or objects."""
    return frozenset(Condition(state, name) for name in of)


def component_of(body: JSONObject) -> str:
    """The component that a rendered object belongs to; "": none alone."""
    return str((body["metadata"].get("labels") or {}).get(OWN_COMPONENT_LABEL, ""))


def brought(brings: Iterable[Condition]) -> frozenset[Condition]:
    """What follows from these, and these."""
    known: set[Condition] = set()
    waiting = [*brings]
    while waiting:
        condition = waiting.pop()
        if condition not in known:
            known.add(condition)
            waiting += _next(condition)
    return frozenset(known)


def _next(condition: Condition) -> Iterator[Condition]:
    if condition.state is State.BROKEN:
        yield Condition(State.DOWN, condition.of)
    if condition.state is State.DOWN:
        yield Condition(State.UNLED, condition.of)
        if condition.of == "webhook":
            yield Condition(State.UNREVIEWED)
