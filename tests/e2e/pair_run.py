"""Play one case on two real control planes at once, Roost on one of them only, and hold the one
against the other.

Owns the property: whoever has a node, or runs, without Roost has one, or runs, with it, at most 30
s later; and where an autoscaler adds a node without it, it adds one with it, and not many more.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Protocol, Self

import yaml

from roost_core.objects.fields import JSONObject
from tests.e2e.pair_machines import (
    SCAN_SECONDS,
    ClusterAutoscaler,
    Kubelets,
    add_node,
    create_priority_classes,
    settle,
)
from tests.harness.api import ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.karpenter import NODE_CLAIMS, InstanceType, Karpenter, is_booted
from tests.harness.nodes import NODES, FakeNodes
from tests.judge.cases import (
    GROUP_LABEL,
    HOSTNAME,
    Arrival,
    Case,
    Fault,
    Other,
    other_pod,
    user_pod,
)
from tests.stack import Stack, run_roost

RELEASE = "hub"
STEPS = ("bound", "running")
# What the promise allows.
ALLOWED_SECONDS = 30.0
# What looking twice a second, on a machine that does other things, adds.
LOOK_SECONDS = 1.5
# For placeholders, and for an autoscaler that looks while users are still kept off a node that
# pulls.
MORE_NODES = 2


class Grower(Protocol):
    @property
    def is_growing(self) -> bool: ...


class KarpenterPools:
    """A real Karpenter with a node pool for each pool that may grow."""

    # Ports can't be kept for it while it starts: two that start at once may be given the same.
    _starts_alone = threading.Lock()

    def __init__(self, cluster: ControlPlane, case: Case) -> None:
        self._cluster = cluster
        self._pools = [pool for pool in case.pools if pool.most > pool.at_first]
        self._types = [
            InstanceType(pool.name, cpu=pool.cpu, memory=pool.memory, price=1.0)
            for pool in self._pools
        ]
        self._karpenter = Karpenter(
            cluster, instance_types=self._types, boot_delay_seconds=case.boot_seconds
        )

    @property
    def is_growing(self) -> bool:
        return any(not is_booted(node) for node in self._karpenter.nodes())

    def __enter__(self) -> Self:
        with self._starts_alone:
            self._karpenter.start()
        for pool in self._pools:
            labels = {GROUP_LABEL: pool.name, **pool.labels}
            self._karpenter.create_node_pool(
                pool.name, labels=labels, taints=pool.taints, instance_types=[pool.name]
            )
        return self

    def __exit__(self, *_: object) -> None:
        """Take all away at once: Karpenter itself would drain each node, which nobody here waits
        for.
        """
        self._karpenter.stop()
        api = self._cluster.api
        nodes = FakeNodes(api)
        for pool in self._pools:
            api.delete(f"/apis/karpenter.sh/v1/nodepools/{pool.name}")
        for kind, found in (
            (NODE_CLAIMS, self._karpenter.node_claims()),
            (NODES, self._karpenter.nodes()),
        ):
            for body in found:
                path = f"{kind}/{body['metadata']['name']}"
                api.patch(path, {"metadata": {"finalizers": None}})
                if kind == NODES:
                    nodes.delete(body["metadata"]["name"])
                else:
                    api.delete(path)


def imported_values(case: Case, folder: Path) -> JSONObject:
    path = folder / f"{case.name}-hub.yaml"
    path.write_text(yaml.safe_dump(case.hub_values()))
    printed = run_roost("import", str(path), "--hub-release", RELEASE)
    loaded: JSONObject = yaml.safe_load(printed) or {}
    return loaded


@dataclass(slots=True)
class Seen:
    """What became of one user: seconds since the first arrival's moment."""

    profile: str
    created: float | None = None
    bound: float | None = None
    running: float | None = None
    node: str = ""
    # What the API server said when it refused the pod, and when somebody deleted it.
    refused: str = ""
    deleted: float | None = None


@dataclass(slots=True)
class Record:
    """What one side's observer saw."""

    users: dict[str, Seen] = field(default_factory=dict)
    # Nodes that joined after the beginning, in order.
    nodes: dict[str, float] = field(default_factory=dict)
    last_change: float = 0.0

    def moments(self, profile: str, step: str) -> list[float]:
        """When users of a profile took a step, in order; users of one profile are as good as each
        other.
        """
        found = [getattr(seen, step) for seen in self.users.values() if seen.profile == profile]
        return sorted(moment for moment in found if moment is not None)

    @property
    def waits(self) -> bool:
        waiting = (
            seen
            for seen in self.users.values()
            if seen.created is not None and seen.deleted is None
        )
        return any(seen.bound is None for seen in waiting)


class Side:
    """One of the two: a control plane with nodes, kubelets, an autoscaler and the cluster's own
    scheduler.
    """

    def __init__(self, cluster: ControlPlane, case: Case, values: JSONObject | None) -> None:
        """values: Roost's; None: it isn't there."""
        self.cluster = cluster
        self.case = case
        self.values = values
        self.stack: Stack | None = None
        self.record = Record()
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as exits:
            self._start(exits)
            self._exits = exits.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def _start(self, exits: contextlib.ExitStack) -> None:
        api, case = self.cluster.api, self.case
        self.namespace = self.cluster.create_namespace()
        exits.callback(api.delete, f"/api/v1/namespaces/{self.namespace}")
        create_priority_classes(api, case)
        images = {profile.image for profile in case.profiles}
        self.kubelets = exits.enter_context(Kubelets(api, images, case.pull_seconds))
        self.nodes = exits.enter_context(FakeNodes(api))
        self.grower: Grower = self._start_autoscaler(exits)
        for pool in case.pools:
            for index in range(pool.at_first):
                name = f"{self.namespace}-{pool.name}-{index}"
                add_node(self.nodes, self.kubelets, pool, index, name, **{GROUP_LABEL: pool.name})
                if isinstance(self.grower, ClusterAutoscaler):
                    self.grower.adopt(pool.name, name)
        self._at_first = {node["metadata"]["name"] for node in api.list(NODES)}
        for other in case.others:
            if other.at_seconds is None:
                self.launch_other(other, 0.0)
        if self.values is not None:
            stack = Stack(
                self.cluster,
                self.namespace,
                self.values,
                release=RELEASE,
                scheduler=False,
                webhook=False,
            )
            self.stack = exits.enter_context(stack)
            self._start_roost(
                stack, has_scheduler=self.values.get("scheduler", {}).get("target") != "none"
            )
            settle(self._standing)
            # Nodes that came for Roost's own placeholders are there from the beginning.
            self._at_first = {node["metadata"]["name"] for node in api.list(NODES)}

    def _standing(self) -> object:
        pods = self.cluster.api.list(f"/api/v1/namespaces/{self.namespace}/pods")
        nodes = {
            node["metadata"]["name"]: node["metadata"]["labels"]
            for node in self.cluster.api.list(NODES)
        }
        return nodes, {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods}

    def _start_roost(self, stack: Stack, *, has_scheduler: bool) -> None:
        webhook, controllers = stack.start_webhook(), stack.start_controllers()
        if has_scheduler:
            stack.start_scheduler().wait_leading()
        webhook.wait_ready()
        controllers.wait_leading()
        if self.case.has_standby:
            stack.start_controllers().wait_ready()

    def _start_autoscaler(self, exits: contextlib.ExitStack) -> Grower:
        if self.case.karpenter:
            return exits.enter_context(KarpenterPools(self.cluster, self.case))
        scaler = ClusterAutoscaler(
            self.cluster.api, self.case.pools, self.namespace, self.case.boot_seconds
        )
        return exits.enter_context(scaler)

    # While it's played

    def launch(self, name: str, arrival: Arrival, now: float) -> None:
        self._launch(user_pod(name, self.case.profile(arrival.profile)), Seen(arrival.profile), now)

    def launch_other(self, other: Other, now: float) -> None:
        body = other_pod(other)
        if other.node:
            body["spec"]["nodeSelector"] = {HOSTNAME: f"{self.namespace}-{other.node}"}
        body["spec"]["tolerations"] = [{"operator": "Exists"}]
        self._launch(body, Seen(other.kind), now)

    def _launch(self, body: JSONObject, seen: Seen, now: float) -> None:
        self.record.users[body["metadata"]["name"]] = seen
        try:
            self.cluster.create_pod(body, self.namespace)
            seen.created = now
        except ApiError as error:
            if error.status != 403:
                raise
            seen.refused = str(error)

    def strike(self) -> None:
        for replica in self.stack.controllers[:1] if self.stack else ():
            if self.case.fault is Fault.KILLED:
                replica.process.kill()
            elif self.case.fault is Fault.HUNG:
                replica.process.freeze()

    def look(self, now: float) -> None:
        record = self.record
        pods = self.cluster.api.list(f"/api/v1/namespaces/{self.namespace}/pods")
        there = {
            pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")
        }
        for name, user in record.users.items():
            if user.created is not None and name not in there and user.deleted is None:
                user.deleted = record.last_change = now
        for pod in pods:
            if (seen := record.users.get(pod["metadata"]["name"])) is None:
                continue
            if seen.bound is None and pod["spec"].get("nodeName"):
                seen.bound, seen.node, record.last_change = now, pod["spec"]["nodeName"], now
            if seen.running is None and pod.get("status", {}).get("phase") == "Running":
                seen.running, record.last_change = now, now
        for node in self.cluster.api.list(NODES):
            name = node["metadata"]["name"]
            if name not in self._at_first and name not in record.nodes:
                record.nodes[name], record.last_change = now, now

    def explain(self) -> str:
        api = self.cluster.api
        waiting: dict[str, list[str]] = {}
        for pod in api.list(f"/api/v1/namespaces/{self.namespace}/pods"):
            seen = self.record.users.get(pod["metadata"]["name"])
            if seen is None or seen.bound is not None:
                continue
            told = "; ".join(
                condition.get("message", "") for condition in pod["status"].get("conditions", ())
            )
            affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
            required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
            waiting.setdefault(f"wait: {told}; they require {required}", []).append(
                pod["metadata"]["name"]
            )
        lines = [f"  {', '.join(names)} {why}" for why, names in waiting.items()]
        for node in api.list(NODES):
            metadata = node["metadata"]
            own = {
                key: value for key, value in metadata["labels"].items() if "hub.jupyter.org" in key
            }
            keys = [taint["key"] for taint in node["spec"].get("taints", ())]
            users = sum(seen.node == metadata["name"] for seen in self.record.users.values())
            lines.append(f"  node {metadata['name']}: {users} users, labels {own}, taints {keys}")
        return "\n".join(lines)


class Pair:
    """`with Pair(case, without, with_roost) as pair: pair.play()`."""

    def __init__(self, without: Side, with_roost: Side) -> None:
        self.case = without.case
        self.without = without
        self.with_roost = with_roost
        self._steps = STEPS if self.case.follows_starts else STEPS[:1]

    def play(self) -> None:
        """Let users come to both at once, until all that happens without Roost has happened with
        it. Raises if not.
        """
        case = self.case
        sides = (self.without, self.with_roost)
        arrivals = list(enumerate(case.arrivals))
        others = [other for other in case.others if other.at_seconds is not None]
        struck = case.fault is Fault.NONE
        began = time.monotonic()
        while True:
            now = time.monotonic() - began
            if not struck and now >= case.fault_at_seconds:
                struck = True
                self.with_roost.strike()
            while arrivals and arrivals[0][1].at_seconds <= now:
                number, arrival = arrivals.pop(0)
                for side in sides:
                    side.launch(f"{arrival.profile}-{number}", arrival, now)
            for other in [other for other in others if (other.at_seconds or 0.0) <= now]:
                others.remove(other)
                for side in sides:
                    side.launch_other(other, now)
            for side in sides:
                side.look(now)
            self._judge(now)
            if not arrivals and not others and struck and self._is_over(now):
                self._count()
                self._count_harmed()
                return
            time.sleep(0.25)

    def table(self) -> str:
        lines = []
        for profile in self.case.profiles:
            for step in STEPS:
                before, after = (
                    ", ".join(f"{moment:.0f}" for moment in side.record.moments(profile.name, step))
                    for side in (self.without, self.with_roost)
                )
                lines.append(
                    f"  {profile.name} {step} at seconds: without {before or '-'}; with"
                    f" {after or '-'}"
                )
        before, after = (
            ", ".join(f"{moment:.0f}" for moment in side.record.nodes.values())
            for side in (self.without, self.with_roost)
        )
        lines.append(f"  nodes added at seconds: without {before or '-'}; with {after or '-'}")
        return "\n".join(lines)

    def _lags(self) -> Iterator[tuple[str, str, int, float, float | None]]:
        """What has happened without Roost, and not yet, or later, with it: profile, step, how
        manieth, both moments.
        """
        for profile in self.case.profiles:
            for step in self._steps:
                before, after = (
                    side.record.moments(profile.name, step)
                    for side in (self.without, self.with_roost)
                )
                for index, (moment, reached) in enumerate(zip_longest(before, after)):
                    if moment is not None and (reached is None or reached > moment):
                        yield profile.name, step, index, moment, reached

    def _judge(self, now: float) -> None:
        allowed = ALLOWED_SECONDS + LOOK_SECONDS
        for profile, step, index, moment, reached in self._lags():
            if (now if reached is None else reached) > moment + allowed:
                told = (
                    f"not yet, {now - moment:.0f} s later"
                    if reached is None
                    else f"at {reached:.0f} s"
                )
                self._fail(
                    f"user {index + 1} of profile {profile} is {step} at {moment:.0f} s without"
                    f" Roost, {told} with it"
                )
        record, grower = self.with_roost.record, self.with_roost.grower
        for index, moment in enumerate(self.without.record.nodes.values()):
            if (
                now > moment + allowed
                and index >= len(record.nodes)
                and record.waits
                and not grower.is_growing
            ):
                self._fail(
                    f"node {index + 1} is added at {moment:.0f} s without Roost, not yet with it"
                )

    def _count(self) -> None:
        """Nodes cost: an autoscaler must not go on adding some for users argument those that came
        would take.
        """
        before, after = len(self.without.record.nodes), len(self.with_roost.record.nodes)
        if after > max(before + MORE_NODES, 2 * before):
            self._fail(f"{before} nodes are added without Roost, {after} with it")

    def _count_harmed(self) -> None:
        """Nobody is refused who isn't without Roost; of a kind, no more are deleted."""
        before, after = (
            Counter(seen.profile for seen in side.record.users.values() if seen.deleted is not None)
            for side in (self.without, self.with_roost)
        )
        for kind, count in after.items():
            if count > before[kind]:
                self._fail(
                    f"{count} pods of {kind} are deleted with Roost, {before[kind]} without it"
                )
        for name, seen in self.with_roost.record.users.items():
            if seen.refused and not self.without.record.users[name].refused:
                self._fail(f"{name} is refused: {seen.refused}")

    def _fail(self, what: str) -> None:
        raise AssertionError(
            f"case {self.case.name}: {what}\n{self.table()}\nwith"
            f" Roost:\n{self.with_roost.explain()}\n{self.case}"
        )

    def _is_over(self, now: float) -> bool:
        """Nothing more comes without Roost, and nobody lags behind."""
        users = self.without.record.users.values()
        is_all = all(
            getattr(seen, self._steps[-1]) is not None or seen.refused or seen.deleted
            for seen in users
        )
        quiet = self.case.boot_seconds + self.case.pull_seconds + 3 * SCAN_SECONDS
        is_quiet = (
            now - max(self.without.record.last_change, self.case.arrivals[-1].at_seconds) > quiet
        )
        return (is_all or is_quiet) and all(reached is not None for *_, reached in self._lags())
