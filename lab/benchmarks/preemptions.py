"""Users who wait although their victim is gone: thousands of preemptions under a real
kube-scheduler.

`python -m benchmarks.preemptions`. Fake nodes full of placeholders; classes of 5 to 50 users begin
within 2 s, each user pushes a placeholder out, and a placeholder that went is made anew and waits
for room. A stand-in for kubelets ends victims after 0 to 2 s. Once the class sits, or nothing has
moved for longer than 10 s, its users leave and the next one comes: while users come and go all the
time, each pod that leaves wakes whoever is stuck, and hides them. Plain: zero-to-jupyterhub's
profile and kube-scheduler's own gates. Roost: the configuration and the flags that `roost render`
gives. Counted: users who are not bound 10 s after their last victim's object has gone, which is
what "parked until the next flush" looks like.
"""

from __future__ import annotations

import argparse
import datetime as dt
import heapq
import itertools
import random
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import yaml

from benchmarks.figures import machine, quantile, say, table
from benchmarks.policy import RELEASE, rendered
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import scheduler_name
from tests.harness.api import ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.scheduler import scheduler_config, start_scheduler
from tests.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.harness.api import Api

NAMESPACE: Final = "bench-preemptions"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
STUCK_SECONDS: Final = 10.0
# Two watches tell of a placeholder that went and of the user who was bound: on a busy machine the
# later one may be heard first.
WATCHES_APART_SECONDS: Final = 0.5
WORKERS: Final = 8
# Hubs have no more placeholders than that, so no more users pre-empt at once.
CLASS_SIZES: Final = (5, 50)
# Placeholders that others end meanwhile, to a user: the mover, or a set that is made smaller.
ENDED_BY_OTHERS: Final = 0.1
BEGIN_SECONDS: Final = 2.0
# A victim's last moments under a kubelet, at most.
TERMINATION_SECONDS: Final = 2.0
# Flags of the rendered Deployment that the harness sets for a process outside the cluster.
_HARNESS_FLAGS: Final = ("--config=", "--secure-port=", "--authentication-skip-lookup=")
_PREEMPTED: Final = re.compile(
    r'^\S(\d\d)(\d\d) (\S+) .*"(?:Preemptor Pod preempted victim Pod|Preemptor preempted a waiting'
    r" pod|"
    r"Preemptor rejected a pod in preBind|Victim Pod is already deleted|"
    r'Victim Pod is already being deleted, skipping the API call for it)".* preemptor="([^"]+)"'
    r'.* (?:victim|waitingPod|podInPreBind)="([^"]+)"',
    re.MULTILINE,
)
Z2JH_PROFILE: Final[Mapping[str, Any]] = {
    "schedulerName": "user-scheduler",
    "plugins": {
        "score": {
            "disabled": [
                {"name": name}
                for name in (
                    "NodeResourcesBalancedAllocation",
                    *("NodeAffinity", "InterPodAffinity", "NodeResourcesFit", "ImageLocality"),
                )
            ],
            "enabled": [
                {"name": "NodeAffinity", "weight": 14631},
                {"name": "InterPodAffinity", "weight": 1331},
                {"name": "NodeResourcesFit", "weight": 121},
                {"name": "ImageLocality", "weight": 11},
            ],
        }
    },
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                }
            },
        }
    ],
}


@dataclass(frozen=True)
class Setting:
    """A kube-scheduler to try: its configuration, its flags, and the profiles that the two kinds of
    pods name.
    """

    name: str
    configuration: Mapping[str, Any]
    flags: tuple[str, ...]
    user_profile: str
    placeholder_profile: str


def plain() -> Setting:
    """zero-to-jupyterhub's user scheduler, with kube-scheduler's own gates."""
    return Setting("plain", scheduler_config(Z2JH_PROFILE), (), "user-scheduler", "user-scheduler")


def as_rendered(kube_version: str | None = None) -> Setting:
    """Roost's configuration and flags with the default values."""
    manifests = rendered(NAMESPACE, kube_version=kube_version)
    configuration = next(m for m in manifests if "config.yaml" in m.get("data", {}))["data"][
        "config.yaml"
    ]
    containers = [
        container
        for manifest in manifests
        if manifest["kind"] == "Deployment"
        for container in manifest["spec"]["template"]["spec"]["containers"]
        if container["name"] == "kube-scheduler"
    ]
    command = containers[0]["command"]
    profiles = (scheduler_name(RELEASE, NAMESPACE, profile) for profile in ("user", "placeholder"))
    flags = tuple(flag for flag in command[1:] if not flag.startswith(_HARNESS_FLAGS))
    return Setting("as Roost renders it", yaml.safe_load(configuration), flags, *profiles)


@dataclass
class Outcome:
    """What a round counted."""

    setting: str
    users: int = 0
    preempted: int = 0
    seconds: float = 0.0
    # Of users that pre-empted: from their last victim's end to their binding, or to the end of the
    # round.
    waits: list[float] = field(default_factory=list)
    # Of all users: from creation to binding.
    starts: list[float] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    # Users without a place when nothing had moved for longer than 10 s: for these only the flush
    # would come.
    parked: list[str] = field(default_factory=list)
    # Pre-emptions that kube-scheduler carried out beside its scheduling cycle.
    asynchronous: int = 0


class Agenda:
    """Calls that are due at a moment, made by a few threads.

    What they raise is kept for `close`.
    """

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self._wake = threading.Condition()
        self._is_closing = False
        self.faults: list[BaseException] = []
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(WORKERS)]
        for thread in self._threads:
            thread.start()

    def after(self, seconds: float, call: Callable[[], object]) -> None:
        """Have `call` made by some thread, not sooner."""
        with self._wake:
            heapq.heappush(self._due, (time.monotonic() + seconds, next(self._numbers), call))
            self._wake.notify()

    def close(self) -> None:
        """Drop what isn't due yet, and wait for the calls under way."""
        with self._wake:
            self._is_closing = True
            self._wake.notify_all()
        for thread in self._threads:
            thread.join()

    def _next(self) -> Callable[[], object] | None:
        with self._wake:
            while not self._is_closing:
                now = time.monotonic()
                if self._due and self._due[0][0] <= now:
                    return heapq.heappop(self._due)[2]
                self._wake.wait(self._due[0][0] - now if self._due else None)
        return None

    def _work(self) -> None:
        while (call := self._next()) is not None:
            try:
                call()
            except ApiError as error:
                if error.status not in (404, 409):
                    self.faults.append(error)
            except Exception as error:  # noqa: BLE001 (told by `close`'s caller; the thread goes on)
                self.faults.append(error)


class Crowd:
    """Users and placeholders of one namespace, and the kubelets' part in them."""

    def __init__(self, api: Api, setting: Setting, *, placeholders: int, seed: int) -> None:
        self._api = api
        self._setting = setting
        self._placeholders = placeholders
        self._random = random.Random(seed)  # noqa: S311 (nobody has to guess it)
        self._numbers = itertools.count(1)
        self._agenda = Agenda()
        self._terminating: set[str] = set()
        self._is_over = False
        # By pod name, the moment (time.time()) at which the watch told it.
        self.created_at: dict[str, float] = {}
        self.bound_at: dict[str, float] = {}
        self.gone_at: dict[str, float] = {}
        # By user, when the class was over.
        self.ended_at: dict[str, float] = {}
        self.placeholders_gone = 0
        self._bound_placeholders: set[str] = set()
        self._moved_at = 0.0

    def __enter__(self) -> Self:
        self._version = self._api.get(PODS)["metadata"]["resourceVersion"]
        self._open_watch()
        self._watcher = threading.Thread(target=self._follow, daemon=True)
        self._watcher.start()
        for _ in range(self._placeholders):
            self._agenda.after(0, self._create_placeholder)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._agenda.close()
        self._watch.close()
        self._watcher.join()
        if self._agenda.faults:
            raise self._agenda.faults[0]

    def send(self, preemptions: int, most_seconds: float) -> float:
        """Let classes come until so many placeholders have been pushed out; returns the seconds it
        took.
        """
        started = time.monotonic()
        while self.placeholders_gone < preemptions and time.monotonic() < started + most_seconds:
            users = [
                f"user-{next(self._numbers)}" for _ in range(self._random.randint(*CLASS_SIZES))
            ]
            for name in users:
                self._agenda.after(
                    self._random.uniform(0, BEGIN_SECONDS), partial(self._create_user, name)
                )
            for name in self._random.sample(
                sorted(self._bound_placeholders), round(ENDED_BY_OTHERS * len(users))
            ):
                self._agenda.after(
                    self._random.uniform(0, BEGIN_SECONDS), partial(self._remove, name)
                )
            self._wait_quiet(partial(self._have_places, users))
            self.ended_at |= dict.fromkeys(users, time.time())
            for name in users:
                self._agenda.after(0, partial(self._remove, name))
            self._wait_quiet(lambda: len(self._bound_placeholders) >= self._placeholders)
        return time.monotonic() - started

    def _have_places(self, users: Sequence[str]) -> bool:
        return all(name in self.bound_at for name in users)

    def wait_for_placeholders(self) -> None:
        """Wait until every placeholder is bound."""
        wait_until(
            lambda: len(self._bound_placeholders) >= self._placeholders,
            180,
            "the placeholders to be bound",
        )

    def _wait_quiet(self, rule: Callable[[], bool]) -> None:
        """Wait for the rule, or until nothing has moved for longer than anybody needs."""
        self._moved_at = time.monotonic()
        while (
            not rule() and time.monotonic() < self._moved_at + TERMINATION_SECONDS + STUCK_SECONDS
        ):
            time.sleep(0.02)

    def _create_user(self, name: str) -> None:
        self.created_at[name] = time.time()
        self._api.create(
            pod(name, self._setting.user_profile, "users", "singleuser-server", 0), NAMESPACE
        )

    def _create_placeholder(self) -> None:
        number = next(self._numbers)
        # As rendered, and as of an operator who lets theirs end in peace.
        grace = 0 if number % 2 else int(TERMINATION_SECONDS)
        body = pod(
            f"placeholder-{number}",
            self._setting.placeholder_profile,
            "placeholders",
            "user-placeholder",
            grace,
        )
        self._api.create(body, NAMESPACE)

    def _remove(self, name: str) -> None:
        self._api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}", gracePeriodSeconds=0)

    def _open_watch(self) -> None:
        self._watch = self._api.watch(PODS, timeout_seconds=3600, resourceVersion=self._version)

    def _follow(self) -> None:
        # The API server ends the watch of a client that falls behind in a burst.
        while not self._is_over:
            for kind, body in self._watch:
                self._version = body["metadata"]["resourceVersion"]
                self._see(kind, body)
            if not self._is_over:
                self._open_watch()

    def _see(self, kind: str, body: JSONObject) -> None:
        name = body["metadata"]["name"]
        moment = time.time()
        is_user = name.startswith("user-")
        if kind == "DELETED":
            self._moved_at = time.monotonic()
            self.gone_at[name] = moment
            self._bound_placeholders.discard(name)
            if not is_user:
                self.placeholders_gone += 1
                self._agenda.after(0, self._create_placeholder)
        elif body["metadata"].get("deletionTimestamp"):
            if name not in self._terminating:
                self._terminating.add(name)
                self._agenda.after(
                    self._random.uniform(0, TERMINATION_SECONDS), partial(self._remove, name)
                )
        elif body["spec"].get("nodeName") and name not in self.bound_at:
            self._moved_at = time.monotonic()
            self.bound_at[name] = moment
            if not is_user:
                self._bound_placeholders.add(name)


def pod(name: str, profile: str, priority: str, component: str, grace_seconds: int) -> JSONObject:
    """A pod that requests one CPU: a node has room for as many as it has CPUs."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"component": component}},
        "spec": {
            "schedulerName": profile,
            "priorityClassName": f"{NAMESPACE}-{priority}",
            "terminationGracePeriodSeconds": grace_seconds,
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": "c",
                    "image": "absent:1",
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                }
            ],
        },
    }


def run_round(
    cluster: ControlPlane,
    setting: Setting,
    *,
    preemptions: int,
    placeholders: int,
    seed: int,
    most_seconds: float,
) -> Outcome:
    """One setting once: fill the nodes with placeholders, send the users, and judge by watch and
    log.
    """
    outcome = Outcome(setting.name)
    crowd = Crowd(cluster.api, setting, placeholders=placeholders, seed=seed)
    # `--v=2` names each victim; a rendered `--v` comes later and wins.
    flags = ("--v=2", *setting.flags)
    with (
        start_scheduler(
            cluster, setting.configuration, leader_elect=False, flags=flags
        ) as scheduler,
        crowd,
    ):
        crowd.wait_for_placeholders()
        outcome.seconds = crowd.send(preemptions, most_seconds)
        log = scheduler.log()
    judge(outcome, crowd, log)
    _empty(cluster)
    return outcome


def judge(outcome: Outcome, crowd: Crowd, log: str) -> None:
    """Fill the outcome in."""
    outcome.users = len(crowd.created_at)
    outcome.preempted = crowd.placeholders_gone
    outcome.asynchronous = log.count('"Start the preemption asynchronously"')
    # When each user was bound, or was no longer waited for.
    until = {user: crowd.bound_at.get(user, ended) for user, ended in crowd.ended_at.items()}
    outcome.starts = [moment - crowd.created_at[user] for user, moment in until.items()]
    last: dict[str, float] = {}
    for month, day, clock, preemptor, victim in _PREEMPTED.findall(log):
        user, placeholder = (key.partition("/")[2] for key in (preemptor, victim))
        # A victim that was on its way to a node has no end but the log's line.
        moment = crowd.gone_at.get(placeholder) or _moment(month, day, clock)
        if user in until and moment <= until[user] + WATCHES_APART_SECONDS:
            last[user] = max(last.get(user, 0.0), min(moment, until[user]))
    outcome.parked = sorted(user for user in until if user not in crowd.bound_at)
    waits = {user: until[user] - moment for user, moment in last.items()}
    outcome.waits = list(waits.values())
    outcome.stuck = sorted(user for user, wait in waits.items() if wait > STUCK_SECONDS)


def _moment(month: str, day: str, clock: str) -> float:
    text = f"{dt.datetime.now().astimezone().year}-{month}-{day}T{clock}"
    return dt.datetime.fromisoformat(text).astimezone().timestamp()


def _empty(cluster: ControlPlane) -> None:
    cluster.api.delete(PODS, gracePeriodSeconds=0)
    wait_until(lambda: not cluster.api.list(PODS), 60, "the pods to be gone")


def set_up(cluster: ControlPlane, *, nodes: int, placeholders_per_node: int) -> None:
    """Nodes, the namespace, and two priorities."""
    cluster.create_namespace(NAMESPACE)
    for name, value in (("users", 0), ("placeholders", -10)):
        cluster.api.create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": f"{NAMESPACE}-{name}"},
                "value": value,
            }
        )
    names = [f"preempting-{number:03d}" for number in range(nodes)]
    labels = {"hub.jupyter.org/node-purpose": "user"}
    FakeNodes(cluster.api).create_many(
        names, cpu=str(placeholders_per_node), memory="64Gi", labels=labels
    )


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.preemptions", description=__doc__)
    parser.add_argument("--preemptions", type=int, default=5000, help="a round")
    parser.add_argument("--nodes", type=int, default=40)
    parser.add_argument("--placeholders", type=int, default=8, help="a node")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=900.0, help="a round, at most")
    given = parser.parse_args(argv)
    print(
        f"preemptions: {machine()}; {given.rounds} rounds of {given.preemptions} pre-emptions",
        flush=True,
    )
    outcomes: list[Outcome] = []
    with ControlPlane(controllers=()) as cluster:
        set_up(cluster, nodes=given.nodes, placeholders_per_node=given.placeholders)
        for number in range(given.rounds):
            for setting in (plain(), as_rendered(cluster.minor)):
                outcome = run_round(
                    cluster,
                    setting,
                    preemptions=given.preemptions,
                    placeholders=given.nodes * given.placeholders,
                    seed=number,
                    most_seconds=given.seconds,
                )
                outcomes.append(outcome)
                late = f"late: {outcome.stuck[:5]}, parked: {outcome.parked[:5]}"
                say(f"  round {number + 1}: {' | '.join(row_of(outcome))}; {late}")
    print(table(HEAD, [row_of(outcome) for outcome in outcomes]))
    return 0


HEAD: Final = [
    "kube-scheduler",
    "pre-emptions",
    "a second",
    "unbound > 10 s after their victim",
    "never bound, though nothing moved",
    "longest, s",
    "p99 after the victim, s",
    "creation to binding p50, s",
    "p99, s",
]


def row_of(outcome: Outcome) -> list[str]:
    """A line of the table."""
    return [
        outcome.setting,
        str(outcome.preempted),
        f"{outcome.preempted / max(outcome.seconds, 1e-9):.1f}",
        str(len(outcome.stuck)),
        str(len(outcome.parked)),
        f"{max(outcome.waits, default=0):.1f}",
        f"{quantile(outcome.waits, 0.99):.2f}",
        f"{quantile(outcome.starts, 0.5):.2f}",
        f"{quantile(outcome.starts, 0.99):.2f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
