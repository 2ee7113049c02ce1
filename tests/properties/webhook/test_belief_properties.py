"""The webhook's table of docs/beliefs.md, whatever becomes of the evidence: it stops, lags, or
comes twice or late.

The keeper's watches and Leases are driven one message at a time, by a server that notes what it has
said and when: only that may count, and only until it is too old. Each row of the table has its
property here: PROPERTIES.
"""

import math
import random
from collections.abc import Callable
from typing import Any, Final, cast
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost_core.objects.fields import JSONObject
from roost_core.placement import beliefs
from tests import builders
from tests.builders import (
    IMAGE,
    NAMESPACE,
    Desk,
    build_pod,
    homes_of,
    pod_terms,
    required_terms,
    user_pod,
)
from tests.evidence import FAULTS, Server, hear
from webhook.metrics import WebhookMetrics
from webhook.watching.keeper import FactsKeeper

OWN_IMAGE: Final = "team/x"
HELD_IMAGE: Final = "docker.io/team/x:latest"
SECRET: Final = "theirs"
HOST: Final = "hub-roost-scheduler-new"
OLD: Final = "hub-roost-scheduler-old_1"
(HELD_LABEL,) = builders.held(IMAGE)
LEASES: Final = {"controllers": "hub-roost-controllers", "scheduler": "hub-roost-scheduler"}
RULES: Final = builders.settings(
    podClasses={
        "user": {
            "match": {"namespaceSelector": {"matchLabels": {"pool": "users"}}},
            "warm": {"podsPerNode": 4},
        }
    },
    sharedPools={"namespaceSelector": {"matchLabels": {"pool": "users"}}},
    leases=LEASES,
    schedulerHost=HOST,
)
NODES: Final = "/api/v1/nodes"
USERS: Final = "/api/v1/pods component=singleuser-server"
BUILDERS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods app=binder,component=image-builder"
BUILDS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods component=binderhub-build"
PRIORITIES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
NAMESPACES: Final = "/api/v1/namespaces"
QUOTAS: Final = "/api/v1/resourcequotas"
DEVICES: Final = "/apis/resource.k8s.io/v1/deviceclasses"
WATCHED: Final = (NODES, USERS, BUILDERS, PRIORITIES, QUOTAS, NAMESPACES, DEVICES)
LEASE: Final = "leases"
GPU: Final = "example.org/gpu"
NAMES: Final = ("a", "b", "c")
HOMES: Final = len(cast("Any", RULES.classes["build"].home).weights)
NO_LEASE: Final[JSONObject] = {"spec": {"holderIdentity": ""}}
HUB: Final[JSONObject] = {"metadata": {"name": NAMESPACE, "labels": {"pool": "users"}}}
CLASS: Final[JSONObject] = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
QUOTA_SCOPES: Final = ("CrossNamespacePodAffinity", "NotBestEffort")


class LeaseServer(Server):
    """It answers for Leases, too."""

    def __init__(self) -> None:
        super().__init__()
        self.leases: dict[str, JSONObject] = {}
        self.lease_modes: dict[str, str | int] = {}
        # By part: the last renewal that was told, when, and whether as the first; whether all
        # answers since told it.
        self.renewed: dict[str, tuple[JSONObject, float, bool]] = {}
        self.could_read: dict[str, bool] = {}

    def find(self, path: str, *, read_seconds: float) -> JSONObject | None:
        part = next(part for part, name in LEASES.items() if path.endswith(name))
        mode = self.lease_modes.get(part, "ok")
        self.could_read[part] = self.could_read.get(part, True) and mode == "ok"
        if mode in FAULTS:
            raise FAULTS[mode]
        lease = self.leases.get(part)
        if lease is not None and self.renewed.get(part, ({},))[0] != lease:
            self.renewed[part], self.could_read[part] = (
                (lease, self.now, part not in self.renewed),
                True,
            )
        return lease


def node(
    name: str, uid: str, *, is_usable: bool, holds: bool, images: tuple[str, ...] = ()
) -> JSONObject:
    labels = {"kubernetes.io/hostname": name, **(builders.held(IMAGE) if holds else {})}
    return {
        "metadata": {
            "name": name,
            "uid": uid,
            "labels": labels,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"unschedulable": not is_usable},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"},
            "images": [{"names": [image], "sizeBytes": 1} for image in images],
        },
    }


def bound(
    name: str, on: str, reason: str = "", *, is_always: bool = False, secret: str = ""
) -> JSONObject:
    waiting = (
        [{"name": "main", "state": {"waiting": {"reason": reason}}}]
        if reason not in ("", "starts")
        else []
    )
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": name,
            "labels": {"component": "singleuser-server"},
        },
        "spec": {
            "nodeName": on,
            "containers": [
                {
                    "name": "main",
                    "image": OWN_IMAGE,
                    "imagePullPolicy": "Always" if is_always else "IfNotPresent",
                }
            ],
            "imagePullSecrets": [{"name": secret}] if secret else [],
        },
        "status": {
            "phase": "Pending" if reason else "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": waiting,
        },
    }


class World:
    """A keeper without threads, its server, and what the table says of its evidence."""

    def __init__(self) -> None:
        self.server = LeaseServer()
        self.keeper = FactsKeeper(
            cast("Any", self.server), WebhookMetrics("test"), clock=lambda: self.server.now
        )
        self.desk = Desk(RULES)
        for name in NAMES:
            self.server.happen(NODES, name, node(name, "first", is_usable=True, holds=name == "a"))
        self.server.happen(BUILDERS, "dind-a", bound("dind-a", "a"))
        self.server.happen(NAMESPACES, NAMESPACE, HUB)
        # Holders that renew their Leases, by part, and in which year by their clocks.
        self.holders: dict[str, str | None] = {"controllers": "one", "scheduler": f"{HOST}_1"}
        self.year = 2099
        # When a node last failed to pull OWN_IMAGE with a secret; pods' versions that are known;
        # and what pods say of it now.
        self.failed: dict[tuple[str, str], float] = {}
        self.heeded: dict[str, str] = {}
        self.failing: dict[str, tuple[str, str]] = {}
        # Pods that wait for their start: where, since when, and whether it was told why.
        self.starting: dict[str, tuple[str, float, bool]] = {}
        # Whether a pod pulls in any case, and with which secret.
        self.pulls: dict[str, tuple[bool, str]] = {}
        # Nodes where OWN_IMAGE has run or was reported, which node that was, and its last report.
        self.proven: set[str] = set()
        self.machines: dict[str, str] = {}
        self.reports: dict[str, list[JSONObject]] = {}
        self.cluster: Any = None
        self.replaced_at = 0.0
        self.before, self.has_listed = self.keeper.facts, False
        self.keeper.follow(RULES)
        self.pass_time(2.0)

    def do(self, step: Any) -> None:
        match step:
            case ("all is well",):
                self.server.lease_modes.clear()
                self.holders = {"controllers": "one", "scheduler": f"{HOST}_1"}
                for kind in self.server.kinds.values():
                    kind.mode = "ok"
            case "answers", key, mode:
                self.server.kind(key).mode = mode
            case "lease", part, mode:
                self.server.lease_modes[part] = mode
            case "holder", part, holder:
                self.holders[part] = holder
            case ("values change",):
                cast("Any", self.keeper)._watch_anew(RULES)
                self._cluster()
            case "clocks jump", year:
                self.year = year
            case "object", key, name, item:
                self.server.happen(key, name, item)

    def pass_time(self, seconds: float) -> None:
        """As the threads would: holders renew, Leases are read, and watches hear what is said."""
        left = seconds
        while left > 0:
            step = min(left, 10.0)
            left -= step
            self.server.now += step
            self._renew()
            cluster = self._cluster()
            self.look_seconds = [hear(lease) for lease in cluster.leases.by_part.values()]
            for cache in cluster.caches:
                # Whose pods they are hangs on their namespace's labels: without any, pods aren't
                # listed.
                if cluster.namespaces.cache.synced or not cache.kind.startswith(
                    ("pods", "builders")
                ):
                    hear(cache)
            self._turn()

    def _cluster(self) -> Any:
        cluster = cast("Any", self.keeper)._cluster
        if cluster is not self.cluster:
            self.cluster, self.replaced_at = cluster, self.server.now
            self.before, self.has_listed = self.keeper.facts, False
            for known in (
                self.server.renewed,
                self.failed,
                self.heeded,
                self.failing,
                self.pulls,
                self.starting,
                self.proven,
                self.machines,
            ):
                cast("Any", known).clear()
            self.reports.clear()
            for kind in self.server.kinds.values():
                kind.told, kind.told_version, kind.heard_at, kind.fault = {}, 0, None, ""
        return cluster

    @property
    def may_be_of_before(self) -> bool:
        """Whether what is told by new watches may not count yet."""
        cluster, seconds = self._cluster(), self.server.now - self.replaced_at
        # Here, the first look comes up to ten seconds later.
        return seconds <= beliefs.EARLIER.age_seconds + 10 and not cluster.has_listed()

    def _renew(self) -> None:
        minutes, seconds = divmod(self.server.now, 60)
        time = f"{self.year}-01-01T{minutes // 60:02.0f}:{minutes % 60:02.0f}:{seconds:09.6f}Z"
        for part, holder in self.holders.items():
            if holder is not None:
                spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": time}
                self.server.leases[part] = {"spec": spec}

    def _turn(self) -> None:
        """What the keeper's thread does within a second."""
        keeper = cast("Any", self.keeper)
        self.has_listed |= self._cluster().has_listed()
        if keeper._dirty.is_set() or keeper._is_outdated():
            facts = keeper.facts
            keeper._dirty.clear()
            keeper._swap()
            if keeper.facts is not facts:
                self._heed()
            self._cluster()

    def _heed(self) -> None:
        """Take in what pods, and then nodes, have been told of OWN_IMAGE."""
        pods, nodes, now = (
            self.server.kind(USERS).told,
            self.server.kind(NODES).told,
            self.server.now,
        )
        versions = {name: pod["metadata"]["resourceVersion"] for name, pod in pods.items()}
        changed = [
            name for name in {*pods, *self.heeded} if versions.get(name) != self.heeded.get(name)
        ]
        self.heeded = versions
        on = {name: pod["spec"]["nodeName"] for name, pod in pods.items()}
        fails = {name for name, pod in pods.items() if pod["status"]["containerStatuses"]}
        starts = {name for name, pod in pods.items() if pod["status"]["phase"] == "Pending"}
        # By their own lists, nodes that hold it, and that say all they hold.
        lists = {name: self._listed(one) for name, one in nodes.items() if self.knows(NODES)}
        listing = {name for name, images in lists.items() if HELD_IMAGE in images}
        whole = {name for name, images in lists.items() if images}
        running = {on[name] for name in pods if name not in starts}
        given_up = set[tuple[str, str]]()
        for name in changed:
            node, since, was_told = self.starting.pop(name, ("", now, True))
            is_over = node != on.get(name) and now - since >= beliefs.WAITED_SECONDS
            is_always, secret = self.pulls.pop(name, (False, ""))
            holds = node in self.proven | listing or (is_always and node not in whole)
            given_up |= {(node, secret)} if is_over and not was_told and not holds else set()
            self.failing.pop(name, None)
            if name in pods:
                self.pulls[name] = is_always, secret = how_pulled(pods[name])
                holds = on[name] in listing | running or (
                    is_always and (on[name] in self.proven or on[name] not in whole)
                )
                if name in fails and not holds:
                    self.failing[name] = on[name], secret
            if name in starts:
                self.starting[name] = on[name], since if node == on[name] else now, name in fails
        runs = {on[name] for name in changed if name in pods and name not in starts}
        self.failing = {name: pull for name, pull in self.failing.items() if pull[0] not in runs}
        self.failed = {pull: min(at, now) for pull, at in self.failed.items()}
        self.failed |= dict.fromkeys(given_up, now)
        self.failed = {pull: at for pull, at in self.failed.items() if pull[0] not in runs}
        self.failed |= dict.fromkeys(self.failing.values(), math.inf)
        lacking = {
            on[name]
            for name in changed
            if name in fails and not self.pulls[name][0] and on[name] not in listing | running
        }
        self.proven = (self.proven | runs) - lacking
        self._heed_nodes(
            nodes, {node for name, node in on.items() if name not in fails}, set(on.values())
        )
        self.failed = {
            pull: at for pull, at in self.failed.items() if pull[0] not in self.proven | listing
        }

    def _listed(self, one: JSONObject) -> set[str]:
        return {name for image in one["status"]["images"] for name in image["names"]}

    def _heed_nodes(self, nodes: dict[str, JSONObject], needed: set[str], used: set[str]) -> None:
        if not self.server.kind(NODES).heard_at or self.server.kind(NODES).is_forbidden:
            self.proven &= used
            self.reports.clear()
            return
        uids = {name: body["metadata"]["uid"] for name, body in nodes.items()}
        same = {name for name, uid in uids.items() if self.machines.get(name, uid) == uid}
        self.machines = uids
        self.proven &= same
        self.reports = {name: images for name, images in self.reports.items() if name in same}
        for name, one in nodes.items() if self.knows(NODES) else ():
            now, before = one["status"]["images"], self.reports.get(name)
            has, had = (
                [HELD_IMAGE] in [image["names"] for image in images or ()]
                for images in (now, before)
            )
            if has and (not had or name in self.proven):
                self.proven.add(name)
            elif before and len(now) < len(before) and now and not has and name not in needed:
                self.proven.discard(name)
            self.reports |= {name: now} if now else {}

    def knows(self, key: str, belief: beliefs.Belief = beliefs.NODES) -> bool:
        kind = self.server.kind(key)
        is_fresh = (
            kind.heard_at is not None and self.server.now - kind.heard_at <= belief.age_seconds
        )
        return is_fresh and not kind.is_forbidden

    def told(self, key: str) -> list[JSONObject]:
        return list(self.server.kind(key).told.values())

    def trusts(self, part: str, belief: beliefs.Belief) -> set[bool]:
        """Whether its holder is believed to be at work; either may be while the Lease can't be
        read.
        """
        if part not in self.server.renewed:
            return {False}
        lease, at, is_first = self.server.renewed[part]
        age = self.server.now - at
        if age <= belief.age_seconds:
            # At first sight its own time counts, which may be wrong.
            return {True, False} if is_first and lease["spec"]["renewTime"] < "2000" else {True}
        return (
            {False}
            if self.server.could_read[part] or age > 2 * belief.age_seconds
            else {True, False}
        )

    def place(self, body: JSONObject) -> tuple[JSONObject, str, str]:
        """The pod as stored, why the gate only prefers, and why the pod keeps its scheduler."""
        self.desk.facts, self.desk.now = self.keeper.facts, self.server.now
        placed = self.desk.place(body, dryRun=True)
        decision = self.desk.decisions[-1]
        return placed, decision.degraded, decision.left_to_cluster

    def usable(self) -> set[str]:
        return {
            body["metadata"]["name"]
            for body in self.told(NODES)
            if not body["spec"]["unschedulable"]
        }


def how_pulled(pod: JSONObject) -> tuple[bool, str]:
    """Whether it asks for its image in any case, and with which secret."""
    (container,) = pod["spec"]["containers"]
    secrets = [secret["name"] for secret in pod["spec"]["imagePullSecrets"]]
    return container["imagePullPolicy"] == "Always", "".join(secrets)


def names_in(body: JSONObject) -> set[str]:
    return {name for _, name in homes_of(body)}


def check_scheduler(world: World) -> None:
    placed, _, left = world.place(user_pod())
    assert max(world.look_seconds) <= beliefs.SERVED.age_seconds
    trusted = world.trusts("scheduler", beliefs.SCHEDULER_WORKS)
    is_named = placed["spec"]["schedulerName"] == "hub.jhub.user"
    assert is_named is (left == "")
    lease = (
        world.server.renewed["scheduler"][0] if "scheduler" in world.server.renewed else NO_LEASE
    )
    is_served = lease["spec"]["holderIdentity"].startswith(HOST)
    if is_named:
        assert True in trusted
        assert is_served
    elif left in (beliefs.SCHEDULER_WORKS.then, "unknown"):
        assert False in trusted
    else:
        assert left == beliefs.SERVED.then
        assert not is_served


def check_gate(world: World) -> None:
    placed, degraded, _ = world.place(user_pod())
    assert (required_terms(placed) is None) is bool(degraded)
    trusted = world.trusts("controllers", beliefs.LABELS_KEPT)
    if degraded == beliefs.LABELS_KEPT.then:
        assert False in trusted
        return
    assert True in trusted
    lowest = min((one["value"] for one in world.told(PRIORITIES)), default=0)
    holders = {
        body["metadata"]["name"]
        for body in world.told(NODES)
        if HELD_LABEL in body["metadata"]["labels"]
    }
    if not world.knows(NODES):
        assert degraded == beliefs.NODES.then
    elif lowest < 0 or not world.knows(PRIORITIES, beliefs.PRIORITIES):
        assert degraded == beliefs.PRIORITIES.then
    else:
        assert degraded == ("" if holders & world.usable() else "no-holder")


def check_devices(world: World) -> None:
    container = {
        "name": "main",
        "image": IMAGE,
        "resources": {"limits": {GPU: "1"}, "requests": {GPU: "1"}},
    }
    _, without, _ = world.place(user_pod())
    _, degraded, _ = world.place(user_pod(containers=[container]))
    is_claimable = world.knows(DEVICES, beliefs.CLAIMABLE) and bool(world.told(DEVICES))
    assert degraded == (without if without or is_claimable else beliefs.CLAIMABLE.then)


def check_requests(world: World) -> None:
    placed, _, _ = world.place(build_pod())
    lowest = min((one["value"] for one in world.told(PRIORITIES)), default=0)
    is_free = world.knows(QUOTAS, beliefs.QUOTAS) and "NotBestEffort" not in scopes_told(world)
    is_harmless = world.knows(PRIORITIES, beliefs.PRIORITIES) and lowest >= 0
    assert bool(placed["spec"]["containers"][0]["resources"]) is (is_free and is_harmless)


def scopes_told(world: World) -> set[str]:
    return {body["metadata"]["name"] for body in world.told(QUOTAS)}


def check_warm(world: World) -> None:
    for secret in ("", SECRET):
        secrets = [{"name": secret}] if secret else []
        named = names_in(world.place(user_pod(OWN_IMAGE, imagePullSecrets=secrets))[0])
        failed = {node: at for (node, used), at in world.failed.items() if used == secret}
        failing = {
            node
            for node, at in failed.items()
            if world.server.now - at < beliefs.FAILED_PULL.age_seconds
        }
        if not (world.knows(NODES) and world.knows(USERS)):
            assert named == set()
        else:
            assert named <= world.usable() - failing
            assert world.usable() - failed.keys() <= named


def check_home(world: World) -> None:
    named = names_in(world.place(build_pod())[0])
    builders = (
        {body["spec"]["nodeName"] for body in world.told(BUILDERS)}
        if world.knows(BUILDERS)
        else set()
    )
    ring = builders & world.usable() or world.usable() if world.knows(NODES) else builders
    assert named <= ring
    assert len(named) == min(len(ring), HOMES)


def check_quotas(world: World) -> None:
    placed, _, _ = world.place(user_pod())
    is_free = world.knows(
        QUOTAS, beliefs.QUOTAS
    ) and "CrossNamespacePodAffinity" not in scopes_told(world)
    terms = [term["podAffinityTerm"] for term in pod_terms(placed, "podAffinity")]
    assert {key in term for term in terms for key in ("namespaceSelector", "namespaces")} == {
        is_free
    }


def check_held(world: World) -> None:
    if (warm := world.keeper.facts.warm.get("user")) is None:
        return
    shown = {
        body["spec"]["nodeName"]
        for body in world.told(USERS)
        if not body["status"]["containerStatuses"]
    }
    if (nodes := world.server.kind(NODES)).heard_at is not None and not nodes.is_forbidden:
        shown &= nodes.told.keys()
    holders = warm.holders(HELD_IMAGE)
    assert world.proven <= holders <= world.proven | shown


def check_earlier(world: World) -> None:
    """Until the new watches have listed, what was known goes on, and then no longer than said."""
    seconds = world.server.now - world.replaced_at
    if not world.has_listed and seconds <= beliefs.EARLIER.age_seconds:
        assert world.keeper.facts is world.before
    elif world.has_listed or seconds > beliefs.EARLIER.age_seconds + 10:
        assert world.keeper.facts is not world.before


def check_namespaces(world: World) -> None:
    is_known = world.knows(NAMESPACES, beliefs.NAMESPACES)
    is_selected = is_known and any(body["metadata"]["labels"] for body in world.told(NAMESPACES))
    assert (world.place(user_pod())[0] != user_pod()) is is_selected


def draw_happening(rng: random.Random, often: str) -> tuple[Any, ...]:
    name, is_gone = rng.choice(NAMES), rng.random() < 0.4
    kind = (
        rng.choice(often.split("|"))
        if rng.random() < 0.5
        else rng.choice(["clocks jump", "values change", LEASE, *WATCHED])
    )
    match kind:
        case k if k == LEASE:
            return "holder", rng.choice(sorted(LEASES)), rng.choice([None, f"{HOST}_1", OLD])
        case "values change":
            return (kind,)
        case "clocks jump":
            return "clocks jump", rng.choice([1999, 2099])
        case k if k == NODES:
            images = rng.choice(
                [(), (), (HELD_IMAGE,), ("other", HELD_IMAGE), ("other",), ("other", "third")]
            )
            uid, is_usable, holds = (
                rng.choice(["first", "second"]),
                rng.random() < 0.7,
                rng.random() < 0.7,
            )
            item = node(name, uid, is_usable=is_usable, holds=holds, images=images)
        case k if k == USERS:
            item = bound(
                rng.choice(["one", "two"]),
                name,
                rng.choice(["", "starts", "ErrImagePull"]),
                is_always=rng.random() < 0.4,
                secret=rng.choice(["", SECRET]),
            )
        case k if k == BUILDS:
            name = f"build-{rng.randint(1, 6)}"
            return ("object", k, name, bound(name, "a")) if is_gone else ("review", name)
        case k if k == BUILDERS:
            item = bound(rng.choice(["dind-a", "dind-b"]), name)
        case k if k == PRIORITIES:
            item = {"metadata": {"name": "low"}, "value": -5}
        case k if k == QUOTAS:
            scope = rng.choice(QUOTA_SCOPES)
            spec = {"scopeSelector": {"matchExpressions": [{"scopeName": scope}]}}
            item = {"metadata": {"name": scope, "namespace": NAMESPACE}, "spec": spec}
        case k if k == DEVICES:
            item = CLASS
        case _:
            labels = {} if is_gone else HUB["metadata"]["labels"]
            return "object", kind, NAMESPACE, {"metadata": {"name": NAMESPACE, "labels": labels}}
    return "object", kind, item["metadata"]["name"], None if is_gone else item


def draw_trouble(rng: random.Random, often: str) -> tuple[Any, ...]:
    key = rng.choice(often.split("|")) if rng.random() < 0.5 else rng.choice((LEASE, *WATCHED))
    if key == LEASE:
        return "lease", rng.choice(sorted(LEASES)), rng.choice(["ok", "out of reach", 401, 403])
    trouble = rng.choice(
        ["silent", "lags", "repeats", "out of order", "out of reach", 401, 403, 410]
    )
    return rng.choice([("answers", key, trouble), ("answers", key, trouble), ("all is well",)])


# By row of the table: of what much is said, so that what comes again, or late, says something else
# than what came before; and what must hold whatever becomes of it.
PROPERTIES: Final[dict[beliefs.Belief, tuple[str, Callable[[World], None]]]] = {
    beliefs.NODES: (NODES, check_gate),
    beliefs.HELD: (f"{USERS}|{NODES}", check_held),
    beliefs.FAILED_PULL: (USERS, check_warm),
    beliefs.LABELS_KEPT: (LEASE, check_gate),
    beliefs.SCHEDULER_WORKS: (LEASE, check_scheduler),
    beliefs.SERVED: (LEASE, check_scheduler),
    beliefs.PRIORITIES: (PRIORITIES, check_gate),
    beliefs.CLAIMABLE: (DEVICES, check_devices),
    beliefs.QUOTAS: (QUOTAS, check_quotas),
    beliefs.PODS: (USERS, check_warm),
    beliefs.BUILDERS: (BUILDERS, check_home),
    beliefs.NAMESPACES: (NAMESPACES, check_namespaces),
    beliefs.EARLIER: ("values change", check_earlier),
}
OF_ALL_PODS: Final = (check_earlier, check_namespaces, check_home)


@pytest.mark.parametrize("belief", beliefs.WEBHOOK, ids=lambda belief: belief.name)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=10)
def test_each_belief_ends_with_its_age_and_is_used_until_then(
    belief: beliefs.Belief, seed: int
) -> None:
    rng = random.Random(seed)
    often, check = PROPERTIES[belief]
    with patch("webhook.watching.keeper.WatchedCluster.start"):
        world = World()
        for _ in range(6):
            for step in (
                draw_trouble(rng, often),
                draw_happening(rng, often),
                draw_happening(rng, often),
            ):
                world.do(step)
                world.pass_time(rng.choice([1.0, 9.0, 31.0, 61.0, 301.0]))
                if check is check_earlier:
                    check_earlier(world)
                elif not world.may_be_of_before:
                    check_namespaces(world)
                    if check in OF_ALL_PODS or world.place(user_pod())[0] != user_pod():
                        check(world)
                        check_requests(world)
