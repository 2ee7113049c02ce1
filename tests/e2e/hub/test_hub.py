"""Users start servers through a real JupyterHub and its proxy, with Roost and without."""

import contextlib
import math
import os
import pty
import re
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
import sqlalchemy as sa

from roost_lab.pages.dates import US
from roost_lab.recorder.answers.explanation import explain
from roost_lab.recorder.answers.pod_story import PodStory, read_story
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import Phase
from tests.harness.api import Object
from tests.harness.controlplane import CONTROLLERS, ControlPlane
from tests.harness.hub.hub import RealHub, ensure_pinned_hub
from tests.harness.hub.hub_pod import hub_pod
from tests.harness.hub.people import Visit, start
from tests.harness.hub.user_pods import PORT, UserPods
from tests.harness.nodes import FakeNodes
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

LIGHT, OTHER, BIG = "quay.io/hub/light:1", "quay.io/hub/other:1", "quay.io/hub/big:1"
PULLS: Final = {LIGHT: 1.0, OTHER: 2.0, BIG: 3.0}
PROFILES: Final[list[dict[str, Any]]] = [
    {"display_name": "Light", "slug": "light", "default": True},
    {"display_name": "Other", "slug": "other", "kubespawner_override": {"image": OTHER}},
    {"display_name": "Big", "slug": "big", "kubespawner_override": {"image": BIG, "mem_guarantee": "2G"}},
    {"display_name": "Hasty", "slug": "hasty", "kubespawner_override": {"image": BIG, "start_timeout": 10}},
    {"display_name": "Slow", "slug": "slow", "kubespawner_override": {"environment": {"ANSWERS_AFTER": "5"}}},
    {"display_name": "Huge", "slug": "huge", "kubespawner_override": {"mem_guarantee": "500G", "start_timeout": 9}},
]
# Promise 9: nobody is later than this because of Roost.
LATE_SECONDS: Final = 30.0
SPAWNER: Final[dict[str, Any]] = {
    "image": LIGHT,
    "mem_guarantee": "1G",
    "port": PORT,
    "start_timeout": 60,
    "profile_list": PROFILES,
}
VALUES: Final[dict[str, Any]] = {
    "singleuser": {"image": {"name": LIGHT.partition(":")[0], "tag": "1"}, "memory": {"guarantee": "1G"}},
    "placeholders": [{"name": "default", "replicas": 2, "resources": {"requests": {"memory": "1Gi"}}}],
    "prePuller": {"enabled": False},
    "imageGate": {"mode": "off"},
    "recorder": {"enabled": True},
    # The largest that `roost validate` passes.
    "webhook": {"timeoutSeconds": 2},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane(controllers=CONTROLLERS, audit_level="Metadata") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def nodes(cluster: ControlPlane) -> Iterator[FakeNodes]:
    with FakeNodes(cluster.api) as nodes:
        labels = {"hub.jupyter.org/node-purpose": "user"}
        nodes.create_many(["user-a", "user-b", "user-c"], cpu="16", memory="64Gi", labels=labels)
        yield nodes


@pytest.fixture(scope="module")
def pods(cluster: ControlPlane, nodes: FakeNodes) -> Iterator[UserPods]:
    with start_scheduler(cluster), UserPods(cluster, PULLS) as pods:
        yield pods


@pytest.fixture(scope="module")
def plain(cluster: ControlPlane, pods: UserPods) -> Iterator[RealHub]:
    """A hub without Roost."""
    with RealHub(cluster, cluster.create_namespace("plain"), **SPAWNER) as hub:
        yield hub


@pytest.fixture(scope="module")
def roost(cluster: ControlPlane, pods: UserPods) -> Iterator[Stack]:
    with Stack(cluster, cluster.create_namespace("with-roost"), VALUES, controllers=True) as stack:
        yield stack


@pytest.fixture(scope="module")
def steered(cluster: ControlPlane, nodes: FakeNodes, roost: Stack) -> Iterator[RealHub]:
    """A hub with Roost, whose recorder reads the hub's log."""
    with (
        RealHub(cluster, roost.namespace, **SPAWNER) as hub,
        hub_pod(cluster, nodes, roost.namespace, lambda: hub.hub.log_path),
    ):
        roost.start_recorder().wait_ready()
        yield hub


Story = Callable[[RealHub], list[Visit]]


def judge(
    pods: UserPods, story: Story, plain: RealHub, steered: RealHub, *, late_seconds: float = LATE_SECONDS
) -> list[Visit]:
    """Let a story happen without Roost and with it; nobody with Roost is worse off. The visits with Roost.

    late_seconds: math.inf where something restarts, which hits the twins' starts at other moments.
    """
    twins = []
    for hub in (plain, steered):
        pods.forget_images()
        twins.append(story(hub))
        hub.stop_servers()
    without, visits = twins
    for twin, visit in zip(without, visits, strict=True):
        assert not visit.fault, visit
        assert bool(visit.failure) <= bool(twin.failure or twin.fault), (twin, visit)
        if twin.answered_at:
            assert visit.seconds <= twin.seconds + late_seconds, (twin, visit)
    return visits


def users(name: str, count: int) -> list[str]:
    return [f"{name}{number}" for number in range(count)]


def pods_of(cluster: ControlPlane, hub: RealHub) -> list[Object]:
    path = f"/api/v1/namespaces/{hub.namespace}/pods"
    return cluster.api.list(path, labelSelector="component=singleuser-server")


def test_twelve_starts_of_three_profiles(
    cluster: ControlPlane, pods: UserPods, plain: RealHub, steered: RealHub, roost: Stack
) -> None:
    schedulers: dict[str, set[str]] = {}

    def story(hub: RealHub) -> list[Visit]:
        visits = start(hub.url, users("ada", 12), ["light", "other", "big"], gap=0.2)
        schedulers[hub.namespace] = {pod["spec"]["schedulerName"] for pod in pods_of(cluster, hub)}
        return visits

    visits = judge(pods, story, plain, steered)
    assert all(visit.answered_at for visit in visits)
    # From each of Roost's notices, whose time is of whole seconds, until the page showed it.
    notice = re.compile(r"(\S+)Z \[Normal\] (Downloading|One download)")
    said = [(at, notice.match(line)) for visit in visits for at, line in visit.shown]
    lags = [at - datetime.fromisoformat(f"{found[1]}+00:00").timestamp() for at, found in said if found]
    assert len(lags) >= 3
    assert statistics.median(lags) <= 2
    # Every pod, not some of them.
    assert schedulers == {plain.namespace: {"default-scheduler"}, steered.namespace: {roost.scheduler_name("user")}}


def test_thirty_at_once_and_what_the_recorder_says_of_them(
    cluster: ControlPlane, pods: UserPods, plain: RealHub, steered: RealHub, roost: Stack
) -> None:
    visits = judge(pods, lambda hub: start(hub.url, users("bob", 30), ["light", "other"]), plain, steered)
    assert all(visit.answered_at for visit in visits)

    def unanswered() -> list[str]:
        found = {story.pod["name"] for story in recorded(roost, "jupyter-bob") if story.at(Phase.ANSWERED)}
        return sorted({f"jupyter-{user}" for user in users("bob", 30)} - found)

    stories = wait_until(
        lambda: answered(roost, "jupyter-bob", 30), 30, "the answers", interval_seconds=1, explain=unanswered
    )
    # By people's own clocks: the record is made from the hub's log, which so proves nothing.
    clocks = {f"jupyter-{visit.user}": visit for visit in visits}
    for story in stories:
        visit, asked_us, answered_us = clocks[story.pod["name"]], story.at(Phase.ASKED), story.at(Phase.ANSWERED)
        assert asked_us
        assert answered_us
        # Until the hub takes the form, a storm's people wait too.
        assert visit.clicked_at <= asked_us / US < answered_us / US, visit
        assert abs(visit.ready_at - answered_us / US) <= 0.5, visit
    waits, off = node_waits(cluster, steered.namespace), []
    for story in stories:
        least_us, most_us = story.wait_us(Phase.CREATED, Phase.SCHEDULED) or (0, 0)
        shortest, longest = waits[story.pod["name"]]
        # Exact, or a range that says so.
        assert most_us - least_us in (0, US), explain(story)
        off.append(max(least_us / US - longest, shortest - most_us / US, 0))
        least_us, most_us = story.wait_us(Phase.STARTED, Phase.ANSWERED) or (0, 0)
        assert most_us - least_us <= US
        assert "after its user had asked for it." in explain(story)
    # Counted from the pods' whole seconds, it would be half a second.
    assert statistics.median(off) <= 0.1, off


def test_top_says_which_servers_run_and_have_not_answered_yet(
    cluster: ControlPlane, pods: UserPods, steered: RealHub
) -> None:
    ours, theirs = pty.openpty()
    drawn: list[str] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # when the program has ended
            while True:
                drawn.append(os.read(ours, 1 << 16).decode(errors="replace"))

    command = [sys.executable, "-m", "roost", "top", "--kubeconfig", str(cluster.kubeconfig)]
    size = {"COLUMNS": "120", "LINES": "40"}
    with subprocess.Popen(command, stdout=theirs, env=os.environ | size) as top, beside(read):
        os.close(theirs)
        try:
            wait_until(lambda: "starting: until it answers" in "".join(drawn), 60, "the hub's log to be read")
            assert "its server loads" not in "".join(drawn)
            assert start(steered.url, ["liv"], ["slow"])[0].answered_at
            answered = len(drawn)
            wait_until(lambda: "None of" in "".join(drawn[answered:]), 10, "all to have been answered")
        finally:
            top.send_signal(signal.SIGINT)
    steered.stop_servers()
    whole = "".join(drawn)
    assert re.search(r"jupyter-liv +\d+ s +its server loads on user-", whole)
    assert top.returncode == 0
    # The screen is as it was.
    assert whole.rfind("\x1b[?1049l") > whole.rfind("\x1b[?1049h") > -1


def test_the_idle_culler_stops_one_of_two_servers_and_the_user_comes_back(
    pods: UserPods, plain: RealHub, steered: RealHub
) -> None:
    def story(hub: RealHub) -> list[Visit]:
        default = start(hub.url, ["eve"], ["light"])
        named = start(hub.url, ["eve"], ["other"], server="second")
        later = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()
        assert hub.rest("POST", "/users/eve/activity", {"servers": {"second": {"last_activity": later}}})[0] == 200
        with hub.culled(idle_seconds=1):
            wait_until(lambda: hub.servers() == {"eve/second": "ready"}, 30, "the cull", explain=hub.servers)
        return [*default, *named, *start(hub.url, ["eve"], ["light"])]

    assert all(visit.answered_at for visit in judge(pods, story, plain, steered))


def test_a_server_that_fits_nowhere_ends_in_the_hubs_own_error(
    cluster: ControlPlane, pods: UserPods, plain: RealHub, steered: RealHub, roost: Stack
) -> None:
    (visit,) = judge(pods, lambda hub: start(hub.url, ["max"], ["huge"]), plain, steered)
    assert "Spawn failed" in visit.failure
    assert any("No machine here is large enough" in line for _, line in visit.shown), visit
    wait_until(lambda: not pods_of(cluster, steered), 30, "the pod to go")
    (story,) = wait_until(lambda: failed(roost, "jupyter-max"), 30, "the failure", interval_seconds=1)
    assert "the start failed: its hub gave the start up " in explain(story)


def test_a_pod_that_is_deleted_while_its_image_is_pulled(
    cluster: ControlPlane, pods: UserPods, plain: RealHub, steered: RealHub
) -> None:
    def story(hub: RealHub) -> list[Visit]:
        def delete() -> None:
            (pod,) = wait_until(lambda: [one for one in pods_of(cluster, hub) if one["spec"].get("nodeName")], 30)
            cluster.api.delete(f"/api/v1/namespaces/{hub.namespace}/pods/{pod['metadata']['name']}")

        with beside(delete):
            return start(hub.url, ["tim"], ["hasty"])

    judge(pods, story, plain, steered)


def recorded(roost: Stack, name: str) -> list[PodStory]:
    """What the record has of the pods whose names begin so."""
    store = Store.open_for_reading(roost.recorder_environment()["ROOST_DATABASE"])
    with contextlib.closing(store), store.reading() as connection:
        pod = schema.pod.c
        chosen = sa.select(schema.pod).where(pod.name.startswith(name), pod.namespace == roost.namespace)
        return [read_story(store, dict(row)) for row in connection.execute(chosen).mappings()]


def answered(roost: Stack, name: str, count: int) -> list[PodStory]:
    """These pods, once so many have answered."""
    stories = [story for story in recorded(roost, name) if story.at(Phase.ANSWERED)]
    return stories if len(stories) == count else []


def failed(roost: Stack, name: str) -> list[PodStory]:
    return [story for story in recorded(roost, name) if story.at(Phase.FAILED)]


def node_waits(cluster: ControlPlane, namespace: str) -> dict[str, tuple[float, float]]:
    """How long each pod of a namespace waited for its node, at least and at most, by name.

    By the API server's audit log: it was created, and bound, between a request and its answer.
    """
    done: dict[tuple[str, str], list[float]] = {}
    for event in cluster.audit_events():
        about = event.get("objectRef", {})
        if (about.get("resource"), about.get("namespace"), event["verb"]) == ("pods", namespace, "create"):
            times = (event[stamp] for stamp in ("requestReceivedTimestamp", "stageTimestamp"))
            done[about.get("subresource", ""), about["name"]] = [datetime.fromisoformat(at).timestamp() for at in times]
    bound = {name: at for (part, name), at in done.items() if part == "binding"}
    return {name: (at[0] - done["", name][1], at[1] - done["", name][0]) for name, at in bound.items()}


@contextlib.contextmanager
def beside(action: Callable[[], object]) -> Iterator[None]:
    """Let an action happen while people start servers; what it raises is raised here."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(action)
        yield
        done.result()


def test_the_hub_restarts_in_mid_storm(pods: UserPods, plain: RealHub, steered: RealHub) -> None:
    def story(hub: RealHub) -> list[Visit]:
        def restart() -> None:
            wait_until(lambda: len(hub.servers()) >= 3, 30, "some servers to start")
            hub.restart()

        with beside(restart):
            return start(hub.url, users("kim", 9), ["light", "other", "big"], gap=0.3)

    assert all(visit.answered_at for visit in judge(pods, story, plain, steered, late_seconds=math.inf))


def test_the_api_server_restarts_in_mid_storm(
    cluster: ControlPlane, pods: UserPods, plain: RealHub, steered: RealHub
) -> None:
    def story(hub: RealHub) -> list[Visit]:
        def restart() -> None:
            wait_until(lambda: len(hub.servers()) >= 3, 30, "some servers to start")
            cluster.apiserver.kill()
            cluster.start_apiserver()
            hub.wait_answering()

        with beside(restart):
            # Before it is ready, this one API server refuses what several would hand on; so people may try again.
            return start(hub.url, users("leo", 9), ["light", "other", "big"], tries=10, gap=0.3)

    assert all(visit.answered_at for visit in judge(pods, story, plain, steered, late_seconds=math.inf))


def test_with_a_frozen_webhook_everybody_reaches_a_server(pods: UserPods, steered: RealHub, roost: Stack) -> None:
    roost.webhooks[0].process.freeze()
    try:
        visits = start(steered.url, users("ned", 6), ["light", "other"])
    finally:
        roost.webhooks[0].process.resume()
    steered.stop_servers()
    assert all(visit.answered_at for visit in visits), visits


def test_a_scheduler_that_dies_and_comes_back_costs_nobody_a_server(
    pods: UserPods, steered: RealHub, roost: Stack
) -> None:
    def replace() -> None:
        roost.schedulers[0].kill()
        roost.start_scheduler().wait_leading()

    with beside(replace):
        visits = start(steered.url, users("pia", 6), ["light", "other"], gap=0.5)
    steered.stop_servers()
    assert all(visit.answered_at for visit in visits), visits
    # Another scheduler leads only when the Lease has run out.
    assert any("Waiting for the cluster's scheduler" in line for _, line in visits[0].shown), visits[0]


def test_the_jupyterhub_that_zero_to_jupyterhub_pins(cluster: ControlPlane, pods: UserPods, roost: Stack) -> None:
    with RealHub(cluster, roost.namespace, packages=ensure_pinned_hub(), **SPAWNER) as hub:
        assert hub.rest("GET", "/")[1]["version"].startswith("5.")
        visits = start(hub.url, users("zoe", 6), ["light", "other", "big"])
        hub.stop_servers()
    assert all(visit.answered_at for visit in visits), visits


def test_nothing_is_left_when_all_have_gone(cluster: ControlPlane, plain: RealHub, steered: RealHub) -> None:
    for hub in (plain, steered):
        assert hub.servers() == {}
        assert pods_of(cluster, hub) == []
