"""Learn how many placeholders a set needs: measure how fast its users grow in number, keep that, and forecast.

The history is kept in a ConfigMap, so that it survives restarts; it is only read when it changes there. Whatever is
wrong with it, the set has what its values say, and at most `learn.max` where a forecast is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Final

from roost.controllers.contract.actions import KeepHistory, Notice
from roost_core.objects.leaving_taints import LEAVING_TAINTS
from roost_core.objects.quantities import parse_quantity
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
    from roost.controllers.contract.placeholder_sets import LearnSettings, PlaceholderSet
    from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
    from roost.controllers.headroom.settings import HeadroomSettings
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
    placeholder_set: PlaceholderSet, learned: Learned, snapshot: Snapshot, settings: HeadroomSettings, now: Moment
) -> tuple[Learned, list[Action]]:
    """Take in a stored history if there is another one, and a sample if one is due; hours that end are stored."""
    name = placeholder_set.name
    actions: list[Action] = []
    if snapshot.histories is not None:
        stored = snapshot.histories.get(name, "")
        if stored and stored != learned.stored:
            history, fault = _read(stored, learned.history, now)
            if fault and (keeper := keeper_of(placeholder_set, snapshot)) is not None:
                message = (
                    f"What set {name} learned can't be used, and what was learned since applies, or the values: "
                    f"ConfigMap {settings.history_name}, key {name}: {fault}."
                )
                actions.append(
                    Notice.on_set(snapshot.namespace, keeper, "HeadroomHistoryUnusable", message, warning=True)
                )
            learned = replace(learned, history=history)
        learned = replace(learned, stored=stored, is_loaded=True)
    if not learned.meter.is_due(now.wall):
        return learned, actions
    level = _level(placeholder_set, snapshot, settings)
    meter, complete = learned.meter.take(Sample(now.wall, level))
    learned = replace(learned, meter=meter, history=learned.history.with_hours(complete))
    # Before the stored history has been read, writing would replace it by less.
    if complete and learned.is_loaded and settings.history_name:
        actions.append(
            KeepHistory(
                name=settings.history_name,
                data={name: learned.history.as_text()},
                why=f"{len(complete)} more hour{'' if len(complete) == 1 else 's'} of set {name}",
            )
        )
    return learned, actions


def learned_number(
    learn: LearnSettings, learned: Learned, period: Period, present: int | None, now: Moment
) -> tuple[int, str]:
    """Return what the forecast and the windows give together, and why; "": its windows or the values give it.

    present: the set's number without what is booked; None: there is no such set.
    """
    if not learned.is_loaded and now.steady - learned.since < PATIENCE_SECONDS and present is not None:
        return max(period.replicas, min(present, learn.max)), "what was learned hasn't been read yet"
    experience = experience_of(learned.history, learn.time_zone)
    forecast = forecast_need(experience, now.wall, learn.boot_seconds, learn.quantile)
    replicas = learned_replicas(period, forecast, learn.min, learn.max)
    if forecast is None or (period.windows and replicas == period.replicas):
        return replicas, ""
    why = (
        f"usually {forecast.usual:.0f} more users within {learn.boot_seconds} s at this hour, and no more than "
        f"{forecast.placeholders} in {learn.quantile:g} of such hours"
    )
    return replicas, why


def seconds_until_change(learn: LearnSettings, now: Moment) -> float:
    """Seconds until `learned_number` may differ."""
    return min(next_change(now.wall, learn.boot_seconds) - now.wall, SAMPLE_SECONDS)


def keeper_of(placeholder_set: PlaceholderSet, snapshot: Snapshot) -> StatefulSetState | None:
    """The object that keeps the set's room; None: it isn't there."""
    return snapshot.stateful_sets.get(placeholder_set.stateful_set)


def _read(stored: str, known: History, now: Moment) -> tuple[History, str]:
    """Return the stored history with the known hours, or the known one and why the stored one doesn't apply."""
    try:
        history = read_history(stored)
    except HistoryError as error:
        return known, str(error)
    if history.boot_seconds != known.boot_seconds:
        return (
            known,
            f"found growth within {history.boot_seconds} s, expected learn.bootSeconds, {known.boot_seconds} s",
        )
    # With hours that are still to come, those that come would seem too old to be kept.
    if history.end_hour > now.wall // HOUR_SECONDS + 1:
        return known, f"found hours up to {history.end_hour}, expected hours before the present, in hours since 1970"
    return history.with_hours(known.seen()), ""


def _level(placeholder_set: PlaceholderSet, snapshot: Snapshot, settings: HeadroomSettings) -> float:
    """How many of the set's placeholders its users would fill, those that wait for a node included."""
    nodes = {name: node for name, node in snapshot.nodes.items() if _is_of_set(placeholder_set, node)}
    sizes: dict[PodSpec, float] = {}
    waits_here: dict[PodSpec, bool] = {}
    level = 0.0
    for pod in snapshot.pods.values():
        if pod.leaving or pod.is_finished or PLACEHOLDER_SET_LABEL in pod.labels:
            continue
        if pod.node_name and pod.node_name not in nodes:
            continue
        if not settings.is_user(pod, snapshot.namespaces):
            continue
        spec = pod.spec
        if not pod.node_name:
            if spec not in waits_here:
                waits_here[spec] = _waits_here(spec, placeholder_set, nodes)
            if not waits_here[spec]:
                continue
        if spec not in sizes:
            sizes[spec] = _size(spec, placeholder_set.requests)
        level += sizes[spec]
    return level


def _is_of_set(placeholder_set: PlaceholderSet, node: Node) -> bool:
    rules = placeholder_set.rules
    taints = [
        taint for taint in node.taints if taint.key not in LEAVING_TAINTS and not taint.key.startswith(_STATE_TAINTS)
    ]
    return node_matches(rules, node.name, node.labels) and untolerated(taints, rules.tolerations) is None


def _waits_here(spec: PodSpec, placeholder_set: PlaceholderSet, nodes: Mapping[str, Node]) -> bool:
    """Whether a waiting pod selects a node of the set, or, while it has none, the nodes that the set selects.

    What the image gate requires of nodes changes by the minute, and full nodes stay the set's: neither counts.
    """
    selector = dict(spec.node_selector)
    if not nodes:
        return set(placeholder_set.rules.node_selector) <= set(spec.node_selector)
    return any(all(node.labels.get(key) == value for key, value in selector.items()) for node in nodes.values())


def _size(spec: PodSpec, placeholder: Mapping[str, object]) -> float:
    cpu, memory = ceil(_amount(placeholder.get(CPU)) * 1000), ceil(_amount(placeholder.get(MEMORY)))
    requests = dict(spec.requests)
    return size_in_placeholders(requests.get(CPU, 0), requests.get(MEMORY, 0), cpu, memory)


def _amount(quantity: object) -> float:
    try:
        return float(parse_quantity(quantity))
    except ValueError:
        return 0.0
