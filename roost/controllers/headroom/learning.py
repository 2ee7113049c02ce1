"""Learn how many placeholders a set needs: measure how fast its users grow in number, keep that, and forecast.

The history is kept in a ConfigMap, so that it survives restarts; it is only read when it changes there. Whatever is
wrong with it, the set has what its values say, and at most `learn.max` where a forecast is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from roost.controllers.contract.actions import KeepHistory, Notice
from roost.controllers.headroom.whole_nodes import read_size
from roost_core.objects.leaving_taints import LEAVING_TAINTS
from roost_core.objects.requests import CPU, MEMORY
from roost_core.objects.selectors import node_matches, untolerated
from roost_core.placement.headroom_forecast import experience_of, forecast_need, learned_replicas, next_change
from roost_core.placement.headroom_history import (
    HOUR_SECONDS,
    SAMPLE_SECONDS,
    History,
    HistoryError,
    Meter,
    Sample,
    read_history,
    size_in_placeholders,
)
from roost_core.placement.labels import PLACEHOLDER_SET_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost.controllers.contract.actions import Action
    from roost.controllers.contract.snapshot import CapacityBufferState, Moment, Snapshot, StatefulSetState
    from roost.controllers.headroom.settings import HeadroomSet, LearnSettings
    from roost_core.objects.node import Node
    from roost_core.objects.pod import PodSpec
    from roost_core.placement.headroom_windows import Period

# For so long a new leader waits for the stored history, and leaves the number as it is.
PATIENCE_SECONDS: Final = 60.0
# Taints that come and go with a node's state; they don't change whose node it is.
_STATE_TAINTS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


@dataclass(frozen=True, slots=True)
class Learned:
    """What is known of one set."""

    history: History
    meter: Meter
    # Steady seconds of the first plan.
    since: float
    # The stored text that was last taken in; "": none.
    stored: str = ""
    # The cluster has been asked for a stored history.
    is_loaded: bool = False


def new_learned(learn: LearnSettings, now: Moment) -> Learned:
    """Begin without a history."""
    return Learned(History(learn.boot_seconds), Meter(learn.boot_seconds), now.steady)


def observe(
    headroom_set: HeadroomSet, learned: Learned, snapshot: Snapshot, now: Moment
) -> tuple[Learned, list[Action]]:
    """Take in a stored history if there is another one, and a sample if one is due; hours that end are stored."""
    actions: list[Action] = []
    if snapshot.histories is not None:
        stored = snapshot.histories.get(headroom_set.name, "")
        if stored != learned.stored:
            learned, notice = _load(headroom_set, learned, stored, snapshot, now)
            actions += notice
        learned = replace(learned, stored=stored, is_loaded=True)
    if not learned.meter.is_due(now.wall):
        return learned, actions
    level = _level(headroom_set, snapshot)
    meter, complete = learned.meter.take(Sample(now.wall, level))
    learned = replace(learned, meter=meter, history=learned.history.with_hours(complete))
    # Before the stored history has been read, writing would replace it by less.
    if complete and learned.is_loaded and headroom_set.history_name:
        actions.append(
            KeepHistory(
                name=headroom_set.history_name,
                data={headroom_set.name: learned.history.as_text()},
                why=f"{len(complete)} more hour{'' if len(complete) == 1 else 's'} of set {headroom_set.name}",
            )
        )
    return learned, actions


class LearnedNumber(NamedTuple):
    """A set's number, why, and when another may be due."""

    replicas: int
    # "": its windows or the values give it.
    why: str
    until: float


def learned_number(
    learn: LearnSettings,
    learned: Learned,
    period: Period,
    present: int | None,
    now: Moment,
) -> LearnedNumber:
    """Return what the forecast and the windows give together.

    present: the set's number without what is booked; None: there is no such set.
    """
    until = min(next_change(now.wall, learn.boot_seconds), now.wall + SAMPLE_SECONDS)
    if not learned.is_loaded and now.steady - learned.since < PATIENCE_SECONDS and present is not None:
        replicas = max(period.replicas, min(present, learn.max))
        return LearnedNumber(replicas, "what was learned hasn't been read yet", until)
    experience = experience_of(learned.history, learn.time_zone)
    forecast = forecast_need(experience, now.wall, learn.boot_seconds, learn.quantile)
    replicas = learned_replicas(period, forecast, learn.min, learn.max)
    if forecast is None or (period.windows and replicas == period.replicas):
        return LearnedNumber(replicas, "", until)
    why = (
        f"usually {forecast.usual:.0f} more users within {learn.boot_seconds} s at this hour, and no more than "
        f"{forecast.placeholders} in {learn.quantile:g} of such hours"
    )
    return LearnedNumber(replicas, why, until)


def keeper_of(headroom_set: HeadroomSet, snapshot: Snapshot) -> StatefulSetState | CapacityBufferState | None:
    """The object that keeps the set's room; None: it isn't there."""
    keepers = snapshot.capacity_buffers if headroom_set.has_buffer else snapshot.stateful_sets
    return keepers.get(headroom_set.stateful_set)


def _load(
    headroom_set: HeadroomSet, learned: Learned, stored: str, snapshot: Snapshot, now: Moment
) -> tuple[Learned, list[Action]]:
    if not stored:
        return learned, []
    history, fault = _read(stored, learned.history.boot_seconds, now)
    if history is None:
        keeper = keeper_of(headroom_set, snapshot)
        if keeper is None:
            return learned, []
        message = (
            f"What set {headroom_set.name} learned can't be used, and what was learned since applies, or the values: "
            f"ConfigMap {headroom_set.history_name}, key {headroom_set.name}: {fault}."
        )
        return learned, [Notice.on_set(snapshot.namespace, keeper, "HeadroomHistoryUnusable", message, warning=True)]
    known = {
        learned.history.first_hour + index: growth
        for index, growth in enumerate(learned.history.growth)
        if growth is not None
    }
    return replace(learned, history=history.with_hours(known)), []


def _read(stored: str, boot_seconds: int, now: Moment) -> tuple[History | None, str]:
    """Return the history, or why there is none that applies."""
    try:
        history = read_history(stored)
    except HistoryError as error:
        return None, str(error)
    if history.boot_seconds != boot_seconds:
        return None, f"found growth within {history.boot_seconds} s, expected learn.bootSeconds, {boot_seconds} s"
    # With hours that are still to come, those that come would seem too old to be kept.
    if history.end_hour > now.wall // HOUR_SECONDS + 1:
        return None, f"found hours up to {history.end_hour}, expected hours before the present, in hours since 1970"
    return history, ""


def _level(headroom_set: HeadroomSet, snapshot: Snapshot) -> float:
    """How many of the set's placeholders its users would fill, those that wait for a node included."""
    nodes = {name: node for name, node in snapshot.nodes.items() if _is_of_set(headroom_set, node)}
    sizes: dict[PodSpec, float] = {}
    waits_here: dict[PodSpec, bool] = {}
    level = 0.0
    for pod in snapshot.pods.values():
        if pod.leaving or pod.is_finished or PLACEHOLDER_SET_LABEL in pod.labels:
            continue
        if pod.node_name and pod.node_name not in nodes:
            continue
        if not headroom_set.is_user(pod, snapshot.namespaces):
            continue
        spec = pod.spec
        if not pod.node_name:
            if spec not in waits_here:
                waits_here[spec] = _waits_here(spec, headroom_set, nodes)
            if not waits_here[spec]:
                continue
        if spec not in sizes:
            sizes[spec] = _size(spec, headroom_set.first_requests)
        level += sizes[spec]
    return level


def _is_of_set(headroom_set: HeadroomSet, node: Node) -> bool:
    rules = headroom_set.rules
    taints = [
        taint for taint in node.taints if taint.key not in LEAVING_TAINTS and not taint.key.startswith(_STATE_TAINTS)
    ]
    return node_matches(rules, node.name, node.labels) and untolerated(taints, rules.tolerations) is None


def _waits_here(spec: PodSpec, headroom_set: HeadroomSet, nodes: Mapping[str, Node]) -> bool:
    """Whether a waiting pod selects a node of the set, or, while it has none, the nodes that the set selects.

    What the image gate requires of nodes changes by the minute, and full nodes stay the set's: neither counts.
    """
    selector = dict(spec.node_selector)
    if not nodes:
        return set(headroom_set.rules.node_selector) <= set(spec.node_selector)
    return any(all(node.labels.get(key) == value for key, value in selector.items()) for node in nodes.values())


def _size(spec: PodSpec, placeholder: Mapping[str, object]) -> float:
    cpu, memory = read_size(placeholder)
    requests = dict(spec.requests)
    return size_in_placeholders(requests.get(CPU, 0), requests.get(MEMORY, 0), cpu, memory)
