"""Roost in this process: the webhook's review over its own watches, and the controllers' plans, fed
by a world.

Nothing of Roost is stood in for but its connections: what the watches would have been sent is given
to them, what the controllers would have written is given back to the world.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, reduce
from types import SimpleNamespace
from typing import Any, cast

import jsonpatch
import orjson
import yaml

from generator.render.manifests import render
from generator.values.release_name import Release as Install
from roost.controllers.contract.actions import Action, Done, Outcome
from roost.controllers.contract.planner import Planner
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.controllers_settings import parse_settings as parse_controllers
from roost.controllers.runtime.watching.bookings import WatchedBookings
from roost.controllers.runtime.watching.namespaces import WatchedNamespaces
from roost_core.kube.client import ApiError
from roost_core.kube.lease_watch import LeaseWatch
from roost_core.kube.watches import Watches
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node
from roost_core.placement.labels import (
    EVENTS_KEY,
    HUB_BOOKINGS,
    PART_OF_LABEL,
    POLICY_REVISION_ANNOTATION,
    WARM_TARGET_ANNOTATION,
)
from roost_core.release.release_settings import CONTROLLERS, SCHEDULER, ReleaseSettings
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import Profile, read_profiles
from tests.builders import NAMESPACE, RELEASE, allowed, default_values, merged, patch_of, review
from tests.judge.cases import BESIDE, SHARED, Case
from tests.judge.hubs import imported
from webhook.metrics import WebhookMetrics
from webhook.review import Reviewer
from webhook.watching.watched_cluster import WatchedCluster
from webhook.webhook_settings import parse_settings as parse_webhook

LEASE_SECONDS = 2.0
# Start notices place nothing.
_PLACING = ("image-gate", "placeholder-mover", "headroom")


@dataclass(frozen=True, slots=True)
class Release:
    """What a values file renders to, as far as pods feel it."""

    rules: ReleaseSettings
    # As the controllers read it.
    shared: ReleaseDocument
    planners: tuple[Planner[Any], ...]
    profiles: Mapping[str, Profile]
    # StatefulSets, DaemonSets and PriorityClasses.
    objects: tuple[JSONObject, ...]

    def of_kind(self, kind: str) -> list[JSONObject]:
        return [body for body in self.objects if body["kind"] == kind]


@cache
def release_of(*layers: str, name: str = RELEASE, namespace: str = NAMESPACE) -> Release:
    """Render values over the defaults, and read them back as the programs do. layers: values as
    JSON.
    """
    values = reduce(merged, map(json.loads, layers), default_values())
    manifests = render(values, Install(name, namespace, f"v1.{NEWEST_MINOR}.0"))
    bodies = [cast("JSONObject", manifest.body) for manifest in manifests]
    texts = {
        key: text
        for body in bodies
        if body["kind"] == "ConfigMap"
        for key, text in body.get("data", {}).items()
    }
    document = json.loads(texts["release.json"])
    configuration = (
        yaml.load(texts["config.yaml"], Loader=yaml.CSafeLoader) if "config.yaml" in texts else None
    )
    controllers = parse_controllers(document, configuration, NEWEST_MINOR)
    return Release(
        rules=parse_webhook(document, revision="drawn"),
        shared=controllers.shared,
        planners=tuple(planner for planner in controllers.planners if planner.name in _PLACING),
        profiles={} if configuration is None else read_profiles(configuration, NEWEST_MINOR),
        objects=tuple(
            body for body in bodies if body["kind"] in ("StatefulSet", "DaemonSet", "PriorityClass")
        ),
    )


def copied(body: JSONObject) -> JSONObject:
    found: JSONObject = orjson.loads(orjson.dumps(body))
    return found


def release_for(case: Case) -> Release:
    own = tuple(profile for profile in case.profiles if profile.namespace != BESIDE)
    return release_of(*_layers(replace(case, profiles=own)))


def release_beside(case: Case) -> Release | None:
    """The second release's, of a hub in a namespace apart; None: there is one release."""
    if case.beside is None:
        return None
    own = tuple(profile for profile in case.profiles if profile.namespace == BESIDE)
    layers = _layers(replace(case, profiles=own, foreseen=case.beside))
    return release_of(*layers, name=BESIDE, namespace=BESIDE)


def upgraded(case: Case) -> Release:
    """Its values with another profile for users, which a scheduler of before doesn't have."""
    profile = {
        "scheduler": {"profiles": {"lab": {"strategy": "pack"}}},
        "podClasses": {"user": {"profile": "lab"}},
    }
    return release_of(*_layers(case), json.dumps(profile))


def _layers(case: Case) -> tuple[str, ...]:
    hub = case.hub or json.dumps(case.hub_values())
    values = imported(hub) if case.is_imported else json.dumps(case.default_values())
    first = case.profiles[0]
    placeholder = {"cpu": str(first.cpu), "memory": f"{first.memory_gib}Gi"}
    foreseen = case.foreseen.values(placeholder) if case.foreseen is not None else {}
    many = [json.dumps(case.many_values())] if case.serves_many else []
    return (
        values,
        *many,
        *([json.dumps(foreseen)] if foreseen else []),
        *([case.odd] if case.odd else []),
    )


@cache
def _metrics() -> WebhookMetrics:
    return WebhookMetrics("drawn")


class RoostHere:
    """One release at work. Times are the world's seconds."""

    def __init__(self, release: Release, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self.release = release
        self.namespace = release.rules.namespace
        # How many builds and users' pods it placed, and of the users how many the gate and a warm
        # set are for.
        self.did: Counter[str] = Counter()
        self.now = 0.0
        # What is added to the controllers' wall clock.
        self.clock_off = 0.0
        # The Leases' bodies by name; and the status with which every read of one is refused, 0:
        # none is.
        self.leases: dict[str, JSONObject] = {}
        self.refuses_leases = 0
        # Notes of the last review.
        self.said: list[str] = []
        self._client = cast("Any", SimpleNamespace(find=self._find_lease))
        self._cluster = WatchedCluster(
            self._client, _metrics(), release.rules, lambda: None, clock=lambda: self.now
        )
        for cache_ in self._cluster.caches:
            cache_._replace({})
        if self._cluster.namespaces.cache is not None:
            for name, labels in {self.namespace: {}, **namespaces}.items():
                self._cluster.namespaces.cache._set(name, {**SHARED, **labels})
        self._watch_bookings(release.shared, namespaces)
        self._facts = self._cluster.refresh()
        self._is_dirty = True
        self._reviewer = Reviewer(
            lambda: self._cluster.settings, lambda: self._facts, lambda: self.now, lambda *_: None
        )
        self.take_over()

    def _watch_bookings(
        self, shared: ReleaseDocument, namespaces: Mapping[str, Mapping[str, str]]
    ) -> None:
        """As the controllers do."""
        watches = Watches(
            self._client,
            on_change=lambda: None,
            on_error=lambda _kind: None,
            clock=lambda: self.now,
        )
        known = WatchedNamespaces(watches, shared)
        self.bookings = WatchedBookings(watches, watches, shared, known)
        for cache_ in watches.caches:
            cache_._replace({})
        for name, labels in {self.namespace: {}, **namespaces}.items():
            if known.cache is not None:
                known.cache._set(name, {**SHARED, **labels})

    def take_over(self) -> None:
        """Controllers that know nothing of before begin to plan."""
        self.controllers_run = CONTROLLERS in self.release.rules.leases
        for planner in self.release.planners:
            planner.forget()
        self._plan_at = -math.inf

    @property
    def watches_other_hubs(self) -> bool:
        """Whether it knows of users outside the namespaces that it serves: `sharedPools`."""
        return any(pods.looks_elsewhere for pods in self._cluster.pods.by_class.values())

    # What the watches are sent

    def tell_node(self, name: str, node: Node | None) -> None:
        if (cache_ := self._cluster.nodes.cache) is not None:
            cache_._set(name, node)
        self._is_dirty = True
        self._plan_at = -math.inf

    def tell_pod(self, key: str, body: JSONObject | None, labels: Mapping[str, str]) -> None:
        """labels: the pod's, or of one that is gone."""
        namespace = key.partition("/")[0]
        classes = self._cluster.settings.classes
        for name, pods in self._cluster.pods.by_class.items():
            is_listed = pods.looks_elsewhere or namespace == self.namespace
            is_selected = classes[name].labels.items() <= labels.items()
            if is_listed and is_selected and (cache_ := pods.cache) is not None:
                cache_._set(key, None if body is None else cache_._stream._read(body))
                self._is_dirty = True
        self._plan_at = -math.inf

    def tell_cluster(
        self,
        priority_classes: Iterable[JSONObject],
        quotas: Iterable[JSONObject],
        device_classes: Iterable[JSONObject],
    ) -> None:
        watches: Iterable[tuple[Any, Iterable[JSONObject]]] = (
            (self._cluster.priority_classes.cache, priority_classes),
            (self._cluster.quotas.cache, quotas),
            (self._cluster.device_classes.cache, device_classes),
        )
        for cache_, bodies in watches:
            for body in bodies if cache_ is not None else ():
                cache_._set(body["metadata"]["name"], cache_._stream._read(body))
        self._is_dirty = True

    def tell_booking(self, namespace: str, text: str) -> None:
        """A namespace's ConfigMap of bookings says so; "": it is gone."""
        of_release = namespace == self.namespace
        cache_ = (self.bookings._of_release if of_release else self.bookings._of_hubs).cache
        if cache_ is None:
            return
        metadata = {"name": HUB_BOOKINGS, "namespace": namespace, "uid": namespace}
        body = {"metadata": metadata, "data": {EVENTS_KEY: text}}
        cache_._set(f"{namespace}/{HUB_BOOKINGS}", cache_._stream._read(body) if text else None)
        self._plan_at = -math.inf

    def upgrade(self, release: Release) -> None:
        """The webhook has other values, whose scheduler can't start: the one of before goes on."""
        rules = self._cluster.settings = release.rules
        leases = self._cluster.leases
        leases.scheduler_host = rules.scheduler_host
        if rules.sets_scheduler:
            leases.by_part[SCHEDULER] = LeaseWatch(
                self._client,
                rules.namespace,
                rules.leases[SCHEDULER],
                host=rules.scheduler_host,
                steady=lambda: self.now,
            )
            # No facts are made of new watches before each Lease was looked at.
            leases.by_part[SCHEDULER].look()
            self._is_dirty = True

    def renew(self, part: str, holder: str, stamp: str) -> None:
        name = self.release.rules.leases[part]
        self.leases[name] = {
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": stamp}
        }

    def _find_lease(self, path: str, *, read_seconds: float) -> JSONObject | None:
        if self.refuses_leases:
            raise ApiError(self.refuses_leases, "refused")
        return self.leases.get(path.rpartition("/")[2])

    def look(self, now: float) -> None:
        """Let time pass: Leases are read every other second, and facts are replaced where something
        changed.
        """
        self.now = now
        if now % LEASE_SECONDS == 0:
            for lease in self._cluster.leases.by_part.values():
                lease.look()
            for cache_ in self._cluster.caches:
                cache_._stream._note_life()
            self._is_dirty = True
        self._refresh()

    def _refresh(self) -> None:
        if self._is_dirty:
            self._facts = self._cluster.refresh()
            self._is_dirty = False

    # What it does

    def review(self, body: JSONObject, namespace: str) -> JSONObject:
        """A pod as the webhook leaves it."""
        self._refresh()
        response = allowed(self._reviewer.review(review(body, namespace)))
        self.said = response.get("warnings", [])
        patched: JSONObject = jsonpatch.apply_patch(copied(body), patch_of(response), in_place=True)
        notes = patched["metadata"].get("annotations", {})
        if (
            POLICY_REVISION_ANNOTATION in notes
            and body["metadata"]["labels"].get("component") == "singleuser-server"
        ):
            self.did["placed"] += 1
            self.did["warm"] += WARM_TARGET_ANNOTATION in notes
            self.did["gated"] += "images-pulled" in json.dumps(patched["spec"].get("affinity", {}))
        elif (
            POLICY_REVISION_ANNOTATION in notes and PART_OF_LABEL not in body["metadata"]["labels"]
        ):
            self.did["builds"] += 1
        return patched

    def plan(self, snapshot: Snapshot, wall: float, apply: Any) -> None:
        """Plan if something changed or a plan asked for it. apply: carries an action out; returns
        its Outcome.
        """
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
