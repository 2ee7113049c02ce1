"""Learn how many placeholders a set needs: count its users each minute, keep that, and forecast.

The history is kept in a ConfigMap, so that it survives restarts; it is only read when it changes there. Whatever is
wrong with it, the set has what its values say, and at most `learn.max` where a forecast is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, inf
from typing import Final, NamedTuple

from roost.controllers.contract.actions import Action, KeepHistory, Notice
from roost.controllers.contract.placeholder_sets import LearnSettings, PlaceholderSet
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.headroom.booked import FOLLOW_SECONDS
from roost.controllers.headroom.settings import HeadroomSettings
from roost_core.objects.leaving_taints import ANY_LEAVING_TAINTS
from roost_core.objects.node import Node
from roost_core.objects.pod import PodSpec
from roost_core.objects.quantities import parse_quantity
from roost_core.objects.requests import CPU, MEMORY, PODS
from roost_core.objects.selectors import NodeRules, node_matches, untolerated
from roost_core.placement.headroom_forecast import (
    FLOOR_DAYS,
    WAVE_MINUTES,
    Forecast,
    Outlook,
    calibrated,
    forecast_need,
    learned_replicas,
    look_ahead,
    threshold_of,
)
from roost_core.placement.headroom_history import (
    DAY_MINUTES,
    KEPT_BOOTS,
    MINUTE_SECONDS,
    MOST_BOOT_SECONDS,
    UNSEEN,
    History,
    HistoryError,
    read_history,
    size_in_placeholders,
)
from roost_core.placement.headroom_windows import Period
from roost_core.placement.labels import PLACEHOLDER_SET_LABEL

# For so long a new leader waits for the stored history, and leaves the number as it is.
PATIENCE_SECONDS: Final = 60.0
# A week ago counts little, each minute.
_FADE: Final = 1 - 1 / (7 * DAY_MINUTES)
_HOUR_MINUTES: Final = 60
# How steeply seats become dear over the limit of cost.
_STEEP: Final = 4
# Taints that come and go with a node's state; they don't change whose node it is.
_STATE_TAINTS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


class View(NamedTuple):
    """What is seen of a set's users and nodes at one time."""

    # How many of the set's placeholders its users would fill, those that wait for a node included.
    level: float
    # How many fit on the nodes of users, and on others.
    room: int
    spare: int
    nodes: Mapping[str, Node]
    # The set's placeholders, and nodes without users that they keep, or kept until they went.
    placeholders: int
    kept: frozenset[str]
    # Since when somebody has waited for a node; None: nobody does.
    waiting_since: float | None


@dataclass(frozen=True, slots=True)
class Learned:
    """What is known of one set."""

    # Steady seconds of the first plan.
    since: float
    history: History = field(default_factory=History)
    # The stored text that was last taken in, and that was written since: it may be seen late, or never.
    stored: tuple[str, ...] = ()
    is_loaded: bool = False
    # Of the last plan.
    view: View | None = None
    # Of the present minute; None: there are too few days.
    outlook: Outlook | None = None
    forecast: Forecast | None = None
    # Minutes that can't be judged yet, and the seats that they were forecast to need.
    unjudged: tuple[tuple[int, int], ...] = ()
    # Since when somebody waited for each node that boots.
    booting: Mapping[str, float] = field(default_factory=dict)


def observe(
    placeholder_set: PlaceholderSet,
    learn: LearnSettings,
    learned: Learned,
    snapshot: Snapshot,
    settings: HeadroomSettings,
    *,
    now: Moment,
) -> tuple[Learned, list[Action]]:
    """Take in a stored history if there is another one, and what is seen now; each hour is stored."""
    name = placeholder_set.name
    actions: list[Action] = []
    minute = int(now.wall // MINUTE_SECONDS)
    stored = (snapshot.histories or {}).get(name, "")
    if stored and stored not in learned.stored:
        try:
            history = read_history(stored, minute)
        except HistoryError as error:
            history = learned.history
            message = (
                f"What set {name} learned can't be used, and what was learned since applies, or the values: "
                f"ConfigMap {settings.history_name}, key {name}: {error}."
            )
            if (keeper := snapshot.stateful_sets.get(placeholder_set.stateful_set)) is not None:
                tell = partial(Notice.on_set, snapshot.namespace, keeper, warning=True)
                actions.append(tell("HeadroomHistoryUnusable", message))
        # What is forecast changes with it.
        outlook = look_ahead(history, minute, learn.time_zone)
        learned = replace(learned, history=history, outlook=outlook, stored=(stored,))
    kept = (stored,) if stored in learned.stored[-1:] else learned.stored
    learned = replace(learned, is_loaded=learned.is_loaded or snapshot.histories is not None, stored=kept)
    view = _look(placeholder_set, snapshot, settings, learned.view)
    learned = _with_boots(learned, view)
    is_new = not learned.history.levels or minute != learned.history.end - 1
    if is_new:
        learned = _with_minute(learned, placeholder_set.replicas, learn, minute, view)
    base = learned.history.at(minute - WAVE_MINUTES)
    forecast = learned.outlook and forecast_need(
        learned.outlook,
        None if base == UNSEEN else view.level - base,
        threshold_of(learned.history, learn.quantile),
        learn.quantile,
        # Over the limit of cost, a seat must be likelier than usual to be worth a node.
        max(1.0, (100 * learned.history.cost_share / limit) ** _STEEP) if (limit := learn.cost_percent) else inf,
    )
    if is_new and forecast is not None:
        learned = replace(learned, unjudged=(*learned.unjudged, (minute, forecast.likely)))
    learned = replace(learned, view=view, forecast=forecast)
    # Before the stored history has been read, writing would replace it by less.
    if is_new and minute % _HOUR_MINUTES == 0 and learned.is_loaded and settings.history_name:
        text = learned.history.as_text()
        actions.append(KeepHistory(name=settings.history_name, data={name: text}, why=f"one more hour of set {name}"))
        learned = replace(learned, stored=(stored, text))
    return learned, actions


def learned_number(
    learn: LearnSettings, learned: Learned, period: Period, extra: int, *, present: int | None, now: Moment
) -> tuple[int, str]:
    """Return what the forecast, the windows and bookings give together, and why; "": windows or the values give it.

    extra: what bookings need. present: the set's number; None: there is no such set.
    """
    if not learned.is_loaded and now.steady - learned.since < PATIENCE_SECONDS and present is not None:
        return max(period.replicas + extra, min(present, learn.max)), "what was learned hasn't been read yet"
    forecast = learned.forecast
    if forecast is None or learned.view is None or learned.outlook is None:
        return period.replicas + extra, ""
    seats, view = forecast.worth, learned.view
    if seats <= view.room + view.spare:
        # Beside users there is room without them, where they would only send users to nodes that stand by.
        seats = max(0, seats - view.room)
    replicas = learned_replicas(period, learned.outlook, seats, learn.min, learn.max)
    # Whoever books a lecture that is learned means the same people.
    stands = period.windows or len(learned.outlook.days) < FLOOR_DAYS
    booked = extra + (period.replicas if stands else min(replicas, max(learn.min, forecast.steady)))
    if (extra and booked >= replicas) or replicas == period.replicas:
        return max(replicas, booked if extra else 0), ""
    return replicas, f"on {len(learned.outlook.days)} earlier days, so many more came while a node boots"


def seconds_until_change(learned: Learned, now: Moment) -> float:
    """Seconds until `learned_number` may differ although nothing is told: the next minute, or sooner in a wave."""
    seconds = MINUTE_SECONDS - now.wall % MINUTE_SECONDS
    return min(seconds, FOLLOW_SECONDS) if learned.forecast is not None and learned.forecast.likely else seconds


def _with_minute(learned: Learned, replicas: int, learn: LearnSettings, minute: int, view: View) -> Learned:
    """Take in a minute: its level, what it cost, and what came of forecasts. replicas: the values'."""
    history = learned.history.with_level(minute, view.level)
    # What the values would keep as well is no cost of learning.
    floor = replicas if learned.outlook is None else learned.outlook.floor(replicas)
    kept = len(view.kept) / _HOUR_MINUTES * max(0.0, 1 - floor / max(floor, view.placeholders, 1))
    threshold, ahead, unjudged = threshold_of(history, learn.quantile), history.ahead_minutes, []
    for at, seats in learned.unjudged:
        need = history.growth(at, ahead)
        if at + ahead >= history.end:
            unjudged.append((at, seats))
        elif need is not None and (need or seats):
            threshold = calibrated(threshold, learn.quantile, was_enough=seats >= need)
    history = replace(
        history,
        threshold=round(threshold, 4),
        kept_hours=round(history.kept_hours * _FADE + kept, 4),
        node_hours=round(history.node_hours * _FADE + len(view.nodes) / _HOUR_MINUTES, 4),
    )
    outlook = look_ahead(history, minute, learn.time_zone)
    return replace(learned, history=history, unjudged=tuple(unjudged), outlook=outlook)


def _with_boots(learned: Learned, view: View) -> Learned:
    """Note how long nodes took that are new, from when somebody waited for them."""
    booting = {name: since for name, since in learned.booting.items() if name in view.nodes}
    if learned.view is not None and learned.view.waiting_since is not None:
        booting |= dict.fromkeys(view.nodes.keys() - learned.view.nodes.keys(), learned.view.waiting_since)
    boots = learned.history.boots
    for name in sorted(booting):
        if (ready := view.nodes[name].ready_since) is not None:
            boots = (*boots, min(MOST_BOOT_SECONDS, max(0, round(ready - booting.pop(name)))))[-KEPT_BOOTS:]
    return replace(learned, booting=booting, history=replace(learned.history, boots=boots))


def _look(placeholder_set: PlaceholderSet, snapshot: Snapshot, settings: HeadroomSettings, last: View | None) -> View:
    """See what users of the set there are, and what its nodes have left."""
    nodes = {name: node for name, node in snapshot.nodes.items() if _is_of_set(placeholder_set.rules, node)}
    sizes, waits_here = dict[PodSpec, float](), dict[PodSpec, bool]()
    used = {name: Counter[str]() for name in nodes}
    has_users, has_placeholders = set[str](), set[str]()
    waiting, level, placeholders = list[float](), 0.0, 0
    for pod in snapshot.pods.values():
        node_name = pod.node_name
        if pod.is_finished or (node_name and node_name not in nodes):
            continue
        if PLACEHOLDER_SET_LABEL in pod.labels:
            placeholders += pod.labels[PLACEHOLDER_SET_LABEL] == placeholder_set.name
            if node_name:
                has_placeholders.add(node_name)
            elif pod.unschedulable_since is not None and pod.labels[PLACEHOLDER_SET_LABEL] == placeholder_set.name:
                waiting.append(pod.unschedulable_since)
            continue
        spec = pod.spec
        if node_name:
            used[node_name].update({PODS: 1, **dict(spec.requests)})
        if pod.leaving or not settings.is_user(pod, snapshot.namespaces):
            continue
        if node_name:
            has_users.add(node_name)
        else:
            if spec not in waits_here:
                waits_here[spec] = _waits_here(spec, placeholder_set, nodes)
            if not waits_here[spec]:
                continue
            if pod.unschedulable_since is not None:
                waiting.append(pod.unschedulable_since)
        if spec not in sizes:
            sizes[spec] = _size(spec, placeholder_set.requests)
        level += sizes[spec]
    asked = {PODS: 1} | {name: _whole(name, quantity) for name, quantity in placeholder_set.requests.items()}
    kept = (has_placeholders | ((last.kept if last else set()) & nodes.keys())) - has_users
    room = {name: _room(node, used[name], asked) for name, node in nodes.items()}
    beside = sum(room[name] for name in has_users)
    return View(
        level, beside, sum(room.values()) - beside, nodes, placeholders, frozenset(kept), min(waiting, default=None)
    )


def _room(node: Node, used: Mapping[str, int], asked: Mapping[str, int]) -> int:
    """How many placeholders fit beside the pods of users."""
    counts = ((node.allocatable.get(name, 0) - used.get(name, 0)) // amount for name, amount in asked.items() if amount)
    return max(0, min(counts)) if node.is_usable else 0


def _is_of_set(rules: NodeRules, node: Node) -> bool:
    left = [one for one in node.taints if one.key not in ANY_LEAVING_TAINTS and not one.key.startswith(_STATE_TAINTS)]
    return node_matches(rules, node.name, node.labels) and untolerated(left, rules.tolerations) is None


def _waits_here(spec: PodSpec, placeholder_set: PlaceholderSet, nodes: Mapping[str, Node]) -> bool:
    """Whether a waiting pod selects a node of the set, or, while it has none, the nodes that the set selects.

    What the image gate requires of nodes changes by the minute, and full nodes stay the set's: neither counts.
    """
    if not nodes:
        return set(placeholder_set.rules.node_selector) <= set(spec.node_selector)
    return any(all(node.labels.get(key) == value for key, value in spec.node_selector) for node in nodes.values())


def _size(spec: PodSpec, placeholder: Mapping[str, object]) -> float:
    requests = dict(spec.requests)
    cpu, memory = (_whole(name, placeholder.get(name)) for name in (CPU, MEMORY))
    return size_in_placeholders(requests.get(CPU, 0), requests.get(MEMORY, 0), cpu, memory)


def _whole(name: str, quantity: object) -> int:
    """An amount as pods have it: CPU in millicores."""
    try:
        return ceil(parse_quantity(quantity) * (1000 if name == CPU else 1))
    except ValueError:
        return 0
