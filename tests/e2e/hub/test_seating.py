"""`roost seating` starts listed people's servers before their class, on a real JupyterHub."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tests.harness.controlplane import ControlPlane
from tests.harness.hub.hub import SEATING_SCOPES, RealHub, ensure_pinned_hub
from tests.harness.hub.people import start
from tests.harness.hub.seating import ROOST, Seating
from tests.harness.hub.stage import hub_stage
from tests.harness.hub.user_pods import PORT
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.e2e

IMAGE: Final = "quay.io/hub/light:1"
GROUP: Final = "bio101"
PEOPLE: Final = [f"ada{number}" for number in range(5)]
PROFILES: Final[list[dict[str, Any]]] = [
    {"display_name": "Light", "slug": "light", "default": True},
    {
        "display_name": "Course",
        "slug": "course",
        "kubespawner_override": {"environment": {"COURSE": "bio101"}},
    },
]
GRACE_SECONDS: Final = 6.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with hub_stage(["user-a", "user-b"], {IMAGE: 0.5}) as stage:
        yield stage.cluster


def hub_of(
    cluster: ControlPlane,
    name: str,
    people: Sequence[str],
    *,
    more_groups: Mapping[str, Sequence[str]] | None = None,
    **more: Any,
) -> RealHub:
    # Seconds in which a hub asks its proxy who was there: its own minute is longer than the grace
    # of these tests.
    settings = {"last_activity_interval": 2}
    return RealHub(
        cluster,
        cluster.create_namespace(name),
        packages=ensure_pinned_hub(),
        groups={GROUP: people, **(more_groups or {})},
        hub=settings,
        image=IMAGE,
        port=PORT,
        start_timeout=60,
        profile_list=PROFILES,
        **more,
    )


@pytest.fixture(scope="module")
def hub(cluster: ControlPlane) -> Iterator[RealHub]:
    with hub_of(cluster, "seated-hub", PEOPLE) as hub:
        yield hub


@pytest.fixture
def seating(cluster: ControlPlane, hub: RealHub, tmp_path: Path) -> Iterator[Seating]:
    seating = Seating(cluster, hub, tmp_path)
    yield seating
    if seating.process is not None:
        seating.process.stop()
    hub.stop_servers()


def next_class(least_seconds: float = 40.0) -> datetime:
    """The first whole minute that is at least so far."""
    at = datetime.now(UTC) + timedelta(seconds=least_seconds)
    return at.replace(second=0, microsecond=0) + timedelta(minutes=1)


def booking(at: datetime, **more: Any) -> dict[str, Any]:
    start = f"{at:%Y-%m-%dT%H:%M}"
    entry = {"name": "biology", "people": 20, "start": start, "timeZone": "UTC", "group": GROUP}
    return entry | more


def ready(hub: RealHub, names: Sequence[str]) -> bool:
    servers = hub.servers()
    return all(servers.get(f"{name}/") == "ready" for name in names)


def uids_of(pods: Sequence[dict[str, Any]]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def reported(folder: Path, pods: Sequence[dict[str, Any]], log: str) -> dict[str, Any]:
    """The tables of a report about these pods and what their hub's log says of them."""
    (folder / "pods.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "PodList", "items": list(pods)})
    )
    (folder / "hub.log").write_text(log)
    database = f"--database={folder / 'roost.db'}"
    files = [f"{folder}/pods.json", f"{folder}/hub.log"]
    told = [str(ROOST), "records", "import", *files, database]
    subprocess.run(told, check=True, capture_output=True, text=True)
    asked = [str(ROOST), "report", database, "--format=json"]
    done = subprocess.run(asked, check=True, capture_output=True, text=True)
    tables: dict[str, Any] = json.loads(done.stdout)["tables"]
    return tables


def test_five_people_are_seated_and_the_absent_ones_server_is_stopped(
    cluster: ControlPlane, hub: RealHub, seating: Seating, tmp_path: Path
) -> None:
    at = next_class()
    seating.book(booking(at, profile="course"))
    process = seating.start(grace_seconds=GRACE_SECONDS)
    wait_until(lambda: ready(hub, PEOPLE), 60, "all to be seated", explain=lambda: process.tail(40))
    _, user = hub.rest("GET", f"/users/{PEOPLE[0]}")
    assert user["servers"][""]["user_options"]["profile"] == "course"
    came = PEOPLE[:4]
    pods = hub.user_pods()
    visits = start(hub.url, came, ["light"])
    assert [visit for visit in visits if not visit.answered_at] == []
    # They never see a spawn page.
    assert [visit.pages for visit in visits] == [[], [], [], []]
    wait_until(
        lambda: f"{PEOPLE[4]}/" not in hub.servers(),
        at.timestamp() - time.time() + GRACE_SECONDS + 30,
        "the absent one's server to be stopped",
        interval_seconds=1,
        explain=lambda: process.tail(40),
    )
    assert time.time() >= at.timestamp() + GRACE_SECONDS
    time.sleep(3)
    assert ready(hub, came)
    assert sorted(hub.servers()) == [f"{name}/" for name in came]
    # Somebody starts their own server, and waits: alone they count as a person's start.
    by_themselves = start(hub.url, ["zoe"], ["light"])
    assert by_themselves[0].answered_at
    pods += [pod for pod in hub.user_pods() if pod["metadata"]["uid"] not in uids_of(pods)]
    tables = reported(tmp_path, pods, hub.hub.log())
    (seated,) = tables["seated"]
    counted = {key: seated[key] for key in ("servers", "opened", "unused", "failed", "unknown")}
    assert counted == {"servers": 5, "opened": 4, "unused": 1, "failed": 0, "unknown": 0}
    figures = {row["figure"]: row["value"] for row in tables["key_figures"]}
    assert figures["starts"] == 1
    assert figures["seated_starts"] == 5
    assert figures["users"] == 5


# Services with other roles for one group: name, which ends their tokens, -> scopes.
ROLES: Final = {
    "narrowest": [
        f"list:users!group={GROUP}",
        f"read:users:activity!group={GROUP}",
        f"read:groups!group={GROUP}",
        f"servers!group={GROUP}",
    ],
    "counting": ["list:users", "read:servers", f"servers!group={GROUP}"],
}
TOKEN: Final = "made-up-token-of-the-"


def config_of_roles() -> str:
    """Lines of the hub's configuration with these services."""
    services = [{"name": name, "api_token": TOKEN + name} for name in ROLES]
    roles = [{"name": name, "services": [name], "scopes": ROLES[name]} for name in ROLES]
    return (
        f"c.JupyterHub.services.extend({services!r})\nc.JupyterHub.load_roles.extend({roles!r})\n"
    )


def test_a_token_for_one_groups_servers_seats_that_group_and_skips_others(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    config = tmp_path / "roles.py"
    config.write_text(config_of_roles())
    inside = PEOPLE[:3]
    # More than the failures after which seating pauses, and first in its order.
    outside = ["abe0", "abe1", "abe2", "abe3"]
    with hub_of(
        cluster,
        "narrow-hub",
        inside,
        more_groups={"other": outside},
        seating_scopes=narrowed(SEATING_SCOPES, "servers", "read:groups"),
        extra_config=[config],
    ) as hub:
        assert start(hub.url, outside[:1], ["light"])[0].answered_at
        assert_only_the_group_can_be_started(hub)
        seating = Seating(cluster, hub, tmp_path)
        at = next_class()
        seating.book(booking(at, people=len(inside), users=outside))
        process = seating.start(grace_seconds=GRACE_SECONDS)
        try:
            wait_until(lambda: ready(hub, inside), 60, "them", explain=lambda: process.tail(40))
            assert "the servers of abe0, abe1, abe2 and 1 more: skipped" in process.log()
            wait_until(
                lambda: "7 listed, 3 booked, 4 skipped, 3 seated" in process.log(),
                10,
                "all to be counted",
                explain=lambda: process.tail(40),
            )
            start(hub.url, inside[:2], ["light"])
            wait_until(
                lambda: f"{inside[2]}/" not in hub.servers(),
                at.timestamp() - time.time() + GRACE_SECONDS + 30,
                "the absent one's server to be stopped",
                interval_seconds=1,
                explain=lambda: process.tail(40),
            )
            time.sleep(3)
            assert sorted(hub.servers()) == [f"{name}/" for name in (outside[0], *inside[:2])]
            for trouble in ("nothing is started", "did not start", "can't be read", "hub is busy"):
                assert trouble not in process.log()
        finally:
            process.stop()


def narrowed(scopes: Sequence[str], *of_group: str) -> list[str]:
    return [f"{scope}!group={GROUP}" if scope in of_group else scope for scope in scopes]


def assert_only_the_group_can_be_started(hub: RealHub) -> None:
    """What docs/seated.md says of a role for one group holds for this hub."""

    def asked(method: str, path: str, token: str = hub.seating_token) -> tuple[int, Any]:
        return hub.rest(method, path, token=token)

    _, users = asked("GET", "/users")
    shown = {user["name"]: user for user in users}
    # A running server of somebody else's isn't shown, their last activity is.
    assert "servers" not in shown["abe0"]
    assert shown["abe0"]["last_activity"]
    assert shown["ada0"]["servers"] == {}
    _, active = asked("GET", "/users?state=active")
    assert ["servers" in user for user in active] == [False]
    for method, path in (
        ("POST", "/users/abe1/server"),
        ("DELETE", "/users/abe0/server"),
        ("GET", "/users/abe0/server/progress"),
        ("GET", "/groups/other"),
    ):
        assert asked(method, path)[0] == 404
    # A role may be narrower still.
    _, users = asked("GET", "/users", f"{TOKEN}narrowest")
    assert {user["name"] for user in users} == set(PEOPLE[:3])
    assert all(user["servers"] == {} for user in users)
    # With `read:servers`, others' servers are seen, and no more can be started.
    _, active = asked("GET", "/users?state=active", f"{TOKEN}counting")
    assert [list(user["servers"]) for user in active] == [[""]]
    assert asked("POST", "/users/abe1/server", f"{TOKEN}counting")[0] == 404


# Who may not start a server, as when only a login brings what it needs.
HOOK: Final = """
def refuse(spawner):
    if spawner.user.name == "mel":
        raise RuntimeError("mel has to log in first")

c.Spawner.pre_spawn_hook = refuse
"""


def test_hub_and_service_restart_meanwhile_and_one_can_not_start(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    hook = tmp_path / "hook.py"
    hook.write_text(HOOK)
    others = [f"bob{number}" for number in range(11)]
    with hub_of(cluster, "restarted-hub", [*others, "mel"], extra_config=[hook]) as hub:
        seating = Seating(cluster, hub, tmp_path)
        at = next_class(60.0)
        seating.book(booking(at))
        first = seating.start(grace_seconds=GRACE_SECONDS)
        wait_until(
            lambda: len(hub.servers()) >= 4 and "ready" in hub.servers().values(),
            60,
            "some to start",
            explain=first.tail,
        )
        before = {server for server, state in hub.servers().items() if state == "ready"}
        # Seating writes what it saw at each turn.
        time.sleep(2)
        hub.restart()
        first.kill()
        second = seating.start(grace_seconds=GRACE_SECONDS)
        try:
            wait_until(
                lambda: ready(hub, others), 90, "all but one", explain=lambda: second.tail(40)
            )
            wait_until(
                lambda: "the server of mel did not start" in first.log() + second.log(),
                60,
                "the one to be named",
                explain=lambda: second.tail(40),
            )
            assert sorted(hub.servers()) == sorted(f"{name}/" for name in others)
            assert len(hub.user_pods()) == len(others)
            # Nobody comes. Servers that started while the hub was away may stay (docs/seated.md).
            wait_until(
                lambda: not before & set(hub.servers()),
                max(0.0, at.timestamp() - time.time()) + GRACE_SECONDS + 60,
                "unused servers from before the restart to be stopped",
                interval_seconds=1,
                explain=lambda: second.tail(40),
            )
            left = sorted(hub.servers())
            assert len(left) <= len(others) - len(before), second.tail(40)
        finally:
            second.stop()
