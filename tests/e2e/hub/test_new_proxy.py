"""The hub's proxy is replaced between seating and the end of the grace, on a real JupyterHub."""

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from tests.harness.controlplane import CONTROLLERS, ControlPlane
from tests.harness.hub.hub import RealHub, ensure_pinned_hub
from tests.harness.hub.people import start
from tests.harness.hub.seating import Seating
from tests.harness.hub.user_pods import PORT, UserPods
from tests.harness.nodes import FakeNodes
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until

# Eight minutes, most of them a hub's and a class's own times.
pytestmark = [pytest.mark.e2e, pytest.mark.hub_day]

IMAGE: Final = "quay.io/hub/light:1"
PEOPLE: Final = [f"ada{number}" for number in range(5)]
EARLY: Final = PEOPLE[0]
LATE: Final = PEOPLE[1]
ABSENT: Final = PEOPLE[2:]
GRACE_SECONDS: Final = 20.0
# So long before the proxy goes, servers are ready: else the hub's notes are too young to tell.
READY_SECONDS: Final = 300.0
# How often the hub asks its proxy who was there. Seating looks several times in between, as it does
# in zero-to-jupyterhub's minute.
ACTIVITY_SECONDS: Final = 25


@pytest.fixture
def cluster() -> Iterator[ControlPlane]:
    with (
        ControlPlane(controllers=CONTROLLERS) as cluster,
        FakeNodes(cluster.api) as nodes,
        start_scheduler(cluster),
        UserPods(cluster, {IMAGE: 0.5}),
    ):
        nodes.create_many(["user-a", "user-b"], cpu="16", memory="64Gi")
        yield cluster


def test_people_keep_their_servers_and_those_of_absent_ones_are_stopped(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    hub = RealHub(
        cluster,
        cluster.create_namespace("new-proxy-hub"),
        packages=ensure_pinned_hub(),
        groups={"bio101": PEOPLE},
        hub={"last_activity_interval": ACTIVITY_SECONDS},
        image=IMAGE,
        port=PORT,
        start_timeout=60,
        profile_list=[{"display_name": "Light", "slug": "light"}],
    )
    with hub:
        class_at = datetime.now(UTC) + timedelta(seconds=READY_SECONDS + 150)
        class_at = class_at.replace(second=0, microsecond=0) + timedelta(minutes=1)
        grace_ends = class_at.timestamp() + GRACE_SECONDS
        seating = Seating(cluster, hub, tmp_path)
        entry = {"name": "biology", "people": 20, "timeZone": "UTC", "group": "bio101"}
        seating.book({**entry, "start": f"{class_at:%Y-%m-%dT%H:%M}"})
        # Long starts are begun early.
        process = seating.start("--start-seconds=90", grace_seconds=GRACE_SECONDS)

        def told() -> str:
            return f"{process.tail(40)}\n{hub.hub.tail(40)}"

        try:
            paths = {f"/user/{name}" for name in PEOPLE}
            wait_until(
                lambda: list(hub.servers().values()) == ["ready"] * len(PEOPLE),
                90,
                "all to be seated",
                explain=told,
            )
            ready_at = time.time()
            # She stays for a second, and is there no more when the proxy goes.
            assert_at_once(hub, EARLY)
            time.sleep(ready_at + READY_SECONDS - time.time())
            replaced_at = time.time()
            hub.replace_proxy()
            assert not paths & hub.routes().keys()
            wait_until(
                lambda: paths <= hub.routes().keys(),
                2 * ACTIVITY_SECONDS,
                "the hub to give the new proxy its routes",
                interval_seconds=0.5,
                explain=told,
            )
            came_at = time.time()
            assert_at_once(hub, LATE)
            # The hub takes the absent people's servers for active ones.
            wait_until(
                lambda: all(active_at(hub, name) >= replaced_at for name in PEOPLE),
                2 * ACTIVITY_SECONDS,
                "the hub to ask the new proxy",
                interval_seconds=0.5,
                explain=told,
            )
            # Activity of a person who came since reaches it by the new proxy.
            assert active_at(hub, LATE) >= came_at
            assert time.time() < grace_ends
            wait_until(
                lambda: not {f"{name}/" for name in ABSENT} & hub.servers().keys(),
                grace_ends - time.time() + GRACE_SECONDS + 30,
                "the absent ones' servers to be stopped",
                interval_seconds=1,
                explain=told,
            )
            assert time.time() >= grace_ends
            time.sleep(2 * GRACE_SECONDS)
            assert sorted(re.findall(r"stopped the server of (\w+)", process.log())) == ABSENT
            assert hub.servers() == {f"{EARLY}/": "ready", f"{LATE}/": "ready"}
            assert_at_once(hub, EARLY)
            assert_at_once(hub, LATE)
        finally:
            process.stop()


def assert_at_once(hub: RealHub, name: str) -> None:
    """A person's server answers through the proxy, without a spawn page."""
    (visit,) = start(hub.url, [name], ["light"])
    assert visit.answered_at
    assert visit.pages == []


def active_at(hub: RealHub, name: str) -> float:
    """When a person's server was active last, as the hub says; Unix time."""
    _, user = hub.rest("GET", f"/users/{name}")
    return datetime.fromisoformat(user["servers"][""]["last_activity"]).timestamp()
