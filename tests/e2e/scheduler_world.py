"""Ask a real kube-scheduler and the model the same question, one pod after the other, and tell
where they differ.

Owns the comparison: a cluster drawn from a seed, a kube-scheduler that logs every score, and a
`ClusterState` that is told what the scheduler's cache was told. Nothing is compared by eye: each
`Difference` is a fault of the model.
"""

import datetime as dt
import json
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from roost_core.objects.fields import JSONObject
from roost_core.objects.node import read_node
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.pod_reader import read_pod
from roost_core.objects.selectors import read_label_selector
from roost_core.objects.timestamps import read_moment
from roost_core.scheduler.cycle import SchedulingDecision, schedule
from roost_core.scheduler.plugins import PICKS_ALIKE_SINCE
from roost_core.scheduler.profile import Profile, read_profiles
from roost_core.scheduler.state import ClusterState
from roost_core.scheduler.surroundings import DisruptionBudget, Surroundings
from tests.e2e.scheduler_clusters import HOSTNAME, ZONE, Drawing, cluster_wide
from tests.harness.api import ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import path_of
from tests.harness.scheduler import Scheduler, start_scheduler
from tests.harness.waiting import WaitError

BOUND = "Successfully bound pod to node"
UNSCHEDULABLE = "Unable to schedule pod; no fit; waiting"
SCORED = "Plugin scored node for pod"
TOTAL = "Calculated node's final score for pod"
ATTEMPT = "Attempting to schedule pod"
NODE_ORDER = "Added node to NodeTree"
TARGET = "the target node for the preemption is determined"
VICTIMS = (
    "Preemptor Pod preempted victim Pod",
    "Victim Pod is already being deleted, skipping the API call for it",
)
PREEMPTING = "Start the preemption asynchronously"
PREEMPTED = "Async Preemption finished completely"
_LINE = re.compile(r'\S+ \S+ +\d+ \S+\] "((?:[^"\\]|\\.)*)"(.*)')
_FIELD = re.compile(r' ([\w ]+?)=(?:"((?:[^"\\]|\\.)*)"|(\S+))')
PODS_PER_WORLD = 70
PODS_BESIDE_WAITING = 4
WAIT_SECONDS = 60.0


class Entry(NamedTuple):
    message: str
    fields: Mapping[str, str]


class Log:
    """A scheduler's log as it grows, read once."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._rest = b""
        self._entries: list[Entry] = []
        self._position = 0

    def close(self) -> None:
        self._file.close()

    def forget(self) -> None:
        """Start anew: what was logged until now was waited for."""
        self._read()
        del self._entries[:]

    def wait(self, *messages: str, number: int = 1, **fields: str) -> Entry:
        """The first, second, ... entry since `forget` with one of these messages and these
        fields.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while len(found := self.all(*messages, **fields)) < number:
            if time.monotonic() > deadline:
                raise WaitError(
                    f"waited {WAIT_SECONDS:g} s for {messages} {fields}; found"
                    f" {self._entries[-20:]}"
                )
            time.sleep(0.002)
        return found[number - 1]

    def all(self, *messages: str, **fields: str) -> list[Entry]:
        self._read()
        return [
            entry
            for entry in self._entries
            if entry.message in messages
            and all(entry.fields.get(key) == value for key, value in fields.items())
        ]

    def _read(self) -> None:
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in lines:
            if match := _LINE.match(line.decode(errors="replace")):
                fields = {
                    key: _unquoted(text) if text else bare
                    for key, text, bare in _FIELD.findall(match[2])
                }
                self._entries.append(Entry(_unquoted(match[1]), fields))


def _unquoted(text: str) -> str:
    return re.sub(r'\\(["\\])', r"\1", text) if "\\" in text else text


@dataclass
class Tally:
    pods: int = 0
    score_rows: int = 0
    rejected_rows: int = 0
    ties: int = 0
    unschedulable: int = 0
    nominations: int = 0
    victims: int = 0
    refused_by_api: int = 0
    outrun: int = 0
    plugins: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


class World:
    """One drawn cluster under one kube-scheduler with several profiles, and the model of it."""

    def __init__(
        self,
        cluster: ControlPlane,
        configuration: JSONObject,
        seed: int,
        tally: Tally,
        flags: Sequence[str],
    ) -> None:
        """flags: feature gates and the like, as rendered for the cluster's minor."""
        self._cluster = cluster
        self._api = cluster.api
        self._seed = seed
        self._minor = int(cluster.minor.partition(".")[2])
        self._drawing = Drawing(seed)
        self._configuration = configuration
        self._flags = list(flags)
        # Else its victims are gone when the scheduler says that the pod fits nowhere.
        self._pre_empts_beside = "--feature-gates=SchedulerAsyncPreemption=false" not in self._flags
        self._profiles: dict[str, Profile] = read_profiles(configuration, self._minor)
        self._tally = tally
        self._nodes = FakeNodes(self._api)
        self._specs: dict[PodSpec, PodSpec] = {}
        self._starts = 0
        self._start_index = 0
        self._names = 0
        self._bound: dict[str, Pod] = {}
        # A pod with a nominated node whose victims can't go, and for how many pods more it stays.
        self._waiting: tuple[JSONObject, Pod, int] | None = None

    def run(self, pods: int = PODS_PER_WORLD) -> None:
        self._set_up()
        flags = [*self._flags, "--v=3", "--vmodule=schedule_one=10,eventhandlers=4"]
        with start_scheduler(self._cluster, self._configuration, flags=flags) as scheduler:
            log = Log(scheduler.log_path)
            try:
                self._begin(scheduler, log)
                for _ in range(pods):
                    if self._waiting is not None:
                        self._compare_beside_waiting(log)
                        continue
                    if self._drawing.happens(0.15):
                        self._change_node(log)
                    if self._drawing.happens(0.15):
                        self._remove_pod(log)
                    self._compare_one(log)
            finally:
                log.close()

    # The cluster

    def _set_up(self) -> None:
        drawing, api = self._drawing, self._api
        for manifest in cluster_wide():
            api.create(manifest)
        for name, labels in drawing.namespaces.items():
            self._cluster.create_namespace(name, labels)
            api.create(drawing.stateful_set(name))
        for manifest in drawing.services():
            api.create(manifest)
        for manifest, allowed in drawing.budgets():
            api.create(manifest)
            status = {
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "expectedPods": 1,
                "disruptionsAllowed": allowed,
            }
            api.patch(f"{api.path_of(manifest)}/status", {"status": status})
        nodes = {name: drawing.node(name) for name in drawing.node_names}
        without_hostname = [name for name in nodes if drawing.happens(0.04)]
        cordoned = [name for name in nodes if drawing.hinders(0.08)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: self._nodes.create(name, **nodes[name]), nodes))
            list(
                pool.map(
                    lambda name: self._nodes.set_labels(name, {HOSTNAME: None}), without_hostname
                )
            )
            list(pool.map(self._nodes.cordon, cordoned))
        there = [
            self._draw_bound(name)
            for name in nodes
            for _ in range(drawing.number(0, drawing.mood.most_pods))
        ]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda pod: self._create_bound(*pod), there))

    def _draw_bound(self, node_name: str) -> tuple[JSONObject, str]:
        """A pod that is there from the beginning, and when it started; now and then one that can't
        be deleted.
        """
        body = self._draw_pod(at_first=True)
        body["spec"]["nodeName"] = node_name
        if self._drawing.happens(0.06):
            body["metadata"]["finalizers"] = ["example.com/stays"]
        for container in (*body["spec"]["containers"], *body["spec"].get("initContainers", ())):
            # kube-scheduler forgets a port that two pods of a node hold when the first of them
            # goes.
            container.pop("ports", None)
        return body, self._next_start()

    def _create_bound(self, body: JSONObject, started: str) -> None:
        if (created := self._create(body)) is not None:
            self._start_pod(created, started)
            if "finalizers" in body["metadata"]:
                self._api.delete(path_of(created), gracePeriodSeconds=0)

    def _draw_pod(self, *, at_first: bool = False) -> JSONObject:
        self._names += 1
        profile = self._drawing.one(sorted(self._profiles))
        return self._drawing.pod(f"p{self._names:04d}", profile, at_first=at_first)

    def _create(self, body: JSONObject) -> JSONObject | None:
        try:
            return self._cluster.create_pod(body)
        except ApiError as error:
            if error.status != 422:
                raise
            self._tally.refused_by_api += 1
            return None

    def _next_start(self) -> str:
        """A moment of its own: which of two started first decides pre-emptions."""
        self._starts += 1
        # No order that the names have too.
        moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(
            seconds=self._starts * 7919 % 100_003
        )
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _start_pod(self, pod: JSONObject, started: str) -> JSONObject:
        return self._api.patch(
            f"{path_of(pod)}/status", {"status": {"phase": "Running", "startTime": started}}
        )

    def _begin(self, scheduler: Scheduler, log: Log) -> None:
        """Wait until the scheduler knows the cluster, and tell the model the same."""
        scheduler.wait_for_log("Handlers synced")
        nodes = {body["metadata"]["name"]: body for body in self._api.list("/api/v1/nodes")}
        order: list[str] = []
        while len(order) < len(nodes):
            log.wait(NODE_ORDER)
            order = [entry.fields["node"] for entry in log.all(NODE_ORDER)]
        self._state = ClusterState(
            [read_node(nodes[name]) for name in order], (), self._surroundings(), stale_images=True
        )
        for body in self._api.list("/api/v1/pods"):
            pod = read_pod(body, specs=self._specs)
            log.wait("Add event for scheduled pod", pod=pod.key)
            self._state.add_pod(pod)
            self._bound[pod.key] = pod

    def _surroundings(self) -> Surroundings:
        services: dict[str, tuple[Mapping[str, str], ...]] = {}
        for body in self._api.list("/api/v1/services"):
            if selector := body["spec"].get("selector"):
                namespace = body["metadata"]["namespace"]
                services[namespace] = (*services.get(namespace, ()), selector)
        budgets = []
        for body in self._api.list("/apis/policy/v1/poddisruptionbudgets"):
            selected, allowed = (
                read_label_selector(body["spec"].get("selector")),
                body["status"]["disruptionsAllowed"],
            )
            budgets.append(DisruptionBudget(body["metadata"]["namespace"], selected, allowed))
        controllers = {}
        for body in self._api.list("/apis/apps/v1/statefulsets"):
            key = ("StatefulSet", body["metadata"]["namespace"], body["metadata"]["name"])
            controllers[key] = read_label_selector(body["spec"]["selector"]) or frozenset()
        namespaces = [body["metadata"] for body in self._api.list("/api/v1/namespaces")]
        labels = {metadata["name"]: metadata["labels"] for metadata in namespaces}
        return Surroundings(
            namespaces=labels, budgets=tuple(budgets), services=services, controllers=controllers
        )

    def _change_node(self, log: Log) -> None:
        """Another label, taint, cordon, or report of images; other nodes aren't touched, so their
        counts go stale.
        """
        drawing, nodes = self._drawing, self._nodes
        name = drawing.one(drawing.node_names)
        log.forget()
        versions = [nodes.get(name)["metadata"]["resourceVersion"]]
        what = drawing.one(["labels", "taints", "cordon", "images", "images"])
        if what == "labels":
            zone = drawing.one(["z1", "z2", None])
            body = nodes.set_labels(name, {"gen": str(drawing.number(1, 9)), ZONE: zone})
        elif what == "taints":
            body = nodes.set_taints(name, drawing.taints())
        elif what == "cordon":
            body = nodes.cordon(name, on=drawing.happens(0.3))
        else:
            body = nodes.set_images(name, drawing.images())
        versions.append(body["metadata"]["resourceVersion"])
        # A change that changed nothing brings no event.
        body = nodes.set_labels(name, {"touched": str(self._names)})
        versions.append(body["metadata"]["resourceVersion"])
        if changes := len(set(versions)) - 1:
            log.wait("Update event for node", number=changes, node=name)
        self._state.set_node(read_node(body))

    def _remove_pod(self, log: Log) -> None:
        if not (candidates := sorted(key for key, pod in self._bound.items() if not pod.leaving)):
            return
        key = self._drawing.one(candidates)
        log.forget()
        namespace, _, name = key.partition("/")
        self._api.delete(f"/api/v1/namespaces/{namespace}/pods/{name}", gracePeriodSeconds=0)
        log.wait("Delete event for scheduled pod", pod=key)
        self._state.remove_pod(key)
        del self._bound[key]

    # The comparison

    def _compare_beside_waiting(self, log: Log) -> None:
        """Pods of its priority and below must leave it its room."""
        assert self._waiting is not None
        created, pod, left = self._waiting
        self._waiting = None
        # What came of the last change for it shows within moments.
        time.sleep(0.02)
        if self._api.get(path_of(created))["spec"].get("nodeName"):
            self._state.remove_pod(pod.key)
            self._catch_up(created, log)
            return
        faults = len(self._tally.differences)
        self._compare_one(log)
        rival, self._waiting = self._waiting, None
        if rival is not None:
            # Two that wait would have to be followed at every change.
            self._state.remove_pod(rival[1].key)
            self._give_up(rival[0], log)
        # It is tried again now and then, and promised the same node or none.
        if any(
            entry.message == BOUND or entry.fields["node"] != pod.nominated_node
            for entry in log.all(BOUND, TARGET, pod=pod.key)
        ):
            # Another node fits since the new pod is there: what was compared was perhaps another
            # cluster.
            del self._tally.differences[faults:]
            self._state.remove_pod(pod.key)
            self._catch_up(created, log)
        elif left > 1 and rival is None:
            self._waiting = (created, pod, left - 1)
        else:
            self._state.remove_pod(pod.key)
            self._give_up(created, log)

    def _catch_up(self, unruly: JSONObject, log: Log) -> None:
        """Remove a pod that went its own way, and what it pre-empted meanwhile."""
        if log.all(TARGET, pod=_key(unruly)):
            time.sleep(1)
        self._give_up(unruly, log)
        self._heed_late_victims()

    def _heed_late_victims(self) -> bool:
        """Forget the pods that the scheduler deleted beside what was compared; whether there were
        any.
        """
        present = {_key(body) for body in self._api.list("/api/v1/pods")}
        gone = sorted(self._bound.keys() - present)
        for key in gone:
            self._state.remove_pod(key)
            del self._bound[key]
        return bool(gone)

    def _compare_one(self, log: Log) -> None:
        body = self._draw_pod()
        self._heed_late_victims()
        log.forget()
        if (created := self._create(body)) is None:
            return
        pod = read_pod(created, specs=self._specs)
        profile = self._profiles[pod.scheduler_name]
        decision = schedule(pod, self._state, profile, start=self._start_index)
        end = log.wait(BOUND, UNSCHEDULABLE, pod=pod.key)
        tally = self._tally
        tally.pods += 1
        faults = self._faults_of(pod, decision, end, log)
        if faults and self._heed_late_victims():
            # What a pod given up before had pre-empted went in the meantime: two clusters were
            # compared.
            tally.outrun += 1
            self._count_attempts(pod, decision, log)
            self._give_up(created, log)
            return
        if faults:
            head = f"seed {self._seed}, {pod.key}, profile {pod.scheduler_name}, 1.{self._minor}"
            tally.differences.append(
                "\n".join([head, *(f"  {fault}" for fault in faults), json.dumps(created["spec"])])
            )
        tally.reasons.update(decision.reasons)
        tally.rejected_rows += len(decision.rejections)
        if end.message == BOUND:
            node = end.fields["node"]
        else:
            tally.unschedulable += 1
            if (found := self._follow_preemption(pod, created, decision, log)) is None:
                self._count_attempts(pod, decision, log)
                return
            node = found
        self._count_attempts(pod, decision, log)
        log.wait("Add event for scheduled pod", pod=pod.key)
        started = self._start_pod(created, self._next_start())
        log.wait("Update event for scheduled pod", pod=pod.key)
        bound = replace(
            pod,
            node_name=node,
            started=read_moment(started["status"]["startTime"]),
            phase="Running",
        )
        # As the scheduler's cache did: assumed, then started.
        self._state.add_pod(bound)
        self._bound[bound.key] = bound

    def _count_attempts(self, pod: Pod, decision: SchedulingDecision, log: Log) -> None:
        """The search goes on where it ended; a further attempt goes as far again."""
        move = decision.next_start - self._start_index
        nodes = len(self._state.rows)
        self._start_index = (self._start_index + move * len(log.all(ATTEMPT, pod=pod.key))) % nodes

    def _faults_of(self, pod: Pod, decision: SchedulingDecision, end: Entry, log: Log) -> list[str]:
        tally = self._tally
        faults = []
        rows: dict[str, dict[str, int]] = {}
        for entry in log.all(SCORED, pod=pod.key):
            rows.setdefault(entry.fields["node"], {})[entry.fields["plugin"]] = int(
                entry.fields["score"]
            )
        totals = {
            entry.fields["node"]: int(entry.fields["score"])
            for entry in log.all(TOTAL, pod=pod.key)
        }
        tally.score_rows += len(totals)
        expected = (
            {node: (points, total) for node, points, total in decision.table.rows()}
            if decision.table
            else {}
        )
        if list(totals) != list(expected):
            faults.append(
                f"nodes that fit, in order: kube-scheduler {list(totals)}, model {list(expected)}"
            )
            wrongly = {
                node: decision.rejections[node].reasons
                for node in totals
                if node in decision.rejections
            }
            faults.append(f"the model rejects {wrongly}")
        for node, total in totals.items():
            points, sum_of_model = expected.get(node, ({}, None))
            if node in expected and (rows.get(node, {}) != points or total != sum_of_model):
                faults += [
                    f"{node} {plugin}: kube-scheduler {rows.get(node, {}).get(plugin)}, model"
                    f" {points.get(plugin)}"
                    for plugin in sorted({*rows.get(node, {}), *points})
                    if rows.get(node, {}).get(plugin) != points.get(plugin)
                ]
                faults.append(f"{node} total: kube-scheduler {total}, model {sum_of_model}")
            tally.plugins.update(
                plugin for plugin, points_of in rows.get(node, {}).items() if points_of
            )
        if end.message == BOUND:
            node = end.fields["node"]
            best = decision.table.best if decision.table else ()
            tally.ties += len(best) > 1
            if node != decision.node and (self._minor >= PICKS_ALIKE_SINCE or node not in best):
                faults.append(
                    f"pick: kube-scheduler {node}, model {decision.node} of {best};"
                    f" {decision.message}"
                )
            looked_at = len(decision.rejections) + (
                len(decision.table.nodes) if decision.table else 1
            )
            if int(end.fields["evaluatedNodes"]) != looked_at:
                faults.append(
                    f"nodes looked at: kube-scheduler {end.fields['evaluatedNodes']}, model"
                    f" {looked_at}"
                )
        else:
            if decision.node is not None:
                faults.append(f"pick: kube-scheduler none, model {decision.node}")
            if end.fields["err"] not in _messages_of(decision):
                faults.append(
                    f"text:\n    kube-scheduler {end.fields['err']}\n    model         "
                    f" {decision.message}"
                )
        return faults

    def _follow_preemption(
        self, pod: Pod, created: JSONObject, decision: SchedulingDecision, log: Log
    ) -> str | None:
        """Compare node and victims; the node to which the pod is bound in the end, None when it is
        given up.
        """
        if not (targets := log.all(TARGET, pod=pod.key)):
            if decision.nomination is not None:
                self._differ(pod, f"pre-emption: kube-scheduler none, model {_told(decision)}")
            self._give_up(created, log)
            return None
        tally, nomination, node = self._tally, decision.nomination, targets[0].fields["node"]
        if not self._pre_empts_beside:
            pass
        elif log.all(VICTIMS[1], preemptor=pod.key):
            # Some victims were on their way already; when all were, nothing more is heard.
            time.sleep(0.5)
            if log.all(PREEMPTING, preemptor=pod.key):
                log.wait(PREEMPTED, preemptor=pod.key)
        else:
            log.wait(PREEMPTED, preemptor=pod.key)
        victims = {entry.fields["victim"] for entry in log.all(*VICTIMS, preemptor=pod.key)}
        tally.nominations += 1
        tally.victims += len(victims)
        if nomination is None or node not in (nomination.node, *nomination.equals):
            self._differ(
                pod,
                f"pre-emption: kube-scheduler {node} {sorted(victims)}, model {_told(decision)}",
            )
        elif node == nomination.node and victims != {victim.key for victim in nomination.victims}:
            self._differ(
                pod, f"victims on {node}: kube-scheduler {sorted(victims)}, model {_told(decision)}"
            )
        stuck = False
        for key in sorted(victims):
            if self._bound[key].leaving:
                stuck = True
            else:
                log.wait("Delete event for scheduled pod", pod=key)
                self._state.remove_pod(key)
                del self._bound[key]
        if stuck:
            # It waits for pods that never go.
            waiting = replace(pod, nominated_node=node)
            self._state.add_pod(waiting)
            self._waiting = (created, waiting, PODS_BESIDE_WAITING)
            return None
        again = schedule(
            replace(pod, nominated_node=node), self._state, self._profiles[pod.scheduler_name]
        )
        first = log.wait(BOUND).fields
        if first["pod"] != pod.key:
            # Another that waits took the room that was made: this one may wait for pods that never
            # go. `_compare_beside_waiting` doesn't count what was compared. More victims may be on
            # their way.
            time.sleep(1)
            self._give_up(created, log)
            return None
        bound = first["node"]
        if bound != again.node:
            self._differ(
                pod,
                f"after pre-emption: kube-scheduler {bound}, model {again.node} {again.message}",
            )
        return bound

    def _differ(self, pod: Pod, fault: str) -> None:
        self._tally.differences.append(
            f"seed {self._seed}, {pod.key}, profile {pod.scheduler_name}\n  {fault}"
        )

    def _give_up(self, created: JSONObject, log: Log) -> None:
        self._api.delete(path_of(created), gracePeriodSeconds=0)
        log.wait(
            "Delete event for unscheduled pod", "Delete event for scheduled pod", pod=_key(created)
        )


def _messages_of(decision: SchedulingDecision) -> list[str]:
    """What kube-scheduler may say: it takes any of the nodes that are just as good to pre-empt
    on.
    """
    if (nomination := decision.nomination) is None:
        return [decision.message]
    # Just as good is also: as many victims.
    names = [f"on node {node}," for node in (nomination.node, *nomination.equals)]
    return [decision.message.replace(names[0], name) for name in names]


def _told(decision: SchedulingDecision) -> str:
    if (nomination := decision.nomination) is None:
        return f"none: {decision.message}"
    return (
        f"{nomination.node} {[victim.key for victim in nomination.victims]}, just as good"
        f" {nomination.equals}"
    )


def _key(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
