"""What a test is told of pods beside the recorder, and whether the record says the same: nothing
lost, no moment off.

Phases stand against each pod's object, by a watch of the test's own, and against its Events: equal,
to the resolution of each. Pulls stand against the kubelet's words, pre-emptions against
kube-scheduler's, ends against the test's clock.
"""

import json
import re
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple, Self

import sqlalchemy as sa
import yaml

from roost_core.objects.fields import JSONObject
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from tests.harness.api import Watch
from tests.harness.controlplane import ControlPlane
from tests.harness.ports import LOOPBACK
from tests.stack import ROOST, Replica
from tools.root import ROOT

# Phase and container; the moment (µs) and its resolution.
Step = tuple[str, str]
At = tuple[int, int]
US: Final = 1_000_000
# Between two watches that tell of the same end, on a machine that does other things, too.
DELIVERED_US: Final = 20 * US
_PULLING: Final = re.compile(r'Pulling image "([^"]+)"')
_PULLED: Final = re.compile(
    r'Successfully pulled image "([^"]+)" in (\S+) \((\S+) including waiting\)\. Image size: (\d+)'
    r" bytes"
)
_PRESENT: Final = re.compile(r'image "([^"]+)" already present on machine')
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
_UNITS_US: Final = {"h": 3600e6, "m": 60e6, "s": 1e6, "ms": 1e3, "µs": 1.0}


@dataclass(slots=True)
class Seen:
    """What the test's own watch told of one pod: moments by its own clock, and the first of each
    that the pod names.
    """

    name: str
    bound_seen: float | None = None
    gone_seen: float | None = None
    node: str = ""
    # µs, of whole seconds.
    steps: dict[Step, int] = field(default_factory=dict)


def start_recorder(
    cluster: ControlPlane,
    namespace: str,
    database: str,
    folder: Path,
    *,
    kubeconfig: Path | str = "",
    name: str = "record",
) -> Replica:
    """Of users' pods in a namespace; returns when it listens."""
    classes = yaml.safe_load((ROOT / "chart" / "values.yaml").read_text())["podClasses"]
    named = {
        "version": 1,
        "release": "hub",
        "namespace": namespace,
        "podClasses": classes,
        "recorder": {"retentionDays": 0},
    }
    settings = folder / "release.json"
    settings.write_text(
        json.dumps({**named, "imageGate": {"mode": "off", "pullDeadlineSeconds": 600}})
    )
    arguments = [f"--settings={settings}", f"--kubeconfig={kubeconfig or cluster.kubeconfig}"]
    arguments += [f"--bind-address={LOOPBACK}", "--port=0"]
    # As the chart does: a password in an argument is seen by all.
    environment = {"ROOST_DATABASE": database}
    process = cluster.run.start(name, ROOST, ["record", *arguments], environment=environment)
    return Replica(
        process, int(process.wait_for_log(" port=", 60).partition(" port=")[2].split()[0])
    )


class Told(NamedTuple):
    """Pods by uid, and their Events."""

    pods: dict[str, Seen]
    events: list[JSONObject]


def moment_us(text: str) -> int:
    """Microseconds since 1970 of a time as the API has it."""
    whole = datetime.fromisoformat(text)
    return int(whole.timestamp()) * US + whole.microsecond


def _steps(pod: JSONObject) -> dict[Step, int]:
    """What a pod's object says of its own way, read without the recorder's code."""
    metadata, status = pod["metadata"], pod.get("status", {})
    steps: dict[Step, int] = {("created", ""): moment_us(metadata["creationTimestamp"])}
    true = {"PodScheduled": "scheduled", "Initialized": "initialized", "Ready": "ready"}
    for condition in status.get("conditions", []):
        if condition["status"] == "True" and condition["type"] in true:
            steps[true[condition["type"]], ""] = moment_us(condition["lastTransitionTime"])
        elif condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            steps["unschedulable", ""] = moment_us(condition["lastTransitionTime"])
    if "startTime" in status:
        steps["accepted", ""] = moment_us(status["startTime"])
    for key, started in (
        ("initContainerStatuses", "init-started"),
        ("containerStatuses", "started"),
    ):
        for one in status.get(key, []):
            for state in one.get("state", {}).values():
                if state.get("startedAt"):
                    steps[started, one["name"]] = moment_us(state["startedAt"])
                if state.get("finishedAt") and started != "started":
                    steps["init-ended", one["name"]] = moment_us(state["finishedAt"])
    if "deletionTimestamp" in metadata:
        grace_us = metadata.get("deletionGracePeriodSeconds", 0) * US
        steps["terminating", ""] = moment_us(metadata["deletionTimestamp"]) - grace_us
    return steps


class Witness:
    """Watches a namespace's pods, beside the recorder. `pods` is by uid."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self.pods: dict[str, Seen] = {}
        self.faults: list[str] = []
        self.namespace = namespace
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._api = cluster.api
        listed = self._api.get(self._path)
        for pod in listed["items"]:
            self._see("ADDED", pod)
        self._version = listed["metadata"]["resourceVersion"]
        self._open()
        self._is_closed = False
        self._thread = threading.Thread(target=self._follow, name="witness", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        self._watch.close()
        self._thread.join()

    def told(self) -> Told:
        """All until now."""
        events = self._api.list(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")
        assert self.faults == []
        return Told(dict(self.pods), events)

    def _open(self) -> None:
        self._watch: Watch = self._api.watch(
            self._path, timeout_seconds=3600, resourceVersion=self._version
        )

    def _follow(self) -> None:
        try:
            while not self._is_closed:
                for kind, pod in self._watch:
                    self._see(kind, pod)
                if not self._is_closed:
                    # The API server ends watches that are slow to read; from its last version on
                    # nothing is missed.
                    self._open()
        except Exception as error:  # noqa: BLE001 - a thread's end is told of by whoever compares
            self.faults.append(repr(error))

    def _see(self, kind: str, pod: JSONObject) -> None:
        now, metadata = time.time(), pod["metadata"]
        self._version = metadata["resourceVersion"]
        seen = self.pods.setdefault(metadata["uid"], Seen(metadata["name"]))
        node = pod["spec"].get("nodeName", "")
        if node and seen.bound_seen is None:
            seen.bound_seen, seen.node = now, node
        for step, at_us in _steps(pod).items():
            seen.steps.setdefault(step, at_us)
        if kind == "DELETED":
            seen.gone_seen = now


def span_us(text: str) -> float:
    """Microseconds of a span as Go writes it."""
    return sum(
        float(number) * _UNITS_US[unit]
        for number, unit in re.findall(r"([\d.]+)(h|ms|m|s|µs)", text)
    )


class Comparison:
    """Of all that was told with a database.

    `differences` should be empty; `compared`: what, and how often.
    """

    def __init__(self, told: Told, database: str, namespace: str) -> None:
        self.differences: list[str] = []
        self.compared: Counter[str] = Counter()
        self._seen, self._events = told
        store = Store.open(database)
        with store.reading() as connection:

            def rows(table: sa.Table) -> list[JSONObject]:
                return [dict(row) for row in connection.execute(sa.select(table)).mappings()]

            self._pods = {
                row["uid"]: row for row in rows(schema.pod) if row["namespace"] == namespace
            }
            self._phases: dict[str, dict[Step, JSONObject]] = defaultdict(dict)
            for row in rows(schema.phase):
                self._phases[row["pod_uid"]][row["phase"], row["detail"]] = row
            self._decisions = [row for row in rows(schema.decision) if row["pod_uid"] in self._pods]
            pulls = (row for row in rows(schema.pull) if row["pod_uid"] in self._pods)
            self._pulls = {(row["pod_uid"], row["image"]): row for row in pulls}
            self._preempted = {row["victim_uid"]: row for row in rows(schema.preemption)}
        store.close()
        for uid in self._seen.keys() ^ self._pods.keys():
            self.check(f"{uid}: lost or doubled", holds=False, seen=uid in self._seen)
        events = self._phases_of_events()
        for uid in self._seen.keys() & self._pods.keys():
            self._compare_phases(uid, self._seen[uid], events[uid])
            self._compare_end(uid, self._seen[uid])
            self._compare_binding(uid, self._seen[uid])
        self._compare_preemptions()
        self._compare_pulls()

    def check(self, what: str, *, holds: bool, **said: object) -> None:
        """Note a difference unless it holds; `what` ends with what is compared."""
        self.compared[what.rpartition(": ")[2]] += 1
        if not holds:
            self.differences.append(
                f"{what}: {', '.join(f'{key}={value}' for key, value in said.items())}"
            )

    def _phases_of_events(self) -> dict[str, dict[Step, At]]:
        """uid -> phase -> when, as Events tell; the first of each counts."""
        expected: dict[str, dict[Step, At]] = defaultdict(dict)
        self._pulled: list[tuple[At, JSONObject]] = []
        for event in self._events:
            uid, reason = event["regarding"].get("uid", ""), str(event.get("reason"))
            exact = event.get("eventTime")
            at = (
                (moment_us(exact), 1)
                if exact
                else (moment_us(event["deprecatedFirstTimestamp"]), US)
            )
            step = {"Scheduled": ("scheduled", ""), "FailedScheduling": ("unschedulable", "")}.get(
                reason
            )
            if reason == "Pulling" and (pulling := _PULLING.search(event["note"])):
                step = ("pulling", pulling[1])
            if reason == "Pulled":
                self._pulled.append((at, event))
                found = _PULLED.search(event["note"]) or _PRESENT.search(event["note"])
                step = ("pulled", found[1]) if found else None
            if step is not None:
                expected[uid][step] = min(at, expected[uid].get(step, at))
        return expected

    def _compare_phases(self, uid: str, seen: Seen, events: dict[Step, At]) -> None:
        stored = self._phases[uid]
        wanted = {step: (at_us, US) for step, at_us in seen.steps.items()} | events
        for step, told in wanted.items():
            row = stored.get(step)
            found = None if row is None else (row["at_us"], row["resolution_us"])
            holds = found == told
            if step == ("created", "") and found is not None and found[1] < US:
                # The watch told of it within the second that the object has.
                holds = found[0] // US * US == told[0]
            self.check(f"{seen.name} {step[1]}: {step[0]}", holds=holds, found=found, told=told)
        more = stored.keys() - wanted.keys() - {("gone", ""), ("nominated", "")}
        self.check(f"{seen.name}: phases that nobody told of", holds=not more, found=more)

    def _compare_end(self, uid: str, seen: Seen) -> None:
        row = self._phases[uid].get(("gone", ""))
        is_gone, ended = seen.gone_seen is not None, self._pods[uid]["deleted_us"] is not None
        self.check(
            f"{seen.name}: its end",
            holds=is_gone == ended == (row is not None),
            seen=is_gone,
            stored=ended,
        )
        if row is not None and seen.gone_seen is not None:
            holds = abs(row["at_us"] - seen.gone_seen * US) <= DELIVERED_US + row["resolution_us"]
            self.check(
                f"{seen.name}: when it ended", holds=holds, at=row["at_us"], seen=seen.gone_seen
            )

    def _compare_binding(self, uid: str, seen: Seen) -> None:
        binds = [row for row in self._decisions if (row["pod_uid"], row["kind"]) == (uid, "bind")]
        at_us = self._phases[uid].get(("scheduled", ""), {}).get("at_us")
        found = [(row["node_name"], row["at_us"]) for row in binds]
        told = [(seen.node, at_us)] if seen.node else []
        self.check(f"{seen.name}: its binding", holds=found == told, found=found, told=told)

    def _compare_preemptions(self) -> None:
        asked = {
            (row["pod_uid"], row["message"]) for row in self._decisions if row["kind"] == "preempt"
        }
        # Two pods may ask for the same room.
        takers: dict[str, set[str]] = defaultdict(set)
        for event in self._events:
            if event.get("reason") == "Preempted":
                (by_uid,) = _UID.findall(event["note"])
                takers[event["regarding"]["uid"]].add(by_uid)
                self.check(f"{by_uid}: its pre-emption", holds=(by_uid, event["note"]) in asked)
        for uid, by_uids in takers.items():
            row = self._preempted.get(uid)
            self.check(
                f"{uid}: pre-empted",
                holds=row is not None and row["by_uid"] in by_uids,
                row=row,
                by=by_uids,
            )

    def _compare_pulls(self) -> None:
        told: set[tuple[str, str]] = set()
        for _, event in sorted(self._pulled, key=lambda pulled: pulled[0]):
            uid = event["regarding"]["uid"]
            cold = _PULLED.search(event["note"])
            pulled = cold or _PRESENT.search(event["note"])
            if pulled is None or uid not in self._pods or (uid, pulled[1]) in told:
                continue
            told.add((uid, pulled[1]))
            row = self._pulls.get((uid, pulled[1]), {})
            self.check(
                f"{uid}: where it pulled",
                holds=row.get("node_name") == self._seen[uid].node,
                row=row,
            )
            if cold is None:
                self.check(f"{uid}: warm", holds=bool(row.get("warm")), row=row)
                continue
            same = (
                bool(row)
                and not row["warm"]
                and abs(row["pull_us"] - span_us(cold[2])) <= 1
                and abs(row["pull_and_wait_us"] - span_us(cold[3])) <= 1
                and row["image_bytes"] == int(cold[4])
            )
            self.check(
                f"{uid}: cold pull as its kubelet tells", holds=same, row=row, note=event["note"]
            )
        extra = self._pulls.keys() - told
        self.check("pulls that nobody told of", holds=not extra, found=extra)
