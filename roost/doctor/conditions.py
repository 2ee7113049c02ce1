"""States of an install's parts, and which state brings about which other.

So findings are put under their cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import OWN_COMPONENT_LABEL


class State(Enum):
    """What is wrong with a part of an install; `_next` says what brings about what."""

    # `of` is a component. Its pods can't be made, or can't start.
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
    """The component that a rendered object belongs to; "": it belongs to none, or to several."""
    return str((body["metadata"].get("labels") or {}).get(OWN_COMPONENT_LABEL, ""))


def brought(brings: Iterable[Condition]) -> frozenset[Condition]:
    """These conditions, and all conditions that follow from them."""
    found: set[Condition] = set()
    to_follow = list(brings)
    while to_follow:
        condition = to_follow.pop()
        if condition not in found:
            found.add(condition)
            to_follow += _next(condition)
    return frozenset(found)


def _next(condition: Condition) -> Iterator[Condition]:
    """The conditions that a condition brings about directly."""
    if condition.state is State.BROKEN:
        yield Condition(State.DOWN, condition.of)
    if condition.state is State.DOWN:
        yield Condition(State.UNLED, condition.of)
        if condition.of == "webhook":
            yield Condition(State.UNREVIEWED)
