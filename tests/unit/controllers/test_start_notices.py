"""What users who wait are told: what for, about how long, how often; and what is learned from
waits.
"""

import itertools
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from generator.package_data import templates_folder
from roost.controllers.contract.actions import Notice
from roost.controllers.contract.planner import Planner
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.start_notices import texts
from roost.controllers.start_notices.estimates import (
    A_PULL,
    MOST_KEYS,
    OF_IMAGE,
    OF_REGISTRY,
    EndedWait,
    Estimate,
    PastWaits,
    newest_waits,
)
from roost.controllers.start_notices.plan import CONTROLLER as START_NOTICES
from roost.controllers.start_notices.settings import MOST_A_MINUTE, MOST_NOTICES
from roost.controllers.start_notices.texts import (
    GIVES_WAY,
    ROOM_UNKNOWN,
    with_estimate,
    with_passed,
)
from roost_core.objects.node import Node
from roost_core.objects.pod import ContainerState, Pod, PodSpec
from roost_core.placement.hold_ups import HoldUp, read_hold_up
from roost_core.placement.kubelet_pulls import PullEvent
from roost_core.release.reader import Reader
from tests.builders import NAMESPACE, RELEASE, default_values
from tests.recorded_data import rows
from tests.unit.controllers.planners import faults_of, planner_from
from tools.root import ROOT

USER = {"component": "singleuser-server", "app": "jupyterhub"}
IMAGE = "quay.io/images/r:1"
NONE_BOUND = {(wait,): 0.0 for wait in ("volume", "sandbox", "init-container", "image")}


def _document(**changes: object) -> dict[str, Any]:
    base = {
        "release": RELEASE,
        "namespace": NAMESPACE,
        "podClasses": default_values()["podClasses"],
    }
    return {**base, "startNotices": {"enabled": True}, **changes}


def _planner(**changes: object) -> Planner[Any]:
    return planner_from(START_NOTICES, _document(**changes))


@dataclass
class Cluster:
    """Some nodes and pods, and a clock."""

    planner: Planner[Any] = field(default_factory=_planner)
    now: float = 1_000_000.0
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    told: list[Notice] = field(default_factory=list)
    events: dict[str, PullEvent] = field(default_factory=dict)
    hold_ups: dict[str, HoldUp] = field(default_factory=dict)

    def fails(self, name: str, reason: str, message: str = "x") -> None:
        """A kubelet's warning about a pod, which it repeats."""
        key = f"{name}.{reason}"
        before = self.hold_ups.get(key)
        item = {
            "reason": reason,
            "message": message,
            "involvedObject": {"kind": "Pod", "uid": f"uid-{name}"},
        }
        read = read_hold_up(item)
        assert read is not None
        first = before.since if before is not None else self.now
        self.hold_ups[key] = read._replace(since=first, at=self.now)

    def node(self, name: str, *images: str, age: float = 86400.0) -> None:
        self.nodes[name] = Node(
            name, created=self.now - age, images=dict.fromkeys(images, 1), image_count=len(images)
        )

    def pod(self, name: str, image: str = IMAGE, **changes: Any) -> None:
        pod = Pod(
            namespace=NAMESPACE,
            name=name,
            uid=f"uid-{name}",
            labels=USER,
            created=self.now,
            spec=PodSpec(images=(image,)),
            containers=(ContainerState(image=image, waiting_reason="ContainerCreating"),),
        )
        self.pods[pod.key] = replace(pod, **changes)

    def change(self, name: str, **changes: Any) -> None:
        key = f"{NAMESPACE}/{name}"
        self.pods[key] = replace(self.pods[key], **changes)

    def runs(self, name: str) -> None:
        key = f"{NAMESPACE}/{name}"
        containers = tuple(
            replace(container, image_id="sha256:1", waiting_reason="", running=True)
            for container in self.pods[key].containers
        )
        self.change(name, phase="Running", containers=containers)

    def pulled(self, number: int, node: str, ago: float, image: str = IMAGE) -> None:
        """A kubelet's Event."""
        message = (
            f'Successfully pulled image "{image}" in 1m0.5s (9m0s including waiting). Image size:'
            " 30047356 bytes."
        )
        event = PullEvent(
            f"old-{number}", f"uid-{number}", node, image, "Pulled", message, self.now - ago
        )
        self.events[f"old-{number}.1"] = event

    def turn(self) -> list[Notice]:
        planned = self.planner.plan(
            Snapshot(
                RELEASE,
                NAMESPACE,
                nodes=dict(self.nodes),
                pods=dict(self.pods),
                pull_events=self.events,
                hold_ups=dict(self.hold_ups),
            ),
            Moment(self.now, self.now),
        )
        told = [action for action in planned.actions if isinstance(action, Notice)]
        assert len(told) == len(planned.actions)
        self.told += told
        return told

    def passes(self, seconds: float) -> list[Notice]:
        """Plan every second."""
        told: list[Notice] = []
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 1.0)
            told += self.turn()
        return told

    def start(self, name: str, node: str, seconds: float, image: str = IMAGE) -> list[Notice]:
        """One start whose containers run after so many seconds."""
        self.pod(name, image, node_name=node)
        told = self.turn() + self.passes(seconds)
        self.runs(name)
        return told + self.passes(1.0)


def reasons(told: Sequence[Notice]) -> list[str]:
    return [notice.reason for notice in told]


def test_who_starts_at_once_is_told_nothing() -> None:
    cluster = Cluster()
    cluster.node("n1", IMAGE)
    # A volume may take a while; the image is there.
    assert cluster.start("ada", "n1", 20.0) == []
    # A running pod's image is there, listed or not.
    cluster.node("n2")
    cluster.pod("bob", node_name="n2")
    cluster.runs("bob")
    assert cluster.start("eve", "n2", 20.0) == []
    # The image is pulled before anybody could read that it is missing.
    cluster.node("n3")
    assert cluster.start("kim", "n3", 2.0) == []


def test_a_download_is_told_with_what_is_left_of_it_and_a_long_one_is_called_so() -> None:
    cluster = Cluster()
    for number in range(12):
        cluster.node(f"n{number}")
        cluster.start(f"user-{number}", f"n{number}", 60.0)
    cluster.node("n")
    told = cluster.start("ada", "n", 60.0)
    assert reasons(told)[:2] == ["DownloadsImage", "StillDownloadsImage"]
    assert told[0].message.startswith("Downloading your server's image. About 55 seconds left")
    assert {(notice.kind, notice.namespace, notice.name, notice.uid) for notice in told} == {
        ("Pod", NAMESPACE, "ada", "uid-ada")
    }
    assert all(not notice.warning for notice in told)
    assert len(told) <= MOST_NOTICES
    cluster.node("m")
    told = cluster.start("bob", "m", 3600.0)
    assert len(told) <= MOST_NOTICES
    assert reasons(told).count("DownloadTakesLonger") == 1
    assert told[-1].reason == "DownloadTakesLonger"


def test_pulls_ahead_are_told_and_waited_for() -> None:
    cluster = Cluster()
    for number, image in enumerate(("quay.io/a/a:1", "quay.io/b/b:1")):
        for time in range(8):
            cluster.node(f"n{number}-{time}")
            cluster.start(f"user-{number}-{time}", f"n{number}-{time}", 40.0, image)
    cluster.node("n")
    cluster.pod("ada", "quay.io/a/a:1", node_name="n")
    cluster.turn()
    cluster.now += 1.0
    cluster.pod("bob", "quay.io/b/b:1", node_name="n")
    cluster.pod("eve", "quay.io/a/a:1", node_name="n")
    told = {notice.name: notice.message for notice in cluster.passes(5.0)}
    assert told["ada"].startswith("Downloading your server's image. About 35 seconds left")
    assert told["bob"].startswith("One download is ahead of yours. About 1.5 minutes left")
    # Kubelets serve requests in turn, even when their image has come for another pod.
    assert told["eve"].startswith("One download is ahead of yours. About 1.5 minutes left")
    cluster.passes(34.0)
    cluster.runs("ada")
    left = [notice for notice in cluster.told if notice.name == "bob"]
    # The second pull is measured from the end of the first.
    eve = [notice.message for notice in cluster.passes(40.0) if notice.name == "eve"]
    assert "About 35 seconds left" in eve[0]
    cluster.runs("bob")
    cluster.runs("eve")
    cluster.passes(1.0)
    assert reasons(left)[0] == "DownloadsImage"
    cluster.node("m")
    again = cluster.start("kim", "m", 10.0, "quay.io/b/b:1")
    assert "About 35 seconds" in again[0].message


def test_a_plan_that_comes_too_early_tells_nothing_and_keeps_the_metric() -> None:
    cluster = Cluster()
    cluster.pod("ada", unschedulable_since=cluster.now - 60.0)
    snapshot = Snapshot(RELEASE, NAMESPACE, pods=cluster.pods)
    first = cluster.planner.plan(snapshot, Moment(cluster.now, 10.0))
    again = cluster.planner.plan(snapshot, Moment(cluster.now, 10.5))
    assert (len(first.actions), len(again.actions)) == (1, 0)
    assert (
        first.gauges
        == again.gauges
        == {"start_notices_waiting_pods": {("node",): 1.0, **NONE_BOUND}}
    )
    assert again.wake_after_seconds == pytest.approx(0.5)


def test_a_pull_that_fails_is_left_to_the_kubelet_to_tell_and_teaches_nothing() -> None:
    cluster = Cluster()
    cluster.node("n")
    cluster.pod("ada", node_name="n")
    cluster.turn()
    assert reasons(cluster.passes(5.0)) == ["DownloadsImage"]
    cluster.change(
        "ada", containers=(ContainerState(image=IMAGE, waiting_reason="ImagePullBackOff"),)
    )
    assert cluster.passes(600.0) == []
    cluster.runs("ada")
    cluster.passes(1.0)
    cluster.node("m")
    # As if nothing had been pulled before.
    assert "About 20 seconds" in cluster.start("bob", "m", 10.0)[0].message


def test_a_wait_for_a_node_is_told_and_learned_from() -> None:
    cluster = Cluster()
    cluster.node("old", IMAGE)
    cluster.pod("ada", unschedulable_since=cluster.now)
    cluster.turn()
    assert reasons(cluster.passes(3.0)) == []
    told = cluster.passes(97.0)
    assert [notice.message for notice in told] == [ROOM_UNKNOWN]
    cluster.node("new", IMAGE, age=20.0)
    cluster.change("ada", node_name="new", unschedulable_since=None)
    cluster.turn()
    cluster.pod("bob", unschedulable_since=cluster.now)
    assert [notice.message for notice in cluster.passes(10.0)] == [
        "Starting a new machine for your server; usually 1 to 3 minutes."
    ]
    # Room that others leave says nothing of new nodes.
    cluster.change("bob", node_name="old", unschedulable_since=None)
    assert cluster.passes(1.0) == []


@pytest.mark.parametrize(
    ("details", "is_tried", "expected"),
    [
        ({"spec": PodSpec(fit_requests=(("memory", 8),))}, True, [ROOM_UNKNOWN]),
        ({"spec": PodSpec(fit_requests=(("memory", 9),))}, True, [texts.TOO_LARGE]),
        # Of machines that aren't there, nobody knows how large they would be.
        (
            {"spec": PodSpec(fit_requests=(("memory", 9),), node_selector=(("pool", "large"),))},
            True,
            [ROOM_UNKNOWN],
        ),
        # Room that a placeholder gives up is told once it takes a while.
        ({"nominated_node": "n"}, True, [GIVES_WAY]),
        ({}, False, [texts.SCHEDULER]),
        ({"gated": True}, False, []),
    ],
    ids=["fits", "too large", "elsewhere", "nominated", "no scheduler", "held"],
)
def test_a_pod_is_told_once_what_it_waits_for(
    details: dict[str, Any], is_tried: bool, expected: list[str]
) -> None:
    cluster = Cluster()
    cluster.node("n", IMAGE)
    cluster.nodes["n"] = replace(cluster.nodes["n"], allocatable={"memory": 8})
    cluster.pod("ada", unschedulable_since=cluster.now if is_tried else None, **details)
    assert cluster.turn() == []
    assert cluster.passes(3.0) == []
    assert [notice.message for notice in cluster.passes(60.0)] == expected


def test_a_new_leader_learns_from_the_kubelets_events_and_nodes_started_for_users() -> None:
    cluster = Cluster()
    cluster.node("n")
    cluster.node("mid")
    for number in range(10):
        cluster.pulled(number, f"n{number}", 600.0)
    # The kubelet pulled another image first.
    cluster.pulled(10, "mid", 40.0, "quay.io/other/image:1")
    cluster.pod("eve", node_name="mid", created=cluster.now - 90.0, started=cluster.now - 89.0)
    assert [notice.message for notice in cluster.turn()] == [
        "Downloading your server's image. About 20 seconds left (15 to 30 seconds)."
    ]
    cluster = Cluster(events=cluster.events, nodes=cluster.nodes)
    cluster.events["present"] = cluster.events["old-0.1"]._replace(
        message=f'Container image "{IMAGE}" already present on machine'
    )
    cluster.events["odd"] = cluster.events["old-0.1"]._replace(
        message='Successfully pulled image "x" in no time'
    )
    for number in range(5):
        cluster.node(f"new-{number}", IMAGE, age=1800.0)
        cluster.pod(
            f"user-{number}",
            created=cluster.now - 1820.0,
            node_name=f"new-{number}",
            started=cluster.now - 1700.0,
        )
        cluster.runs(f"user-{number}")
    # Nobody waited for an old node, or waits when others' nodes come.
    cluster.node("old", IMAGE)
    cluster.pod("kim", created=cluster.now - 1820.0, node_name="old", started=cluster.now - 600.0)
    cluster.runs("kim")
    cluster.pod("sam", created=cluster.now - 1000.0, node_name="new-1", started=cluster.now - 999.0)
    cluster.runs("sam")
    cluster.turn()
    told = cluster.start("ada", "n", 10.0)
    assert [notice.message for notice in told] == [
        "Downloading your server's image. About 55 seconds left (50 seconds to 1.5 minutes)."
    ]
    cluster.pod("bob", unschedulable_since=cluster.now)
    told = cluster.passes(10.0)
    assert [notice.message for notice in told] == [
        "Starting a new machine for your server; usually 1.5 to 3 minutes."
    ]


@pytest.mark.parametrize(
    "labels", [{}, {"component": "image-build"}, {"roost.hub.jupyter.org/component": "placeholder"}]
)
def test_only_users_pods_are_told(labels: dict[str, str]) -> None:
    cluster = Cluster()
    cluster.node("n")
    cluster.pod("ada", node_name="n", labels=labels)
    cluster.pod("bob", unschedulable_since=cluster.now, labels=labels)
    cluster.turn()
    assert cluster.passes(60.0) == []


def test_a_crowd_is_told_within_the_budget_of_writes() -> None:
    cluster = Cluster()
    for number in range(MOST_A_MINUTE + 50):
        cluster.pod(f"user-{number}", unschedulable_since=cluster.now)
    cluster.turn()
    assert len(cluster.passes(30.0)) == MOST_A_MINUTE
    assert len(cluster.passes(60.0)) == 50


def test_switched_off_there_is_no_planner_and_faults_name_their_key() -> None:
    assert (
        START_NOTICES.planner(
            ReleaseDocument(Reader(), _document(startNotices={"enabled": False}), None, 36)
        )
        is None
    )
    document = _document(startNotices={"enabled": True, "language": "de"})
    assert faults_of(START_NOTICES, document) == ["startNotices.language"]


def test_four_in_five_waits_last_as_said_and_history_drops_what_was_seen_longest_ago() -> None:
    """Images of one registry, each pulled several times; what is left is estimated after ten
    seconds.
    """
    chance = random.Random(7)
    history = PastWaits()
    images = {
        f"pull quay.io/{number}": chance.lognormvariate(math.log(40.0), 0.8) for number in range(30)
    }
    errors, inside, asked = [], 0, 0
    levels = (OF_REGISTRY, OF_REGISTRY, OF_IMAGE)
    for _ in range(3000):
        image, usual = chance.choice(list(images.items()))
        seconds = usual * chance.lognormvariate(0.0, 0.12)
        if seconds > 12.0:
            left = history.expect(A_PULL, ("pull", "pull quay.io", image), levels).left(10.0)
            if left is not None:
                asked += 1
                inside += left.low <= seconds - 10.0 <= left.high
                errors.append(abs(left.median - (seconds - 10.0)) / (seconds - 10.0))
        history = history.with_duration(seconds, "pull", "pull quay.io", image)
    assert asked > 2000
    assert sorted(errors)[len(errors) // 2] <= 0.2
    assert 0.75 <= inside / asked <= 0.9
    for number in range(MOST_KEYS + 5):
        history = history.with_duration(10.0, "pull", f"pull {number}")
    assert len(history.by_key) == MOST_KEYS
    assert [key in history.by_key for key in ("pull", "pull 0", f"pull {MOST_KEYS + 4}")] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("seed", range(3))
def test_a_new_leader_learns_from_the_newest_waits_what_it_would_from_all(seed: int) -> None:
    chance = random.Random(seed)
    pools = ["a"] * 20 + ["b"] * 3 + ["c"]
    waits = sorted(
        EndedWait(
            chance.uniform(0.0, 1e6),
            chance.lognormvariate(4.0, 1.0),
            ("node", f"node {chance.choice(pools)}"),
        )
        for _ in range(5000)
    )
    # Of this pool none waited lately: it isn't forgotten.
    waits.insert(0, EndedWait(-1.0, 77.0, ("node", "node rare")))
    newest = newest_waits(waits)
    assert len(newest) < len(waits) / 3
    assert newest == sorted(newest)
    of_all, of_newest = (
        PastWaits().with_durations((wait.seconds, wait.keys) for wait in taken).by_key
        for taken in (waits, newest)
    )
    assert of_newest.keys() == of_all.keys()
    for key, seen in of_all.items():
        learned = of_newest[key]
        assert learned.number == pytest.approx(seen.number, rel=1e-5)
        assert learned.mean == pytest.approx(seen.mean, rel=1e-5)
        assert learned.squares == pytest.approx(seen.squares, rel=1e-4)


@pytest.mark.parametrize(("estimate", "left", "range_of_it"), rows("controllers/estimates"))
def test_estimates_are_rounded_in_words(
    estimate: tuple[float, float, float], left: str, range_of_it: str
) -> None:
    assert (
        with_estimate("{left}; {usual}", Estimate(*estimate))
        == f"{left} left ({range_of_it}); {range_of_it}"
    )
    assert (
        with_estimate("{left}; {usual}", Estimate(1.0, 4.0, 4.9))
        == "A few seconds left; a few seconds"
    )


def test_the_policy_of_the_controllers_account_takes_every_sentence() -> None:
    """Of users' pods it takes plain sentences only, and says which by a regular expression."""
    policy = (templates_folder() / "controllers/admission-policies.yaml.j2").read_text()
    (pattern,) = re.findall(r'matches\(r"(.+)"\)\)', policy)
    sentences = [
        value
        for name, value in vars(texts).items()
        if name.isupper() and isinstance(value, str) and name[0] != "_"
    ]
    assert len(sentences) >= 8
    seconds = [0.0, 4.0, 12.0, 27.0, 61.0, 95.0, 400.0, 86_400.0]
    for text in sentences:
        for low, high in itertools.combinations(seconds, 2):
            if "{passed}" in text:
                said = with_passed(text, high, "a-step")
            else:
                said = with_estimate(text, Estimate(low, (low + high) / 2, high), others=1234)
            assert re.fullmatch(pattern, said), said
            assert len(said) <= 200


def test_the_policy_and_the_documentation_list_every_reason() -> None:
    """An Event of any other reason would be refused by the policy."""
    policy = (templates_folder() / "controllers/admission-policies.yaml.j2").read_text()
    listed = re.findall(r'"([A-Z]\w+)"', "".join(re.findall(r'"\w+": \[([^]]+)\]', policy)))
    documented = re.findall(
        r"^\| `([A-Z]\w+)`", (ROOT / "docs/reference/names.md").read_text(), re.MULTILINE
    )
    assert sorted(listed) == sorted(documented)
    sources = [path.read_text() for path in (ROOT / "roost/controllers").rglob("*.py")]
    words = {word for text in sources for word in re.findall(r'"((?:[A-Z][a-z]+){2,})"', text)}
    kubernetes = (
        "Config|Stateful|DaemonSet|Deadline|Pressure|IfNot|NotIn|NeverPull|InvalidImage|RegistryUn"
        "|RenamedBy|FailedScheduling|BackOff|ServiceAccount"
    )
    assert {word for word in words if not re.search(kubernetes, word)} == set(documented)


@pytest.mark.parametrize(
    ("reason", "message", "told_as", "sentence"),
    [
        (
            "FailedAttachVolume",
            'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached',
            "WaitsForVolume",
            "Waiting for your server's volume, for {} so far. Another machine still has it.",
        ),
        (
            "FailedMount",
            "MountVolume.SetUp failed",
            "WaitsForVolume",
            "Waiting for your server's volume, for {} so far.",
        ),
        (
            "FailedCreatePodSandBox",
            'Failed to create pod sandbox: rpc error: code = Unknown desc = no runtime for "x"',
            "WaitsForSandbox",
            "Waiting for the machine to set your server up, for {} so far.",
        ),
        (
            "FailedCreatePodSandBox",
            "Failed to create pod sandbox: failed to setup network for sandbox: no IPs left",
            "WaitsForSandbox",
            "Waiting for a network address for your server, for {} so far.",
        ),
    ],
)
def test_what_holds_a_pod_up_is_told_with_how_long_it_has_lasted(
    reason: str, message: str, told_as: str, sentence: str
) -> None:
    cluster = Cluster()
    # It lacks the image, too, but nothing is pulled yet.
    cluster.node("n")
    cluster.pod("ada", node_name="n")
    told = cluster.turn()
    cluster.now += 1.0
    cluster.fails("ada", reason, message)
    for _ in range(7):
        told += cluster.passes(50.0)
        cluster.fails("ada", reason, message)
    assert [(notice.reason, notice.message) for notice in told] == [
        (told_as, sentence.format("15 seconds")),
        (told_as, sentence.format("1 minute")),
        (told_as, sentence.format("4 minutes")),
    ]
    assert len(told) <= MOST_NOTICES
    # Then the image is pulled, and what that takes is measured from then on.
    cluster.hold_ups.clear()
    told = cluster.passes(5.0)
    assert reasons(told) == ["DownloadsImage"]


@pytest.mark.parametrize(
    "beyond",
    [
        {"has_sandbox": True},
        {"containers": (ContainerState(image=IMAGE, waiting_reason="ErrImagePull"),)},
    ],
)
def test_a_mount_that_failed_once_holds_up_no_pod_whose_image_is_pulled(
    beyond: dict[str, Any],
) -> None:
    cluster = Cluster()
    cluster.node("n")
    cluster.pod("ada", node_name="n")
    cluster.turn()
    cluster.fails("ada", "FailedMount", "a Secret isn't there yet")
    cluster.now += 1.0
    cluster.change("ada", **beyond)
    told = cluster.passes(90.0)
    assert "WaitsForVolume" not in reasons(told)
    assert ("DownloadsImage" in reasons(told)) == ("has_sandbox" in beyond)


def test_an_init_container_that_runs_is_told_and_is_no_download() -> None:
    cluster = Cluster()
    cluster.node("n")
    init = ContainerState(image="busybox", name="chown", init=True, running=True, image_id="x")
    main = ContainerState(image=IMAGE, waiting_reason="PodInitializing")
    cluster.pod("ada", node_name="n", containers=(main, init))
    told = cluster.turn() + cluster.passes(70.0)
    assert [(notice.reason, notice.message) for notice in told] == [
        ("PreparesServer", "Preparing your server. The step chown has taken 15 seconds so far."),
        ("PreparesServer", "Preparing your server. The step chown has taken 1 minute so far."),
    ]
    done = replace(init, running=False, terminated=True)
    cluster.change("ada", containers=(main, done))
    assert reasons(cluster.passes(5.0)) == ["DownloadsImage"]
    cluster.runs("ada")
    # One that stays beside the others is ready, and holds nobody up.
    sidecar = replace(init, ready=True)
    cluster.node("m", IMAGE)
    cluster.pod("bob", node_name="m", containers=(main, sidecar))
    assert cluster.turn() + cluster.passes(70.0) == []


def test_what_a_hold_up_took_teaches_nothing_of_pulls() -> None:
    cluster = Cluster()
    for number in range(12):
        cluster.node(f"n{number}")
        cluster.start(f"user-{number}", f"n{number}", 30.0)
    for number in range(12):
        name, node = f"held-{number}", f"m{number}"
        cluster.node(node)
        cluster.pod(name, node_name=node)
        cluster.turn()
        cluster.fails(name, "FailedMount")
        cluster.passes(400.0)
        cluster.hold_ups.clear()
        cluster.passes(30.0)
        cluster.runs(name)
        cluster.passes(1.0)
    cluster.node("n")
    told = cluster.start("ada", "n", 5.0)
    assert told[0].message.startswith("Downloading your server's image. About 30 seconds left")


def test_hold_ups_are_read_from_warnings_about_pods() -> None:
    item = {
        "reason": "FailedMount",
        "message": 'MountVolume.SetUp failed for volume "x" : secret "y" not found',
        "involvedObject": {"kind": "Pod", "uid": "u"},
        "firstTimestamp": "2027-01-15T08:00:00Z",
        "lastTimestamp": "2027-01-15T08:05:00Z",
    }
    read = read_hold_up(item)
    assert read is not None
    assert (read.pod_uid, read.at - read.since) == ("u", 300.0)
    assert read.cause == "MountVolume.SetUp failed for volume x: secret y not found"
    assert read_hold_up({**item, "reason": "FailedScheduling"}) is None
    assert read_hold_up({**item, "involvedObject": {}}) is None
