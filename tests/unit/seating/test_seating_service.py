"""The service beside a hub that restarts, refuses, fails and forgets; over HTTP."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from roost.seating import stops
from roost.seating.bookings import BookingFile
from roost.seating.hub import Hub, HubError, Outcome, Result
from roost.seating.metrics import SeatingMetrics
from roost.seating.pace import FAILURE_PAUSE_SECONDS
from roost.seating.people import MARK_KEY, HubUser, Mark
from roost.seating.service import SeatingTimes, Service
from roost.seating.settings import ReleaseFile
from roost.seating.starts import Looks
from roost_core.release.bookings import Limits
from tests.harness.waiting import wait_until
from tests.unit.seating.fake_hub import FakeHub, stamp

GRACE = 1200.0
PEOPLE = ["ada", "bob", "cyd", "dan", "eve"]


class Room:
    """A service at a class that begins in so many seconds; its clock is set by hand."""

    def __init__(self, hub: FakeHub, folder: Path) -> None:
        self.hub = hub
        self.folder = folder
        # The next whole minute, with what lies before it as the present.
        self.start = (int(time.time()) // 60 + 2) * 60
        self.now = time.time()
        self.told: list[str] = []
        (folder / "token").write_text("secret\n")
        self.release()
        self.book()
        self.restart()

    def release(self, **events: Any) -> None:
        switched_on = {"enabled": True, "configMaps": True, "booked": []}
        events = {"maxPeople": 500, "concurrentSpawnLimit": 64, **switched_on, **events}
        document = {"placeholders": [{"name": "default"}], "events": events}
        (self.folder / "release.json").write_text(json.dumps(document))

    def book(self, **more: Any) -> None:
        start = datetime.fromtimestamp(self.start, UTC).strftime("%Y-%m-%dT%H:%M")
        entry = {"name": "biology", "people": 20, "start": start, "timeZone": "UTC"}
        entry |= {"group": "bio101"} | more
        entry = {key: value for key, value in entry.items() if value is not None}
        (self.folder / "events.yaml").write_text(yaml.safe_dump([entry]))

    def restart(self, grace: float = GRACE) -> None:
        """Another container in the same pod."""
        self.service = Service(
            Hub(self.hub.url, self.folder / "token"),
            ReleaseFile(self.folder / "release.json", self.told.append),
            BookingFile(self.folder / "events.yaml", self.told.append),
            SeatingTimes(grace, 30.0),
            metrics=SeatingMetrics(Result),
            state_path=self.folder / "state.json",
            clock=lambda: self.now,
        )

    def turn(self, until: Callable[[], bool] = lambda: False) -> None:
        """Turn until something holds, or all that was asked for has ended."""
        for _ in range(60):
            self.service.turn()
            running = [future for _, _, future in self.service._starts.running.values()]
            for future in running:
                future.exception(timeout=10)
            self.now = max(self.now, time.time())
            if until() or not (running or self.service.memory.pace.window < 0):
                self.service.turn()
                return

    def turns(self, count: int = 6) -> None:
        for _ in range(count):
            self.turn()
            # A booking's people are read again.
            self.now += 31.0

    def said(self) -> str:
        return self.service.readiness()[1]

    def after_grace(self) -> None:
        self.now = self.start + GRACE + 1.0


def test_a_file_that_cannot_be_read_is_told_once_and_again_after_it_was_read(
    tmp_path: Path,
) -> None:
    told: list[str] = []
    path = tmp_path / "events.yaml"
    bookings = BookingFile(path, told.append)

    def look_thrice() -> None:
        for _ in range(3):
            assert list(bookings.events(Limits((), 0))) == []

    path.mkdir()
    look_thrice()
    assert told == [f"{path}: can't be read (Is a directory)"]
    path.rmdir()
    look_thrice()
    path.mkdir()
    look_thrice()
    assert told == [f"{path}: can't be read (Is a directory)"] * 2


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub(*PEOPLE, "tom", bio101=list(PEOPLE)) as hub:
        yield hub


@pytest.fixture
def room(hub: FakeHub, tmp_path: Path) -> Room:
    return Room(hub, tmp_path)


def seated(hub: FakeHub) -> set[str]:
    return {name for name, servers in hub.users.items() if servers}


def names_in(text: str) -> set[str]:
    """Users who are named: anybody in the cluster may read /readyz."""
    return set(re.findall(r"\w+", text)) & {*PEOPLE, "tom", "wim", "xia", "yan", "zoe"}


def metrics_of(room: Room) -> str:
    return room.service.metrics.text().decode()


def server(started: float, options: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A server as the hub has it: ready, unless it says otherwise."""
    times = {"started": stamp(started), "last_activity": stamp(started)}
    body = {"name": "", "pending": None, "ready": True, "user_options": options}
    return {"": {**body, **times, **more}}


def see_adas_server_start(hub: FakeHub, room: Room) -> tuple[float, dict[str, Any]]:
    """Book for one person, whose marked server the service then sees while it starts: when it
    began, and its options.
    """
    room.book(group=None, users=["ada"])
    started = room.now
    options = Mark("biology", room.start, started).options()
    hub.users["ada"] = server(started, options, pending="spawn", ready=False)
    room.now += 1.0
    room.service.turn()
    return started, options


def test_a_groups_people_are_seated_once_with_mark_and_profile(hub: FakeHub, room: Room) -> None:
    room.book(profile="course")
    room.turns(3)
    assert seated(hub) == set(PEOPLE)
    assert sorted(hub.posts) == PEOPLE
    options = hub.users["ada"][""]["user_options"]
    assert options["profile"] == "course"
    assert options[MARK_KEY]["booking"] == "biology"
    assert "5 listed, 20 booked, 5 seated" in room.said()


def test_after_the_grace_only_unused_servers_of_its_own_are_stopped(
    hub: FakeHub, room: Room
) -> None:
    now = datetime.fromtimestamp(time.time(), UTC).isoformat()
    own = {"name": "", "started": now, "last_activity": now, "pending": None, "ready": True}
    hub.users["eve"] = {"": {**own, "user_options": {}}}
    hub.users["tom"] = {"": {**own, "user_options": {}}}
    room.turns(2)
    assert sorted(hub.posts) == PEOPLE[:4]
    hub.use("ada", time.time() + 60.0)
    room.turn()
    room.now = room.start + GRACE - 2.0
    room.turn()
    assert hub.deletes == []
    room.after_grace()
    room.turn()
    assert sorted(hub.deletes) == ["bob", "cyd", "dan"]
    assert seated(hub) == {"ada", "eve", "tom"}


def test_after_another_proxy_got_all_routes_again_no_server_is_stopped(
    hub: FakeHub, room: Room
) -> None:
    room.turns(2)
    for name in PEOPLE:
        # The proxy counts a new route as activity, and the hub takes that over.
        hub.use(name, time.time() + 60.0)
    room.turn()
    room.after_grace()
    room.turn()
    assert hub.deletes == []


def test_who_stops_a_server_that_they_used_gets_no_other_and_came(hub: FakeHub, room: Room) -> None:
    room.turns(2)
    hub.use("ada", time.time() + 60.0)
    room.turn()
    # As for another profile.
    hub.users["ada"] = {}
    room.turns(2)
    assert sorted(hub.posts) == PEOPLE
    assert "5 listed, 20 booked, 1 came, 4 seated" in room.said()
    assert 'roost_seating_people{state="came"} 1.0' in room.service.metrics.text().decode()


def test_each_result_of_a_start_is_counted_from_nought(hub: FakeHub, room: Room) -> None:
    """For Prometheus, a counter that first appears as 1 has not increased."""
    before = room.service.metrics.text().decode()
    for result in Result:
        assert f'roost_seating_starts_total{{result="{result}"}} 0.0' in before
    room.turns(2)
    assert 'starts_total{result="ready"} 5.0' in room.service.metrics.text().decode()


def test_an_old_mark_on_a_server_that_its_user_started_is_no_mark(hub: FakeHub, room: Room) -> None:
    room.turns(2)
    # The hub stores options again for a start without any.
    later = datetime.fromtimestamp(time.time() + 600.0, UTC).isoformat()
    hub.users["ada"][""] |= {"started": later, "last_activity": later}
    room.after_grace()
    room.turn()
    assert "ada" not in hub.deletes
    assert len(hub.deletes) == 4


def test_after_a_restart_of_its_own_it_starts_none_twice_and_forgets_none(
    hub: FakeHub, room: Room
) -> None:
    room.turns(2)
    hub.use("ada", time.time() + 60.0)
    room.turn()
    room.restart()
    room.turns(2)
    assert sorted(hub.posts) == PEOPLE
    assert "biology at" in room.said()
    room.after_grace()
    room.turn()
    assert sorted(hub.deletes) == PEOPLE[1:]
    room.turn()
    assert "biology at" not in room.said(), "a class is shown after it is over"


def test_a_new_pod_that_saw_nothing_stops_nobody_who_may_have_come(
    hub: FakeHub, room: Room
) -> None:
    room.turns(2)
    # As the proxy's route counts.
    hub.use("ada", time.time() + 5.0)
    (room.folder / "state.json").unlink()
    room.restart()
    room.turn()
    room.after_grace()
    room.turn()
    assert "ada" not in hub.deletes
    assert sorted(hub.posts) == PEOPLE


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_new_pod_knows_of_a_used_server_only_if_it_saw_it(
    is_seen: bool, hub: FakeHub, room: Room
) -> None:
    """As docs/seated.md says what a pod forgets that is replaced."""
    room.turns(2)
    hub.use("ada", time.time() + 60.0)
    room.turn()
    if not is_seen:
        hub.users["ada"] = {}
    (room.folder / "state.json").unlink()
    room.restart()
    room.service.turn()
    if is_seen:
        hub.users["ada"] = {}
    room.turns(2)
    assert sorted(hub.posts) == (PEOPLE if is_seen else ["ada", *PEOPLE])
    assert ("ada" in seated(hub)) != is_seen


def test_a_new_pod_tries_again_whose_start_failed(hub: FakeHub, room: Room) -> None:
    hub.fails["bob"] = "Spawn failed: no room"
    room.turns(4)
    hub.fails = {}
    room.turns(1)
    assert seated(hub) == {*PEOPLE} - {"bob"}
    (room.folder / "state.json").unlink()
    room.restart()
    room.turns(2)
    assert seated(hub) == {*PEOPLE}


def test_a_booking_that_is_taken_back_leaves_no_server_behind(hub: FakeHub, room: Room) -> None:
    room.turns(2)
    (room.folder / "events.yaml").write_text("[]")
    room.after_grace()
    room.turn()
    assert sorted(hub.deletes) == PEOPLE


def test_a_hub_at_its_limit_is_asked_again_later(hub: FakeHub, room: Room) -> None:
    hub.refuses = dict.fromkeys(PEOPLE, (429, "Too many users trying to log in right now."))
    room.turn()
    asked = len(hub.posts)
    assert 0 < asked <= 4
    room.now += 10.0
    room.turn()
    assert len(hub.posts) == asked
    hub.refuses = {}
    room.now += 31.0
    room.turns(4)
    assert seated(hub) == set(PEOPLE)


def test_who_can_not_start_is_named_with_the_hubs_words_and_skipped(
    hub: FakeHub, room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    hub.fails["bob"] = "Spawn failed: profile course is not yours"
    hub.refuses["cyd"] = (403, "auth has expired for cyd, login again")
    room.turns(4)
    assert seated(hub) == {"ada", "dan", "eve"}
    assert hub.posts.count("bob") == 1
    assert hub.posts.count("cyd") == 1
    assert "2 skipped (skipped: bob, cyd;" in caplog.text
    assert "bob did not start: Spawn failed: profile course is not yours" in caplog.text
    assert "cyd did not start: 403 auth has expired for cyd" in caplog.text
    assert "2 skipped\n" in room.said()
    assert not names_in(room.said())


def test_who_is_outside_of_the_roles_group_is_named_skipped_and_never_asked_for(
    hub: FakeHub, room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    hub.outside = {"ada", "bob", "cyd", "tom"}
    # Only one seat more than those outside: they take none.
    room.book(people=2, users=["tom"])
    room.turns(3)
    assert sorted(hub.posts) == ["dan", "eve"]
    words = "the token's role has no right to the servers of"
    assert f"biology: {words} ada, bob, cyd and 1 more: skipped" in caplog.text
    assert f"biology: {words} 4 listed people: skipped\n" in room.said()
    assert "6 listed, 2 booked, 4 skipped, 2 seated" in room.said()
    assert not names_in(room.said())
    # The role's group takes them in: nothing was held against them.
    hub.outside = set()
    room.book(people=6, users=["tom"])
    room.turns(3)
    assert seated(hub) == {*PEOPLE, "tom"}
    assert words not in room.said()


def test_people_of_whom_a_role_sees_servers_that_it_may_not_start_delay_nobody(
    hub: FakeHub, room: Room
) -> None:
    """As with `read:servers` for all and `servers!group=…`."""
    refused = (404, "No access to resources or resources not found")
    hub.refuses = dict.fromkeys(("ada", "bob", "cyd"), refused)
    for _ in range(4):
        room.turn()
    assert seated(hub) == {"dan", "eve"}
    assert sorted(hub.posts) == PEOPLE
    assert "3 skipped" in room.said()


def test_a_role_that_reaches_nobody_is_told_by_starts_that_fail(hub: FakeHub, room: Room) -> None:
    hub.outside = {*PEOPLE, "tom"}
    words = "Action is not authorized with current scopes; requires any of [servers]"
    hub.refuses = dict.fromkeys(PEOPLE, (403, words))
    room.turns(2)
    assert len(hub.posts) == 3
    assert "3 skipped" in room.said()
    # An alert counts these.
    assert 'roost_seating_starts_total{result="failed"} 3.0' in metrics_of(room)


def test_a_hub_that_fails_everybody_is_left_alone_before_it_ends_itself(
    hub: FakeHub, room: Room
) -> None:
    hub.fails = dict.fromkeys(PEOPLE, "Spawn failed: exceeded quota: pods")
    for _ in range(20):
        room.turn()
    # A hub ends itself at the fifth failure in a row.
    assert len(hub.posts) <= 4
    room.now += FAILURE_PAUSE_SECONDS / 2
    asked = len(hub.posts)
    room.turn()
    assert len(hub.posts) == asked


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ((500, "Internal Server Error"), "500 Internal Server Error"),
        ((403, "Forbidden"), "hub.services and hub.loadRoles in docs/seated.md"),
        ((302, "Found"), "seating.hubUrl is the address of JupyterHub's API"),
    ],
)
def test_a_hub_that_refuses_is_said_in_words_and_nothing_is_done(
    broken: tuple[int, str], words: str, hub: FakeHub, room: Room
) -> None:
    room.turns(2)
    hub.broken = broken
    room.after_grace()
    waits = [room.service.turn() for _ in range(8)]
    assert waits == sorted(waits)
    assert waits[-1] == 60.0
    is_ready, said = room.service.readiness()
    assert not is_ready
    assert words in said
    assert hub.deletes == []
    hub.broken = None
    room.turn()
    assert room.service.readiness()[0]
    assert sorted(hub.deletes) == PEOPLE


def test_a_new_token_is_taken_without_a_restart_and_no_message_has_one(
    hub: FakeHub, room: Room
) -> None:
    hub.token = "another"
    room.service.turn()
    said = room.said()
    assert "403" in said
    assert "secret" not in said
    (room.folder / "token").write_text("another")
    room.turns(2)
    assert seated(hub) == set(PEOPLE)
    (room.folder / "token").unlink()
    room.service.turn()
    assert "expected the Secret that seating.tokenSecret names" in room.said()


def test_an_empty_group_and_one_that_grows_and_one_that_is_not_there(
    hub: FakeHub, room: Room
) -> None:
    hub.groups["bio101"] = []
    room.turn()
    assert "group 'bio101' is empty" in room.said()
    hub.groups["bio101"] = ["ada"]
    room.now += 31.0
    room.turn()
    assert seated(hub) == {"ada"}
    hub.groups["bio101"] = ["ada", "bob"]
    room.now += 31.0
    room.turns(2)
    assert seated(hub) == {"ada", "bob"}
    del hub.groups["bio101"]
    room.now += 31.0
    room.turn()
    assert "the hub has no group 'bio101'" in room.said()


def test_listed_names_are_the_hubs_and_unknown_ones_are_named(
    hub: FakeHub, room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    room.book(group=None, users=["Ada", "zoe", "yan", "xia", "wim"])
    room.turns(2)
    assert seated(hub) == {"ada"}
    assert "the hub doesn't know wim, xia, yan and 1 more: skipped" in caplog.text
    assert "biology: 4 listed names are no users of the hub: skipped" in room.said()
    assert not names_in(room.said())


def test_the_hubs_limit_of_servers_and_the_bookings_people_hold(hub: FakeHub, room: Room) -> None:
    room.release(activeServerLimit=2)
    room.turns(4)
    assert len(seated(hub)) == 2
    room.release()
    room.book(people=3)
    room.turns(4)
    assert len(seated(hub)) == 3


def test_faulty_settings_and_bookings_are_told_and_the_last_good_ones_count(
    hub: FakeHub, room: Room
) -> None:
    (room.folder / "release.json").write_text("{")
    (room.folder / "events.yaml").write_text("- {name: biology, people: many}")
    room.turn()
    assert hub.posts == []
    assert any("the settings stay as they were" in text for text in room.told)
    assert any("That booking is left out." in text for text in room.told)


@pytest.mark.parametrize(
    "broken", [(403, "Forbidden"), (429, "Too Many Requests"), (500, "Internal Server Error")]
)
def test_a_server_that_was_used_while_looks_failed_is_kept(
    broken: tuple[int, str], hub: FakeHub, room: Room
) -> None:
    started, options = see_adas_server_start(hub, room)
    hub.broken = broken
    for _ in range(12):
        room.now += 1.0
        room.service.turn()
    # It was ready long ago, and somebody came.
    hub.users["ada"] = server(started, options, last_activity=stamp(started + 6.0))
    hub.broken = None
    room.now += 1.0
    room.service.turn()
    room.after_grace()
    room.turn()
    assert hub.deletes == []


def test_a_server_that_was_ready_when_the_hub_came_back_is_stopped_if_unused(
    hub: FakeHub, room: Room
) -> None:
    started, options = see_adas_server_start(hub, room)
    # Nobody listens.
    room.service._hub._url = "http://127.0.0.1:1/hub/api"
    for _ in range(12):
        room.now += 1.0
        room.service.turn()
    assert "Connection refused" in room.said()
    room.service._hub._url = hub.url
    hub.users["ada"] = server(started, options, last_activity=stamp(started + 13.5))
    room.now += 1.0
    room.service.turn()
    room.after_grace()
    room.turn()
    assert hub.deletes == ["ada"]


def fail_starts(hub: FakeHub, room: Room) -> int:
    """The hub says of the starts that it has in hand that they failed; returns how many."""
    hub.refuses = dict.fromkeys(PEOPLE, (500, "Internal Server Error"))
    room.service.turn()
    wait_until(lambda: all(future.done() for *_, future in room.service._starts.running.values()))
    assert len(hub.posts) >= 2
    return len(hub.posts)


def test_who_was_ready_just_before_the_hub_went_away_is_known_when_it_is_back(
    hub: FakeHub, room: Room
) -> None:
    room.service.turn()
    for _, _, future in room.service._starts.running.values():
        future.result(timeout=10)
    asked = sorted(hub.posts)
    for name in asked:
        # The hub took the route for activity, before it said that the server is ready.
        times = {"started": stamp(room.now - 5.0), "last_activity": stamp(room.now - 1.0)}
        hub.users[name][""] |= times
    hub.broken = (503, "Service Unavailable")
    room.service.turn()
    # As a hub needs that starts again on a busy machine.
    room.now += 90.0
    room.service.turn()
    hub.broken = None
    room.turns(2)
    room.now = room.start + GRACE + 60.0
    room.service.turn()
    assert set(asked) <= set(hub.deletes)


def test_a_start_whose_user_cannot_be_read_is_given_up_and_casts_no_doubt_on_the_next(
    hub: FakeHub, room: Room
) -> None:
    room.service.turn()
    for _, _, future in room.service._starts.running.values():
        future.result(timeout=10)
    name = min(hub.posts)
    can_read = room.service._hub.user

    def refuse(asked: str) -> HubUser | None:
        if asked == name:
            raise HubError("no answer")
        return can_read(asked)

    with mock.patch.object(room.service._hub, "user", refuse):
        room.service.turn()
        assert name in room.service._starts.running
        room.now += 70.0
        room.turns(2)
        assert name not in room.service._starts.running
    assert not room.service._starts._unconfirmed


def test_a_hub_that_does_not_answer_holds_the_loop_up_for_one_server_a_turn_and_then_for_another(
    hub: FakeHub, room: Room
) -> None:
    room.service.turn()
    starts = room.service._starts
    for _, _, future in starts.running.values():
        future.result(timeout=10)
    names = sorted(starts.running)
    assert len(names) >= 2
    seconds = 0.0
    asked: list[str] = []

    def hang(name: str) -> HubUser | None:
        nonlocal seconds
        seconds += 30.0
        asked.append(name)
        raise HubError("no answer")

    with (
        mock.patch.object(room.service._hub, "user", hang),
        mock.patch("roost.seating.starts.monotonic", side_effect=lambda: seconds),
    ):
        starts.collect(Looks())
        assert seconds == 30.0
        starts.collect(Looks())
    assert len(set(asked)) == 2
    assert sorted(starts.running) == names


@pytest.mark.parametrize(("gap", "is_known"), [(5.0, True), (30.0, False)])
def test_a_hub_that_is_stopped_calls_servers_ready_that_the_next_one_gives_their_routes(
    gap: float, is_known: bool, hub: FakeHub, room: Room
) -> None:
    room.service.turn()
    for _, _, future in room.service._starts.running.values():
        future.result(timeout=10)
    asked = sorted(hub.posts)
    # Nobody listens.
    room.service._hub._url = "http://127.0.0.1:1/hub/api"
    for _ in range(6):
        room.service.turn()
        room.now += gap
    room.service._hub._url = hub.url
    for name in asked:
        hub.use(name, room.now - 1.0)
    room.service.turn()
    room.now = max(room.start, room.now) + GRACE + 60.0
    room.service.turn()
    # If seating looked too seldom, somebody may have used them.
    assert (set(asked) <= set(hub.deletes)) == is_known


@pytest.mark.parametrize("proxy", [False, True], ids=["nobody listens", "a proxy says so"])
def test_starts_that_a_hub_fails_while_it_is_stopped_are_tried_again(
    proxy: bool, hub: FakeHub, room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    asked = fail_starts(hub, room)
    if proxy:
        hub.broken = (503, "Service Unavailable")
    else:
        room.service._hub._url = "http://127.0.0.1:1/hub/api"
    room.now += 1.0
    room.service.turn()
    hub.refuses = {}
    hub.broken = None
    room.service._hub._url = hub.url
    room.now += 4.0
    room.turns(4)
    assert seated(hub) == set(PEOPLE)
    assert "did not start" not in caplog.text
    assert caplog.text.count("starts isn't known: 500 Internal Server Error") == asked


def test_failures_count_though_the_next_look_is_not_answered(hub: FakeHub, room: Room) -> None:
    failed = fail_starts(hub, room)
    # The hub is there, and the token can't be read for a moment.
    token = room.folder / "token"
    token.rename(room.folder / "away")
    for _ in range(3):
        room.now += 4.0
        room.service.turn()
    (room.folder / "away").rename(token)
    room.now += 4.0
    room.service.turn()
    assert room.service.memory.pace.failed_spawns == failed
    assert room.service.memory.pace.paused_until > room.now
    assert len(hub.posts) == failed


def test_after_four_failures_nobody_is_tried_until_somebodys_start_succeeds(
    hub: FakeHub, room: Room
) -> None:
    hub.users |= {f"more{number}": {} for number in range(10)}
    hub.groups["bio101"] += [f"more{number}" for number in range(10)]
    hub.fails = dict.fromkeys(hub.users, "Spawn failed: exceeded quota: pods")
    room.start += 600
    room.book()
    room.restart()
    room.now = room.start - 250.0
    for _ in range(3):
        room.turn()
        room.now += FAILURE_PAUSE_SECONDS / 2 + 1.0
        room.restart()
        room.turn()
    room.now = room.start + 290.0
    room.turn()
    # A hub ends itself at the fifth failure in a row.
    assert len(hub.posts) == 4
    assert "4 starts in a row failed: nobody is seated until" in room.said()
    # Somebody's own start succeeds, and the hub counts anew.
    hub.users["tom"] = server(room.now - 1.0, {})
    room.service.memory.pace.failed_at = room.now - 60.0
    room.service.memory.pace.paused_until = room.now
    room.turn()
    assert len(hub.posts) > 4


@pytest.mark.parametrize("refused", [("GET", "/users/bob"), ("DELETE", "/users/bob/server")])
def test_a_server_that_can_not_be_stopped_keeps_none_of_the_others(
    refused: tuple[str, str], hub: FakeHub, room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    room.turns(2)
    hub.broken_paths[refused] = (500, "Internal Server Error")
    room.after_grace()
    room.turn()
    assert sorted(hub.deletes) == ["ada", "cyd", "dan", "eve"]
    assert "the servers of bob could not be stopped; bob: " in caplog.text
    is_ready, said = room.service.readiness()
    assert is_ready
    assert "servers that could not be stopped: 1; the log says whose" in said
    assert not names_in(said)
    hub.broken_paths = {}
    room.turn()
    assert sorted(hub.deletes) == PEOPLE
    assert "could not be stopped" not in room.said()


def test_servers_are_stopped_some_at_once_and_keep_no_turn_waiting(
    hub: FakeHub, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = [f"kim{number:02}" for number in range(12)]
    hub.users |= {name: {} for name in crowd}
    hub.groups["bio101"] = crowd
    room.turns(4)
    assert seated(hub) == set(crowd)
    room.after_grace()
    # As if the first eight took too long: nobody of another class waits for the rest.
    monkeypatch.setattr(stops, "_STOPPING_SECONDS", 0.0)
    hub.stops_together = threading.Barrier(8)
    assert room.service.turn() == 1.0
    assert sorted(hub.deletes) == crowd[:8]
    hub.stops_together = threading.Barrier(4)
    assert room.service.turn() > 1.0
    assert sorted(hub.deletes) == crowd


@pytest.mark.parametrize("broken", [(403, "Forbidden"), (500, "Internal Server Error")])
def test_a_group_that_can_not_be_read_keeps_no_other_booking(
    broken: tuple[int, str], hub: FakeHub, room: Room
) -> None:
    room.book(users=["tom"])
    hub.broken_paths["GET", "/groups/bio101"] = broken
    room.turns(2)
    assert seated(hub) == {"tom"}
    assert room.service.readiness()[0]
    words = "lacks read:groups" if broken[0] == 403 else "can't be read now"
    assert words in room.said()


def test_the_next_class_is_seated_while_the_grace_of_the_last_one_lasts(
    hub: FakeHub, room: Room
) -> None:
    at = datetime.fromtimestamp(room.start, UTC)
    room.book(start=f"{at.minute} {at.hour} * * *")
    room.restart(grace=86_400.0)
    room.turns(3)
    assert seated(hub) == set(PEOPLE)
    # Who comes late is seated, too, whatever other grace lasts.
    room.book(start="* * * * *", group=None, users=["tom"])
    room.turns(3)
    assert "tom" in seated(hub)


def test_who_was_stopped_after_a_short_grace_is_not_started_again(hub: FakeHub, room: Room) -> None:
    room.restart(grace=60.0)
    room.turns(2)
    room.now = room.start + 61.0
    room.turns(4)
    assert sorted(hub.deletes) == PEOPLE
    assert sorted(hub.posts) == PEOPLE


@pytest.mark.parametrize("words", ["failed", "broke off"])
def test_a_server_that_its_user_started_after_ours_came_to_nothing_is_theirs(
    words: str, hub: FakeHub, room: Room
) -> None:
    room.book(group=None, users=["bob"])
    if words == "failed":
        hub.fails["bob"] = "Spawn failed: no room"
    else:
        hub.refuses["bob"] = (503, "Service Unavailable")
    room.turns(4)
    assert seated(hub) == set()
    # The hub takes the options that it stored, seating's mark among them, for one without any.
    hub.users["bob"] = server(room.now + 2.0, hub.options["bob"])
    asked = hub.options["bob"][MARK_KEY]
    asked["asked"] = room.now - 60.0
    room.service.memory.ended["bob"] = room.now - 50.0
    room.turn()
    assert "1 by themselves" in room.said()
    room.after_grace()
    room.turn()
    assert hub.deletes == []


def test_bookings_count_only_where_the_values_let_them(hub: FakeHub, room: Room) -> None:
    entry = yaml.safe_load((room.folder / "events.yaml").read_text())[0]
    of_values = {**entry, "name": "of-values", "group": None, "users": ["tom"]}
    room.release(booked=[of_values], enabled=False)
    room.turns(2)
    assert seated(hub) == set()
    room.release(booked=[of_values], configMaps=False)
    room.turns(2)
    assert seated(hub) == {"tom"}
    room.release(booked=[of_values])
    room.turns(3)
    assert seated(hub) == {*PEOPLE, "tom"}


def test_a_start_that_raises_ends_neither_the_service_nor_other_starts(
    hub: FakeHub, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Hub.start

    def broken(self: Hub, name: str, options: dict[str, object]) -> Outcome:
        if name == "bob":
            raise TypeError("a shape that nobody expected")
        return start(self, name, options)

    monkeypatch.setattr(Hub, "start", broken)
    room.turns(4)
    assert seated(hub) == set(PEOPLE) - {"bob"}
