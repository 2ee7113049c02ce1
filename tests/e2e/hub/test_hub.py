"""Users start servers through a real JupyterHub and its proxy, with Roost and without.

The hubs are zero-to-jupyterhub's pinned JupyterHub, which is what operators run; the newest gets a
short storm.
"""

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
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
import sqlalchemy as sa

from roost_lab.recorder.answers.explanation import explain
from roost_lab.recorder.answers.pod_story import PodStory, read_story
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import Phase
from roost_lab.units import US
from tests.e2e.controllers.test_cleanup import cleanup
from tests.e2e.hub.judging import NOTICE_SECONDS, Judge, notice_lags, told
from tests.e2e.leftovers import leftovers
from tests.harness.controlplane import ADMIN, ControlPlane
from tests.harness.hub.hub import RealHub, ensure_pinned_hub
from tests.harness.hub.hub_pod import hub_pod
from tests.harness.hub.people import Visit, start
from tests.harness.hub.stage import HubStage, hub_stage
from tests.harness.hub.user_pods import PORT
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

LIGHT, OTHER, BIG = "quay.io/hub/light:1", "quay.io/hub/other:1", "quay.io/hub/big:1"
# Who waits for the last is told so: that is after 3 s and the controllers' pace of a second.
LONG: Final = "quay.io/hub/long:1"
PULLS: Final = {LIGHT: 1.0, OTHER: 2.0, BIG: 3.0, LONG: 6.0}
PROFILES: Final[list[dict[str, Any]]] = [
    {"display_name": "Light", "slug": "light", "default": True},
    {"display_name": "Other", "slug": "other", "kubespawner_override": {"image": OTHER}},
    {
        "display_name": "Big",
        "slug": "big",
        "kubespawner_override": {"image": BIG, "mem_guarantee": "2G"},
    },
    {
        "display_name": "Long",
        "slug": "long",
        "kubespawner_override": {"image": LONG, "mem_guarantee": "2G"},
    },
    {
        "display_name": "Hasty",
        "slug": "hasty",
        "kubespawner_override": {"image": BIG, "start_timeout": 10},
    },
    {
        "display_name": "Slow",
        "slug": "slow",
        "kubespawner_override": {"environment": {"ANSWERS_AFTER": "5"}},
    },
    {
        "display_name": "Huge",
        "slug": "huge",
        "kubespawner_override": {"mem_guarantee": "500G", "start_timeout": 9},
    },
]
# How long the API server waits for the webhook, as rendered.
TIMEOUT_SECONDS: Final = 2
# Until a standby leads: the rendered leaseDuration, from one of its looks at the Lease to another;
# between two looks client-go waits up to 2.2 times the rendered retryPeriod.
LEASE_SECONDS: Final = 15.0 + 2 * 2.0 * 2.2
# On other nodes than its twin, a server may have to wait for pulls, one after the other.
TWO_PULLS: Final = PULLS[LIGHT] + PULLS[OTHER]
# A server's own start on a busy machine, and the second in which the page looks again.
OWN_SECONDS: Final = 3.0
SPAWNER: Final[dict[str, Any]] = {
    "image": LIGHT,
    "mem_guarantee": "1G",
    "port": PORT,
    "start_timeout": 60,
    "profile_list": PROFILES,
}
VALUES: Final[dict[str, Any]] = {
    "singleuser": {
        "image": {"name": LIGHT.partition(":")[0], "tag": "1"},
        "memory": {"guarantee": "1G"},
    },
    "placeholders": [
        {"name": "default", "replicas": 2, "resources": {"requests": {"memory": "1Gi"}}}
    ],
    "prePuller": {"enabled": False},
    "imageGate": {"mode": "off"},
    "recorder": {"enabled": True},
}
# Which request brings a pod to a phase; see `requests`.
REQUESTS: Final = {
    Phase.CREATED: "",
    Phase.SCHEDULED: "binding",
    Phase.STARTED: "status",
    Phase.READY: "status",
}


@pytest.fixture(scope="module")
def stage() -> Iterator[HubStage]:
    with hub_stage(["user-a", "user-b", "user-c"], PULLS, audit_level="Metadata") as stage:
        yield stage


@pytest.fixture(scope="module")
def cluster(stage: HubStage) -> ControlPlane:
    return stage.cluster


@pytest.fixture(scope="module")
def world(stage: HubStage) -> Iterator[contextlib.ExitStack]:
    """The hubs and Roost; the last test ends them."""
    with contextlib.ExitStack() as world:
        yield world


@pytest.fixture(scope="module")
def plain(cluster: ControlPlane, world: contextlib.ExitStack) -> RealHub:
    """A hub without Roost."""
    namespace = cluster.create_namespace("hub-alone")
    return world.enter_context(RealHub(cluster, namespace, packages=ensure_pinned_hub(), **SPAWNER))


@pytest.fixture(scope="module")
def roost(cluster: ControlPlane, world: contextlib.ExitStack) -> Stack:
    return world.enter_context(
        Stack(cluster, cluster.create_namespace("hub-with-roost"), VALUES, controllers=True)
    )


@pytest.fixture(scope="module")
def steered(stage: HubStage, roost: Stack, world: contextlib.ExitStack) -> RealHub:
    """A hub with Roost, whose recorder reads the hub's log."""
    cluster, nodes, _ = stage
    hub = world.enter_context(
        RealHub(cluster, roost.namespace, packages=ensure_pinned_hub(), **SPAWNER)
    )
    world.enter_context(hub_pod(cluster, nodes, roost.namespace, lambda: hub.hub.log_path))
    roost.start_recorder().wait_ready()
    return hub


@pytest.fixture(scope="module")
def judge(stage: HubStage, roost: Stack, plain: RealHub, steered: RealHub) -> Judge:
    return Judge(stage.pods, roost, plain, steered)


def users(name: str, count: int) -> list[str]:
    return [f"{name}{number}" for number in range(count)]


def test_twelve_starts_of_three_profiles(judge: Judge) -> None:
    visits = judge(
        lambda hub: start(hub.url, users("ada", 12), ["light", "other", "long"], gap=0.2)
    )
    assert all(visit.answered_at for visit in visits)
    # How many wait so long that they are told, depends on how fast the hub takes their forms; the
    # first always does.
    waited = [visit for visit in visits if told(visit, f'Pulling image "{LONG}"')]
    assert waited
    assert all(notice_lags(visit) for visit in waited), waited


def test_thirty_at_once_and_what_the_recorder_says_of_them(
    cluster: ControlPlane, judge: Judge, steered: RealHub, roost: Stack
) -> None:
    visits = judge(lambda hub: start(hub.url, users("bob", 30), ["light", "other"]))
    assert all(visit.answered_at for visit in visits)

    def unanswered() -> list[str]:
        found = {
            story.pod["name"]
            for story in recorded(roost, "jupyter-bob")
            if story.at(Phase.ANSWERED)
        }
        return sorted({f"jupyter-{user}" for user in users("bob", 30)} - found)

    stories = wait_until(
        lambda: answered(roost, "jupyter-bob", 30),
        30,
        "the answers",
        interval_seconds=1,
        explain=unanswered,
    )
    # By people's own clocks: the record is made from the hub's log, which so proves nothing.
    people = {f"jupyter-{visit.user}": visit for visit in visits}
    done, seen_at, late = requests(cluster, steered.namespace), judge.pods.times, []
    # Where programs wait for a core, another watch is as late.
    lags = [
        seen_at[steered.namespace, name, part] - at[1]
        for (part, name), at in done.items()
        if "-bob" in name
    ]
    slack = 0.1 + max(0, *lags)
    for story in stories:
        name = story.pod["name"]
        # The hub takes so many forms one after the other.
        asked, answer = ((story.at(phase) or 0) / US for phase in (Phase.ASKED, Phase.ANSWERED))
        assert people[name].clicked_at <= asked <= people[name].pages[0], (people[name], asked)
        assert abs(people[name].ready_at - answer) <= 0.5, (people[name], answer)
        spans = {}
        for phase, part in REQUESTS.items():
            least, most = (at_us / US for at_us in story.when(phase) or (0, 0))
            window, seen = done[part, name], seen_at[steered.namespace, name, part]
            # An API server tells its watches when it has time to, so by another watch, too; and
            # what is said to run is so before the request that says it.
            begun, ended = spans[part] = min(*window, seen), max(*window, seen)
            # Exact, or marked as within a second.
            assert round(most - least, 6) in (0, 1), (phase, explain(story))
            assert least <= ended + slack, (phase, least - ended, explain(story))
            assert most >= begun - 0.001, (phase, most - begun, explain(story))
            late += [max(0, least - window[1])] if most == least else []
        wait_us = story.wait_us(Phase.CREATED, Phase.SCHEDULED)
        assert wait_us == wait_to_binding(story), explain(story)
        least, most = (bound_us / US for bound_us in wait_us)
        (asked, created), (begun, bound) = spans[""], spans["binding"]
        assert least <= bound - asked + slack, explain(story)
        assert most >= begun - created - slack, explain(story)
        least_us, most_us = story.wait_us(Phase.STARTED, Phase.ANSWERED) or (0, 0)
        assert most_us - least_us <= US
        assert "after its user had asked for it." in explain(story)
    # Counted from the pods' whole seconds, it would be half a second.
    assert statistics.median(late) <= 0.1, late


def test_top_says_which_servers_run_and_have_not_answered_yet(
    cluster: ControlPlane, steered: RealHub
) -> None:
    ours, theirs = pty.openpty()
    drawn: list[str] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # when the program has ended
            while True:
                drawn.append(os.read(ours, 1 << 16).decode(errors="replace"))

    # In the background of a shell, tests and all that they start ignore an interrupt.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "roost", "top"]
    command += ["--kubeconfig", str(cluster.kubeconfig)]
    size = {"COLUMNS": "120", "LINES": "40"}
    with subprocess.Popen(command, stdout=theirs, env=os.environ | size) as top, beside(read):
        os.close(theirs)
        try:
            wait_until(
                lambda: "starting: until it answers" in "".join(drawn),
                60,
                "the hub's log to be read",
            )
            assert "its server loads" not in "".join(drawn)
            assert start(steered.url, ["liv"], ["slow"])[0].answered_at
            answered = len(drawn)
            wait_until(
                lambda: "None of" in "".join(drawn[answered:]), 10, "all to have been answered"
            )
        finally:
            top.send_signal(signal.SIGINT)
    steered.stop_servers()
    whole = "".join(drawn)
    assert re.search(r"jupyter-liv +\d+ s +its server loads on user-", whole)
    assert top.returncode == 0
    # The screen is as it was.
    assert whole.rfind("\x1b[?1049l") > whole.rfind("\x1b[?1049h") > -1


def test_the_idle_culler_stops_one_of_two_servers_and_the_user_comes_back(judge: Judge) -> None:
    def story(hub: RealHub) -> list[Visit]:
        default = start(hub.url, ["eve"], ["light"])
        named = start(hub.url, ["eve"], ["other"], server="second")
        later = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()
        assert (
            hub.rest(
                "POST", "/users/eve/activity", {"servers": {"second": {"last_activity": later}}}
            )[0]
            == 200
        )
        with hub.culled(idle_seconds=1):
            wait_until(
                lambda: hub.servers() == {"eve/second": "ready"},
                30,
                "the cull",
                explain=hub.servers,
            )
        return [*default, *named, *start(hub.url, ["eve"], ["light"])]

    assert all(visit.answered_at for visit in judge(story))


def test_who_fits_nowhere_and_whose_pod_is_deleted_while_it_waits_gets_the_hubs_own_error(
    cluster: ControlPlane, judge: Judge, steered: RealHub, roost: Stack
) -> None:
    def story(hub: RealHub) -> list[Visit]:
        def delete() -> None:
            def waiting() -> list[str]:
                found = {
                    pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in hub.user_pods()
                }
                return (
                    ["jupyter-tim", "jupyter-una"]
                    if found.get("jupyter-tim") and "jupyter-una" in found
                    else []
                )

            # One whose image is pulled, and one that no node has room for.
            for name in wait_until(waiting, 30, "both pods"):
                cluster.api.delete(f"/api/v1/namespaces/{hub.namespace}/pods/{name}")

        with beside(delete):
            return start(hub.url, ["max", "tim", "una"], ["huge", "hasty", "huge"])

    visits = judge(story)
    assert all("Spawn failed" in visit.failure for visit in visits), visits
    assert any("No machine here is large enough" in line for _, line in visits[0].shown), visits[0]
    wait_until(lambda: not steered.user_pods(), 30, "the pods to go")
    (start_story,) = wait_until(
        lambda: failed(roost, "jupyter-max"), 30, "the failure", interval_seconds=1
    )
    assert "the start failed: its hub gave the start up " in explain(start_story)


def recorded(roost: Stack, name: str) -> list[PodStory]:
    """What the record has of the pods whose names begin so."""
    store = Store.open_for_reading(roost.recorder_environment()["ROOST_DATABASE"])
    with contextlib.closing(store), store.reading() as connection:
        pod = schema.pod.c
        chosen = sa.select(schema.pod).where(
            pod.name.startswith(name), pod.namespace == roost.namespace
        )
        return [read_story(store, dict(row)) for row in connection.execute(chosen).mappings()]


def answered(roost: Stack, name: str, count: int) -> list[PodStory]:
    """These pods, once so many have answered."""
    stories = [story for story in recorded(roost, name) if story.at(Phase.ANSWERED)]
    return stories if len(stories) == count else []


def failed(roost: Stack, name: str) -> list[PodStory]:
    return [story for story in recorded(roost, name) if story.at(Phase.FAILED)]


def wait_to_binding(story: PodStory) -> tuple[int, int]:
    """What the record must say of the wait from creation to binding: at least and at most, in
    microseconds.
    """
    created, bound = story.when(Phase.CREATED), story.when(Phase.SCHEDULED)
    assert created is not None, explain(story)
    assert bound is not None, explain(story)
    if created[1] - created[0] == bound[1] - bound[0]:
        # A late watch may tell of the creation after the binding.
        exact_us = max(0, bound[0] - created[0])
        return exact_us, exact_us
    # One of both is exact, the other within a second. Who was bound in the second of its creation
    # waited at most what had passed of it, and perhaps not at all.
    most_us = bound[1] - created[0]
    return max(0, most_us - US), most_us


def requests(cluster: ControlPlane, namespace: str) -> dict[tuple[str, str], tuple[float, float]]:
    """When each pod was created ("", name), bound ("binding", name) and said to run ("status",
    name).

    By the API server's audit log: between a request and its answer. Schedulers write to the status,
    too.
    """
    done: dict[tuple[str, str], tuple[float, float]] = {}
    for event in cluster.audit_events():
        about = event.get("objectRef", {})
        part, writer = about.get("subresource", ""), event["user"]["username"]
        verb = "patch" if part == "status" and writer == ADMIN else "create"
        if (about.get("resource"), about.get("namespace"), event["verb"]) == (
            "pods",
            namespace,
            verb,
        ):
            times = (event[stamp] for stamp in ("requestReceivedTimestamp", "stageTimestamp"))
            begun, ended = (datetime.fromisoformat(at).timestamp() for at in times)
            done.setdefault((part, about["name"]), (begun, ended))
    return done


@contextlib.contextmanager
def beside(action: Callable[[], object]) -> Iterator[None]:
    """Let an action happen while people start servers; what it raises is raised here."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(action)
        yield
        done.result()


def test_the_hub_restarts_in_mid_storm(judge: Judge) -> None:
    def story(hub: RealHub) -> list[Visit]:
        def restart() -> None:
            wait_until(lambda: len(hub.servers()) >= 3, 30, "some servers to start")
            hub.restart()

        with beside(restart):
            return start(hub.url, users("kim", 9), ["light", "other", "big"], gap=0.3)

    assert all(visit.answered_at for visit in judge(story, late_seconds=math.inf))


def test_the_api_server_restarts_in_mid_storm(cluster: ControlPlane, judge: Judge) -> None:
    def story(hub: RealHub) -> list[Visit]:
        def restart() -> None:
            wait_until(lambda: len(hub.servers()) >= 3, 30, "some servers to start")
            cluster.apiserver.kill()
            cluster.start_apiserver()
            hub.wait_answering()

        with beside(restart):
            # Before it is ready, this one API server refuses what several would hand on; so people
            # may try again.
            return start(hub.url, users("leo", 9), ["light", "other", "big"], tries=10, gap=0.3)

    # A hub asks an API server that is away for 10 s at growing intervals, and hears no Event for up
    # to twice as long.
    patient = replace(judge, notice_seconds=NOTICE_SECONDS + 20)
    assert all(visit.answered_at for visit in patient(story, late_seconds=math.inf))


def test_with_a_frozen_webhook_everybody_reaches_a_server(judge: Judge, roost: Stack) -> None:
    def story(hub: RealHub) -> list[Visit]:
        roost.webhooks[0].process.freeze()
        try:
            return start(hub.url, users("ned", 6), ["light", "other"])
        finally:
            roost.webhooks[0].process.resume()

    visits = judge(story, late_seconds=TIMEOUT_SECONDS + TWO_PULLS + OWN_SECONDS, is_patched=False)
    assert all(visit.answered_at for visit in visits), visits


def test_a_scheduler_that_dies_while_another_stands_by_costs_nobody_a_server(
    judge: Judge, roost: Stack, steered: RealHub
) -> None:
    def story(hub: RealHub) -> list[Visit]:
        if hub is steered:
            roost.start_scheduler().wait_serving()
            roost.schedulers[0].kill()
        return start(hub.url, users("pia", 6), ["light", "other"], gap=0.5)

    visits = judge(story, late_seconds=LEASE_SECONDS + TWO_PULLS + OWN_SECONDS)
    assert all(visit.answered_at for visit in visits), visits
    # The standby leads only when the Lease has run out.
    assert any("Waiting for the cluster's scheduler" in line for _, line in visits[0].shown), (
        visits[0]
    )


def test_users_of_the_newest_jupyterhub_get_their_servers(judge: Judge) -> None:
    with RealHub(judge.roost.cluster, judge.steered.namespace, **SPAWNER) as newest:
        versions = [
            hub.rest("GET", "/")[1]["version"].partition(".")[0] for hub in (judge.steered, newest)
        ]
        assert versions == ["5", "6"]
        visits = replace(judge, steered=newest)(
            lambda hub: start(hub.url, users("zoe", 6), ["light", "other", "big"])
        )
    assert all(visit.answered_at for visit in visits), visits


# The hub's own, and the recorder's volume, which stays on purpose.
STAYS: Final = {
    "serviceaccounts/hub",
    "roles/hub",
    "rolebindings/hub",
    "persistentvolumeclaims/hub-roost-recorder",
}


def test_nothing_is_left_when_all_have_gone(
    cluster: ControlPlane, world: contextlib.ExitStack, plain: RealHub, steered: RealHub
) -> None:
    for hub in (plain, steered):
        assert hub.servers() == {}
        assert hub.user_pods() == []
    world.close()
    cleaned = cleanup(cluster.kubeconfig, steered.namespace)
    assert cleaned.returncode == 0, cleaned.stderr

    def left() -> list[str]:
        found = [line for hub in (plain, steered) for line in leftovers(cluster.api, hub.namespace)]
        return [line for line in found if line.removesuffix(" in the namespace") not in STAYS]

    wait_until(lambda: not left(), 30, "everything to be gone", explain=left)
