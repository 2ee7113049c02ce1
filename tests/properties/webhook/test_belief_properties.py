"""The webhook's table of docs/beliefs.md, whatever becomes of the evidence: it stops, lags, or comes twice or late.

The keeper's watches and Leases are driven one message at a time, by a server that notes what it has said and when: only
that may count, and only until it is too old.
"""

import random
from typing import Any, Final, cast
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from roost_core.placement import beliefs
from tests import builders
from tests.builders import IMAGE, NAMESPACE, Desk, Object, build_pod, homes_of, pod_terms, required_terms, user_pod
from tests.evidence import FAULTS, Server, hear
from webhook.metrics import WebhookMetrics
from webhook.watch import FactsKeeper

OWN_IMAGE: Final = "team/x"
HOST: Final = "hub-roost-scheduler-new"
OLD: Final = "hub-roost-scheduler-old_1"
(HELD_LABEL,) = builders.held(IMAGE)
LEASES: Final = {"controllers": "hub-roost-controllers", "scheduler": "hub-roost-scheduler"}
RULES: Final = builders.settings(
    podClasses={
        "user": {"match": {"namespaceSelector": {"matchLabels": {"pool": "users"}}}, "warm": {"podsPerNode": 4}}
    },
    sharedNamespaces={"matchLabels": {"pool": "users"}},
    leases=LEASES,
    schedulerHost=HOST,
)
NODES: Final = "/api/v1/nodes"
USERS: Final = "/api/v1/pods component=singleuser-server"
BUILDERS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods app=binder,component=image-builder"
PRIORITIES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
NAMESPACES: Final = "/api/v1/namespaces"
QUOTAS: Final = "/api/v1/resourcequotas"
DEVICES: Final = "/apis/resource.k8s.io/v1/deviceclasses"
WATCHED: Final = (NODES, USERS, BUILDERS, PRIORITIES, QUOTAS, NAMESPACES, DEVICES)
GPU: Final = "example.org/gpu"
NAMES: Final = ("a", "b", "c")
HOMES: Final = len(cast("Any", RULES.classes["build"].home).weights)
NO_LEASE: Final[Object] = {"spec": {"holderIdentity": ""}}
HUB: Final[Object] = {"metadata": {"name": NAMESPACE, "labels": {"pool": "users"}}}
CLASS: Final[Object] = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
QUOTA_SCOPES: Final = ("CrossNamespacePodAffinity", "NotBestEffort")


class LeaseServer(Server):
    """It answers for Leases, too."""

    def __init__(self) -> None:
        super().__init__()
        self.leases: dict[str, Object] = {}
        self.lease_modes: dict[str, str | int] = {}
        # By part: the last renewal that was told, when, and whether as the first; whether all answers since told it.
        self.renewed: dict[str, tuple[Object, float, bool]] = {}
        self.could_read: dict[str, bool] = {}

    def find(self, path: str, *, read_seconds: float) -> Object | None:
        part = next(part for part, name in LEASES.items() if path.endswith(name))
        mode = self.lease_modes.get(part, "ok")
        self.could_read[part] = self.could_read.get(part, True) and mode == "ok"
        if mode in FAULTS:
            raise FAULTS[mode]
        lease = self.leases.get(part)
        if lease is not None and self.renewed.get(part, ({},))[0] != lease:
            self.renewed[part], self.could_read[part] = (lease, self.now, part not in self.renewed), True
        return lease


def node(name: str, uid: str, *, is_usable: bool, holds: bool) -> Object:
    labels = {"kubernetes.io/hostname": name, **(builders.held(IMAGE) if holds else {})}
    return {
        "metadata": {"name": name, "uid": uid, "labels": labels, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"unschedulable": not is_usable},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"},
        },
    }


def bound(name: str, on: str, reason: str = "") -> Object:
    waiting = [{"name": "main", "state": {"waiting": {"reason": reason}}}] if reason else []
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": name, "labels": {"component": "singleuser-server"}},
        "spec": {"nodeName": on, "containers": [{"name": "main", "image": OWN_IMAGE}]},
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
            cast("Any", self.server), WebhookMetrics("test"), lambda _ns, _name: None, clock=lambda: self.server.now
        )
        self.desk = Desk(RULES)
        for name in NAMES:
            self.server.happen(NODES, name, node(name, "first", is_usable=True, holds=name == "a"))
        self.server.happen(BUILDERS, "dind-a", bound("dind-a", "a"))
        self.server.happen(NAMESPACES, NAMESPACE, HUB)
        # Holders that renew their Leases, by part, and in which year by their clocks.
        self.holders: dict[str, str | None] = {"controllers": "one", "scheduler": f"{HOST}_1"}
        self.year = 2099
        # Until when a node was told to fail to pull OWN_IMAGE; pods' versions that are known, and that no longer count.
        self.failed: dict[str, float] = {}
        self.heeded: set[str] = set()
        self.relieved: set[str] = set()
        self.watches: Any = None
        self.replaced_at = 0.0
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
            watches = self._watches()
            for lease in watches.leases.values():
                lease.look()
            for cache in watches.caches:
                # Whose pods they are hangs on their namespace's labels: without any, pods aren't listed.
                if watches._namespaces.synced or not cache.kind.startswith(("pods", "builders")):
                    hear(cache)
            self._heed_pulls()
            self._turn()

    def _watches(self) -> Any:
        watches = cast("Any", self.keeper)._watches
        if watches is not self.watches:
            self.watches, self.replaced_at = watches, self.server.now
            self.server.renewed.clear()
            self.failed.clear()
            self.heeded.clear()
            for kind in self.server.kinds.values():
                kind.told, kind.told_version, kind.heard_at = {}, 0, None
        return watches

    @property
    def may_be_of_before(self) -> bool:
        """Whether what is told by new watches may not count yet."""
        watches, seconds = self._watches(), self.server.now - self.replaced_at
        # Here, the first look comes up to ten seconds later.
        return seconds <= beliefs.EARLIER.age_seconds + 10 and not watches.has_listed()

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
        if keeper._dirty.is_set() or keeper._is_outdated():
            keeper._dirty.clear()
            keeper._swap()

    def _heed_pulls(self) -> None:
        pods = self.server.kind(USERS).told.values()
        news = [pod for pod in pods if pod["metadata"]["resourceVersion"] not in self.heeded]
        self.heeded |= {pod["metadata"]["resourceVersion"] for pod in news}
        started = {pod["spec"]["nodeName"] for pod in news if not pod["status"]["containerStatuses"]}
        failing = [pod for pod in pods if pod["status"]["containerStatuses"]]
        self.relieved |= {pod["metadata"]["resourceVersion"] for pod in failing if pod["spec"]["nodeName"] in started}
        still = [pod for pod in failing if pod["metadata"]["resourceVersion"] not in self.relieved]
        self.failed = {name: at for name, at in self.failed.items() if name not in started}
        self.failed |= {pod["spec"]["nodeName"]: self.server.now for pod in still}

    def knows(self, key: str, belief: beliefs.Belief = beliefs.NODES) -> bool:
        kind = self.server.kind(key)
        is_fresh = kind.heard_at is not None and self.server.now - kind.heard_at <= belief.age_seconds
        return is_fresh and not kind.is_forbidden

    def told(self, key: str) -> list[Object]:
        return list(self.server.kind(key).told.values())

    def trusts(self, part: str, belief: beliefs.Belief) -> set[bool]:
        """Whether its holder is believed to be at work; either may be while the Lease can't be read."""
        if part not in self.server.renewed:
            return {False}
        lease, at, is_first = self.server.renewed[part]
        age = self.server.now - at
        if age <= belief.age_seconds:
            # At first sight its own time counts, which may be wrong.
            return {True, False} if is_first and lease["spec"]["renewTime"] < "2000" else {True}
        return {False} if self.server.could_read[part] or age > 2 * belief.age_seconds else {True, False}

    def place(self, body: Object) -> tuple[Object, str, str]:
        """The pod as stored, why the gate only prefers, and why the pod keeps its scheduler."""
        self.desk.facts, self.desk.now = self.keeper.facts, self.server.now
        placed = self.desk.place(body)
        decision = self.desk.decisions[-1]
        return placed, decision.degraded, decision.left_to_cluster

    def usable(self) -> set[str]:
        return {one["metadata"]["name"] for one in self.told(NODES) if not one["spec"]["unschedulable"]}


def names_in(body: Object) -> set[str]:
    return {name for _, name in homes_of(body)}


def check_scheduler(world: World) -> None:
    placed, _, left = world.place(user_pod())
    trusted = world.trusts("scheduler", beliefs.SCHEDULER_WORKS)
    is_named = placed["spec"]["schedulerName"] == "hub.jhub.user"
    assert is_named is (left == "")
    lease = world.server.renewed["scheduler"][0] if "scheduler" in world.server.renewed else NO_LEASE
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
    holders = {one["metadata"]["name"] for one in world.told(NODES) if HELD_LABEL in one["metadata"]["labels"]}
    if not world.knows(NODES):
        assert degraded == beliefs.NODES.then
    elif lowest < 0 or not world.knows(PRIORITIES, beliefs.PRIORITIES):
        assert degraded == beliefs.PRIORITIES.then
    else:
        assert degraded == ("" if holders & world.usable() else "no-holder")


def check_devices(world: World) -> None:
    container = {"name": "main", "image": IMAGE, "resources": {"limits": {GPU: "1"}, "requests": {GPU: "1"}}}
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
    return {one["metadata"]["name"] for one in world.told(QUOTAS)}


def check_warm(world: World) -> None:
    named = names_in(world.place(user_pod(OWN_IMAGE))[0])
    failing = {name for name, at in world.failed.items() if world.server.now - at < beliefs.FAILED_PULL.age_seconds}
    if not (world.knows(NODES) and world.knows(USERS)):
        assert named == set()
    else:
        assert named <= world.usable() - failing
        assert named or not world.usable() - world.failed.keys()


def check_home(world: World) -> None:
    named = names_in(world.place(build_pod())[0])
    builders = {one["spec"]["nodeName"] for one in world.told(BUILDERS)} if world.knows(BUILDERS) else set()
    ring = builders & world.usable() or world.usable() if world.knows(NODES) else builders
    assert named <= ring
    assert len(named) == min(len(ring), HOMES)


def check_quotas(world: World) -> None:
    placed, _, _ = world.place(user_pod())
    is_free = world.knows(QUOTAS, beliefs.QUOTAS) and "CrossNamespacePodAffinity" not in scopes_told(world)
    terms = [term["podAffinityTerm"] for term in pod_terms(placed, "podAffinity")]
    assert {key in term for term in terms for key in ("namespaceSelector", "namespaces")} == {is_free}


def draw_happening(rng: random.Random, often: str) -> tuple[Any, ...]:
    name, is_gone = rng.choice(NAMES), rng.random() < 0.4
    kind = often if rng.random() < 0.5 else rng.choice(["holder", "clocks jump", "values change", *WATCHED])
    match kind:
        case "holder":
            return "holder", rng.choice(sorted(LEASES)), rng.choice([None, f"{HOST}_1", OLD])
        case "values change":
            return (kind,)
        case "clocks jump":
            return "clocks jump", rng.choice([1999, 2099])
        case k if k == NODES:
            item = node(name, rng.choice(["first", "second"]), is_usable=rng.random() < 0.7, holds=rng.random() < 0.7)
        case k if k == USERS:
            item = bound(rng.choice(["one", "two"]), name, rng.choice(["", "ErrImagePull"]))
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
    key = often if rng.random() < 0.5 else rng.choice(WATCHED)
    return rng.choice(
        [
            ("answers", key, rng.choice(["silent", "lags", "repeats", "out of order", "out of reach", 401, 403, 410])),
            ("answers", key, rng.choice(["silent", "out of reach", 403])),
            ("lease", rng.choice(sorted(LEASES)), rng.choice(["ok", "out of reach", 401, 403])),
            ("all is well",),
        ]
    )


@given(seed=st.integers(0, 2**32))
# A pod whose pull fails is first seen beside one that runs the image on the same node.
@example(seed=13212)
def test_whatever_becomes_of_the_evidence_each_belief_ends_with_its_age_and_is_used_until_then(seed: int) -> None:
    rng = random.Random(seed)
    with patch("webhook.watch._Watches.start"):
        world = World()
        # Of one kind much is said: what comes again, or late, says something else than what came before.
        often = rng.choice(WATCHED)
        for _ in range(6):
            for step in (draw_trouble(rng, often), draw_happening(rng, often), draw_happening(rng, often)):
                world.do(step)
                world.pass_time(rng.choice([1.0, 9.0, 31.0, 61.0, 301.0]))
                if not world.may_be_of_before:
                    check(world)


def check(world: World) -> None:
    check_home(world)
    check_requests(world)
    if world.knows(NAMESPACES, beliefs.NAMESPACES) and any(one["metadata"]["labels"] for one in world.told(NAMESPACES)):
        for check_one in (check_scheduler, check_gate, check_devices, check_warm, check_quotas):
            check_one(world)
    else:
        assert world.place(user_pod())[0] == user_pod()
