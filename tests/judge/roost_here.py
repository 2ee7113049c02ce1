"""Roost in this process: the webhook's review over its own watches, and the controllers' plans, fed by a world.

Nothing of Roost is stood in for but its connections: what the watches would have been sent is given to them, what the
controllers would have written is given back to the world.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import jsonpatch
import orjson
import yaml

from generator.importing.importer import import_layers
from generator.render.manifests import render
from generator.values.release import Release as Install
from roost.controllers.contract.actions import Action, Done, Outcome
from roost.controllers.contract.planner import Planner
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.settings import parse_settings as parse_controllers
from roost_core.kube.client import ApiError
from roost_core.kube.lease_watch import LeaseWatch
from roost_core.objects.node import Node
from roost_core.release.settings import SCHEDULER, ReleaseSettings
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import Profile, read_profiles
from tests.builders import NAMESPACE, RELEASE, allowed, default_values, merged, patch_of, review
from tests.judge.cases import BASE, SHARED, Case
from webhook.metrics import WebhookMetrics
from webhook.review import Reviewer
from webhook.settings import parse_settings as parse_webhook
from webhook.watch import _Watches

Object = dict[str, Any]
LEASE_SECONDS = 2.0
# Start notices place nothing.
_PLACING = ("image-gate", "placeholder-mover", "headroom")


@dataclass(frozen=True, slots=True)
class Release:
    """What a values file renders to, as far as pods feel it."""

    rules: ReleaseSettings
    planners: tuple[Planner[Any], ...]
    profiles: Mapping[str, Profile]
    # StatefulSets, DaemonSets and PriorityClasses.
    objects: tuple[Object, ...]

    def of_kind(self, kind: str) -> list[Object]:
        return [body for body in self.objects if body["kind"] == kind]


def imported(hub_values: Object) -> Object:
    return _imported(json.dumps(hub_values))


@cache
def _imported(hub_values: str) -> Object:
    return dict(import_layers([("hub.yaml", hub_values)], RELEASE).values)


def on_hub(case: Case, text: str) -> Case:
    """The case under what `roost import` makes of a hub's values, with users of an image that these name."""
    case = replace(case, hub=text, is_imported=True)
    image = min(release_for(case).rules.gate.managed_images, default=BASE)
    named = {BASE: image}
    return replace(
        case,
        profiles=tuple(replace(one, image=named.get(one.image, one.image)) for one in case.profiles),
        pools=tuple(replace(one, holds=tuple(named.get(held, held) for held in one.holds)) for one in case.pools),
        failing_pulls=frozenset((named.get(one, one), node) for one, node in case.failing_pulls),
        slow_pulls=frozenset((named.get(one, one), node, seconds) for one, node, seconds in case.slow_pulls),
    )


@cache
def release_of(values_json: str) -> Release:
    """Render values over the defaults, and read them back as the programs do."""
    manifests = render(
        merged(default_values(), json.loads(values_json)), Install(RELEASE, NAMESPACE, f"v1.{NEWEST_MINOR}.0")
    )
    bodies = [cast("Object", manifest.body) for manifest in manifests]
    texts = {key: text for body in bodies if body["kind"] == "ConfigMap" for key, text in body.get("data", {}).items()}
    document = json.loads(texts["release.json"])
    configuration = yaml.load(texts["config.yaml"], Loader=yaml.CSafeLoader) if "config.yaml" in texts else None
    planners = parse_controllers(document, configuration, NEWEST_MINOR).planners
    return Release(
        rules=parse_webhook(document, revision="drawn"),
        planners=tuple(each for each in planners if each.name in _PLACING),
        profiles={} if configuration is None else read_profiles(configuration, NEWEST_MINOR),
        objects=tuple(body for body in bodies if body["kind"] in ("StatefulSet", "DaemonSet", "PriorityClass")),
    )


def copied(body: Object) -> Object:
    found: Object = orjson.loads(orjson.dumps(body))
    return found


def release_for(case: Case) -> Release:
    return release_of(json.dumps(_values(case)))


def upgraded(case: Case) -> Release:
    """Its values with another profile for users, which a scheduler of before doesn't have."""
    profile = {"scheduler": {"profiles": {"lab": {"strategy": "pack"}}}, "podClasses": {"user": {"profile": "lab"}}}
    return release_of(json.dumps(merged(_values(case), profile)))


def _values(case: Case) -> Object:
    if case.hub:
        return _imported(case.hub)
    return imported(case.hub_values()) if case.is_imported else case.default_values()


@cache
def _metrics() -> WebhookMetrics:
    return WebhookMetrics("drawn")


class RoostHere:
    """One release at work. Times are the world's seconds."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.now = 0.0
        # What is added to the controllers' wall clock.
        self.clock_off = 0.0
        # The Leases' bodies by name; and the status with which every read of one is refused, 0: none is.
        self.leases: dict[str, Object] = {}
        self.refuses_leases = 0
        # Notes of the gate in reviews, for a report.
        self.warnings: list[str] = []
        self._client = cast("Any", SimpleNamespace(find=self._find_lease))
        self._watches = _Watches(self._client, _metrics(), release.rules, lambda: None, clock=lambda: self.now)
        for cache_ in self._watches.caches:
            cache_._replace({})
        if self._watches._namespaces is not None:
            self._watches._namespaces._set(NAMESPACE, SHARED)
        self._facts, _ = self._watches.refresh()
        self._is_dirty = True
        self._reviewer = Reviewer(
            lambda: self._watches.settings, lambda: self._facts, lambda: self.now, lambda *_: None
        )
        self.take_over()

    def take_over(self) -> None:
        """Controllers that know nothing of before begin to plan."""
        self.controllers_run = True
        for planner in self.release.planners:
            planner.forget()
        self._plan_at = -math.inf

    # What the watches are sent

    def tell_node(self, name: str, node: Node | None) -> None:
        if (nodes := self._watches._nodes) is not None:
            nodes._set(name, node)
        self._is_dirty = True
        self._plan_at = -math.inf

    def tell_pod(self, key: str, body: Object | None, labels: Mapping[str, str]) -> None:
        """labels: the pod's, or of one that is gone."""
        namespace = key.partition("/")[0]
        classes = self._watches.settings.classes
        for name, watch in self._watches._pods.items():
            elsewhere = self._watches._looks_elsewhere(classes[name])
            if (elsewhere or namespace == NAMESPACE) and classes[name].labels.items() <= labels.items():
                watch._set(key, None if body is None else watch._stream._read(body))
                self._is_dirty = True
        self._plan_at = -math.inf

    def tell_cluster(
        self, priority_classes: Iterable[Object], quotas: Iterable[Object], device_classes: Iterable[Object]
    ) -> None:
        watches: Iterable[tuple[Any, Iterable[Object]]] = (
            (self._watches._priorities, priority_classes),
            (self._watches._quotas, quotas),
            (self._watches._device_classes, device_classes),
        )
        for watch, bodies in watches:
            for body in bodies if watch is not None else ():
                watch._set(body["metadata"]["name"], watch._stream._read(body))
        self._is_dirty = True

    def upgrade(self, release: Release) -> None:
        """The webhook has other values, whose scheduler can't start: the one of before goes on."""
        rules = self._watches.settings = release.rules
        if rules.sets_scheduler:
            self._watches.leases[SCHEDULER] = LeaseWatch(
                self._client,
                rules.namespace,
                rules.leases[SCHEDULER],
                host=rules.scheduler_host,
                clock=lambda: self.now,
            )
            # No facts are made of new watches before each Lease was looked at.
            self._watches.leases[SCHEDULER].look()
            self._is_dirty = True

    def renew(self, part: str, holder: str, stamp: str) -> None:
        name = self.release.rules.leases[part]
        self.leases[name] = {"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": stamp}}

    def _find_lease(self, path: str, *, read_seconds: float) -> Object | None:
        if self.refuses_leases:
            raise ApiError(self.refuses_leases, "refused")
        return self.leases.get(path.rpartition("/")[2])

    def look(self, now: float) -> None:
        """Let time pass: Leases are read every other second, and facts are replaced where something changed."""
        self.now = now
        if now % LEASE_SECONDS == 0:
            for lease in self._watches.leases.values():
                lease.look()
            for watch in self._watches.caches:
                watch._stream._hear()
            self._is_dirty = True
        self._refresh()

    def _refresh(self) -> None:
        if self._is_dirty:
            self._facts, seen = self._watches.refresh()
            for key in seen:
                self._reviewer.pod_seen(*key.split("/", 1))
            self._is_dirty = False

    # What it does

    def review(self, body: Object, namespace: str) -> Object:
        """A pod as the webhook leaves it."""
        self._refresh()
        response = allowed(self._reviewer.review(review(body, namespace)))
        self.warnings += response.get("warnings", ())
        patched: Object = jsonpatch.apply_patch(copied(body), patch_of(response), in_place=True)
        return patched

    def plan(self, snapshot: Snapshot, wall: float, apply: Any) -> None:
        """Plan if something changed or a plan asked for it. apply: carries an action out; returns its Outcome."""
        if not self.controllers_run or self.now < self._plan_at:
            return
        moment = Moment(wall + self.now + self.clock_off, self.now)
        self._plan_at = self.now + 30.0
        for planner in self.release.planners:
            planned = planner.plan(snapshot, moment)
            actions: Iterable[Action] = planned.actions
            done = [Done(action, cast("Outcome", apply(action))) for action in actions]
            planner.note(done, moment)
            if planned.wake_after_seconds is not None:
                self._plan_at = min(self._plan_at, self.now + max(1.0, planned.wake_after_seconds))
