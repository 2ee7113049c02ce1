import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from roost.controllers.contract.actions import (
    Action,
    ChangeNode,
    CreatePod,
    DeletePod,
    Done,
    EvictPod,
    Notice,
    Outcome,
    PlanGauge,
    Planned,
)
from roost.controllers.contract.planner import Controller, Planner
from roost.controllers.contract.snapshot import Moment, Snapshot
from roost.controllers.controllers_settings import load_settings, parse_settings
from roost.controllers.runtime.apply import Applier
from roost.controllers.runtime.budget import MinuteBudget
from roost.controllers.runtime.events import REPEAT_SECONDS, EventWriter
from roost.controllers.runtime.loop import (
    CYCLE_SECONDS,
    RESYNC_SECONDS,
    SILENT_SECONDS,
    UNFIT_SECONDS,
    Loop,
    show_plan,
)
from roost.controllers.runtime.metrics import ControllersMetrics
from roost_core.kube.client import ApiError, ClusterError
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node, read_node
from roost_core.release.reader import SettingsError


class FakeClient:
    """Notes every request; `answer` may raise for one."""

    def __init__(
        self, answer: Callable[[str, str], JSONObject | None] = lambda _verb, _path: None
    ) -> None:
        self.requests: list[tuple[str, str, JSONObject | None]] = []
        self._answer = answer

    def _say(self, verb: str, path: str, body: JSONObject | None = None) -> JSONObject:
        self.requests.append((verb, path, body))
        return self._answer(verb, path) or {}

    def get(self, path: str, _query: object = None) -> JSONObject:
        return self._say("GET", path)

    def create(self, path: str, body: JSONObject) -> JSONObject:
        return self._say("POST", path, body)

    def merge(self, path: str, body: JSONObject, _manager: str) -> JSONObject:
        return self._say("PATCH", path, body)

    def delete(self, path: str, uid: str) -> None:
        self._say("DELETE", path, {"uid": uid})


class World:
    """An applier and a loop over a fake API server and a clock that a test moves."""

    def __init__(
        self, client: FakeClient | None = None, *, writes: int = 100, evictions: int = 3
    ) -> None:
        self.now = 0.0
        self.leads = True
        self.synced = True
        self.followed = 0
        # What is done after each action.
        self.on_done: Callable[[], None] = lambda: None
        self.client = client or FakeClient()
        self.writes = MinuteBudget(writes, self.clock)
        self.evictions = MinuteBudget(evictions, self.clock)
        self.metrics = ControllersMetrics(
            "test", [PlanGauge("placeholders", "Placeholders.", ("set",))]
        )
        api: Any = self.client
        self.applier = Applier(
            api,
            "hub",
            writes=self.writes,
            evictions=self.evictions,
            events=EventWriter(api, "me", self.clock),
            may_write=lambda: self.leads,
            on_eviction=self.metrics.evictions.inc,
            on_done=self._done,
            clock=self.clock,
        )

    def clock(self) -> float:
        return self.now

    def _done(self) -> None:
        self.on_done()

    def _follow(self) -> None:
        self.followed += 1

    def loop(self, *planners: Planner[Any], **more: Any) -> Loop:
        """more: arguments of Loop in place of what is made here."""
        arguments: dict[str, Any] = {
            "snapshot": lambda: Snapshot("hub", "hub"),
            "is_leader": lambda: self.leads,
            "is_current": lambda: self.synced,
            "follow": self._follow,
            "wall": self.clock,
            "steady": self.clock,
            **more,
        }
        return Loop(planners, arguments.pop("snapshot"), self.applier, self.metrics, **arguments)


def planner_of(
    name: str,
    plan: Callable[[Snapshot, int, Moment], Planned[int]],
    note: Callable[[Sequence[Done]], object] = len,
) -> Planner[int]:
    """A planner without settings."""

    def heed(memory: int, done: Sequence[Done], _settings: bool, _now: Moment) -> int:
        note(done)
        return memory

    controller: Controller[bool, int] = Controller(
        name=name,
        read=lambda _release: True,
        plan=lambda snapshot, memory, _settings, now: plan(snapshot, memory, now),
        empty=0,
        note=heed,
    )
    return Planner(controller, True)


NOTICE = Notice(kind="Node", namespace="", name="n", uid="u", reason="Pulled", message="Done.")


def evict(name: str) -> EvictPod:
    return EvictPod(namespace="hub", name=name, uid=f"uid-{name}", why="a test")


def delete(name: str) -> DeletePod:
    return DeletePod(namespace="hub", name=name, uid="u", why="")


def asks_for(*actions: Action) -> Planner[int]:
    def plan(_snapshot: Snapshot, memory: int, _now: Moment) -> Planned[int]:
        return Planned(
            actions=actions,
            memory=memory + 1,
            gauges={"placeholders": {("default",): float(memory)}},
        )

    return planner_of("asker", plan)


def refuse(status: int, message: str = "no") -> Callable[[str, str], JSONObject | None]:
    def answer(_verb: str, _path: str) -> JSONObject:
        raise ApiError(status, message)

    return answer


def test_evictions_beyond_the_budget_come_later_and_are_bound_to_the_pod_of_the_plan() -> None:
    world = World(evictions=3)
    loop = world.loop(asks_for(*(evict(f"placeholder-{index}") for index in range(5))))
    # A new leader spends no evictions that its predecessor may have made.
    for world.now, count in ((0.0, 0), (60.5, 3), (90.0, 3), (121.0, 6)):
        assert loop.turn() <= RESYNC_SECONDS
        assert len(world.client.requests) == count
    verb, path, body = world.client.requests[0]
    assert (verb, path) == ("POST", "/api/v1/namespaces/hub/pods/placeholder-0/eviction")
    assert body is not None
    assert body["deleteOptions"] == {"preconditions": {"uid": "uid-placeholder-0"}}
    # One budget doesn't wait for the other.
    world = World(writes=2, evictions=1)
    world.evictions.spend_all()
    world.writes.take()
    world.now = 59.0
    done = world.applier.apply([evict("placeholder"), delete("p0"), delete("p1")])
    assert [one.outcome for one in done] == [Outcome.HELD_BACK, Outcome.DONE, Outcome.HELD_BACK]
    assert 0.9 < world.applier.seconds_until_next() < 1.1


@pytest.mark.parametrize(
    ("action", "status", "message", "outcome"),
    [
        (evict("placeholder"), 429, "PodDisruptionBudget", Outcome.REFUSED),
        (evict("placeholder"), 404, "", Outcome.GONE),
        (evict("placeholder"), 409, "uid", Outcome.GONE),
        (evict("placeholder"), 403, "forbidden", Outcome.FAILED),
        (CreatePod(body={"metadata": {"name": "p"}}, why=""), 409, "exists", Outcome.DONE),
        (delete("p"), 409, "uid", Outcome.GONE),
        (
            ChangeNode(node="n", uid="u", set_labels={"a": "b"}, why=""),
            422,
            "metadata.uid: Invalid",
            Outcome.GONE,
        ),
        (
            ChangeNode(node="n", uid="u", set_labels={"a": "b"}, why=""),
            422,
            "labels: Invalid",
            Outcome.FAILED,
        ),
    ],
)
def test_what_the_server_says_decides_the_outcome(
    action: Action, status: int, message: str, outcome: Outcome
) -> None:
    world = World(FakeClient(refuse(status, message)))
    assert world.applier.apply([action]) == [Done(action, outcome)]


def test_a_leader_that_lost_its_lease_stops_in_the_middle_of_a_plan() -> None:
    def lose_after_two(_verb: str, _path: str) -> None:
        world.leads = len(world.client.requests) < 2

    world = World(FakeClient(lose_after_two))
    world.loop().turn()
    assert "roost_controllers_leader 1.0" in world.metrics.text().decode()
    done = world.applier.apply([delete(f"p{index}") for index in range(4)])
    assert [one.outcome for one in done] == [
        Outcome.DONE,
        Outcome.DONE,
        Outcome.HELD_BACK,
        Outcome.HELD_BACK,
    ]
    assert "roost_controllers_leader 0.0" in world.metrics.text().decode(), (
        "shown without another turn"
    )
    assert len(world.client.requests) == 2


def test_a_conflicting_taint_write_is_read_and_tried_anew() -> None:
    versions, tries = iter("123"), list[str]()
    others = {"key": "other", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}

    def answer(verb: str, _path: str) -> JSONObject:
        if verb == "GET":
            metadata = {"uid": "u", "resourceVersion": next(versions)}
            return {"metadata": metadata, "spec": {"taints": [others, {"key": "mine"}]}}
        tries.append(verb)
        if len(tries) < 3:
            raise ApiError(409, "conflict")
        return {}

    world = World(FakeClient(answer))
    action = ChangeNode(node="n", uid="u", remove_taints=frozenset({"mine"}), why="")
    assert world.applier.apply([action]) == [Done(action, Outcome.DONE)]
    body = world.client.requests[-1][2]
    assert body is not None
    assert body["metadata"]["resourceVersion"] == "3"
    assert body["spec"]["taints"] == [others], "another's taint must stay as it was"


def test_a_notice_is_told_once_in_ten_minutes_and_a_failed_one_as_soon_as_it_is_taken() -> None:
    refused = [ApiError(500, "etcd"), ClusterError("unreachable")]

    def answer(_verb: str, _path: str) -> None:
        if refused:
            raise refused.pop()

    world = World(FakeClient(answer))
    outcomes = []
    for second in range(0, 30, 5):
        world.now = float(second)
        outcomes.append(world.applier.apply([NOTICE])[0].outcome)
    failed, held_back, done = Outcome.FAILED, Outcome.HELD_BACK, Outcome.DONE
    assert outcomes == [failed, failed, held_back, done, done, done]
    assert [request[:2] for request in world.client.requests] == [
        ("POST", "/api/v1/namespaces/default/events")
    ] * 3
    del world.client.requests[:2]
    world.now += REPEAT_SECONDS
    world.applier.apply([NOTICE])
    verb, path, body = world.client.requests[1]
    assert (verb, path) == (
        "PATCH",
        f"/api/v1/namespaces/default/events/{created_event(world)['metadata']['name']}",
    )
    assert body is not None
    assert body["count"] == 2
    # Two hubs tell of one node by Events of different names.
    names = set()
    for hub in ("hub.a", "hub.b"):
        world = World()
        api: Any = world.client
        EventWriter(api, "me", world.clock, hub=hub).write(NOTICE)
        names.add(created_event(world)["metadata"]["name"])
    assert len(names) == 2


def created_event(world: World) -> JSONObject:
    (body,) = [
        body for verb, _, body in world.client.requests if verb == "POST" and body is not None
    ]
    return body


@pytest.mark.parametrize("status", [404, 409])
def test_an_event_that_expired_is_written_anew_and_one_that_is_there_is_not_read(
    status: int,
) -> None:
    refused = "PATCH" if status == 404 else "POST"

    def answer(verb: str, _path: str) -> JSONObject | None:
        if verb == refused:
            raise ApiError(status, "")
        return None

    world = World(FakeClient(answer))
    for turn in range(2):
        world.now = turn * REPEAT_SECONDS
        assert world.applier.apply([NOTICE])[0].outcome is Outcome.DONE
    verbs = [verb for verb, _, _ in world.client.requests]
    assert verbs == (["POST", "PATCH", "POST"] if status == 404 else ["POST", "PATCH", "PATCH"])


def test_an_event_that_is_written_anew_counts_from_one_again() -> None:
    is_gone = True

    def answer(verb: str, _path: str) -> JSONObject | None:
        if verb == "PATCH" and is_gone:
            raise ApiError(404, "")
        return None

    world = World(FakeClient(answer))
    for turn in range(3):
        is_gone = turn < 2
        world.now = turn * REPEAT_SECONDS
        world.applier.apply([NOTICE])
    written = [(verb, body["count"]) for verb, _, body in world.client.requests if body is not None]
    assert written == [("POST", 1), ("PATCH", 2), ("POST", 1), ("PATCH", 2)]


def test_a_fault_in_one_plan_stops_no_other() -> None:
    def broken(_snapshot: Snapshot, _memory: int, _now: Moment) -> Planned[int]:
        raise ValueError("secret of a pod")

    world = World()
    assert world.loop(planner_of("broken", broken), asks_for(delete("p"))).turn() <= RESYNC_SECONDS
    assert [verb for verb, _, _ in world.client.requests] == ["DELETE"]
    assert (
        'roost_controllers_plan_failures_total{controller="broken"} 1.0'
        in world.metrics.text().decode()
    )


def test_nothing_is_planned_by_a_follower_or_before_the_watches_have_listed() -> None:
    world = World()
    loop = world.loop(asks_for(delete("p")))
    world.leads = False
    loop.turn()
    world.leads, world.synced = True, False
    loop.turn()
    assert not world.client.requests
    assert world.followed == 2, "changes pile up"
    world.synced = True
    loop.turn()
    assert len(world.client.requests) == 1


def test_memory_is_lost_with_the_lease_and_findings_are_shown_by_the_leader_only() -> None:
    world = World()
    loop = world.loop(asks_for())
    loop.turn()
    loop.turn()
    for world.leads, shown in ((True, "2.0"), (False, ""), (True, "0.0")):
        loop.turn()
        text = world.metrics.text().decode()
        assert (
            f'roost_controllers_placeholders{{set="default"}} {shown}' in text
            if shown
            else "placeholders{" not in text
        )


def test_nodes_under_disk_pressure_are_shown_by_the_leader_only() -> None:
    pressed = {
        "spec": {"taints": [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]}
    }
    bodies = [
        {"metadata": {"name": "full", "uid": "1"}, **pressed},
        {"metadata": {"name": "well", "uid": "2"}},
    ]
    full, well = map(read_node, bodies)
    seen: dict[str, Node] = {}
    world = World()
    loop = world.loop(snapshot=lambda: Snapshot("hub", "hub", nodes=dict(seen)))
    metric = "roost_controllers_nodes_under_disk_pressure{"
    line = f'{metric}node="full"}} 1.0'
    for world.leads, nodes, shown in (
        (False, [full, well], []),
        (True, [full, well], [line]),
        (True, [well], []),
        (True, [full], [line]),
        (False, [full], []),
    ):
        seen.clear()
        seen |= {node.name: node for node in nodes}
        loop.turn()
        lines = world.metrics.text().decode().splitlines()
        assert [line for line in lines if line.startswith(metric)] == shown


def test_what_became_of_actions_is_told_to_their_planner() -> None:
    heard: list[Sequence[Done]] = []

    def plan(_snapshot: Snapshot, memory: int, _now: Moment) -> Planned[int]:
        return Planned(actions=[evict("placeholder")], memory=memory)

    world = World(FakeClient(refuse(429)))
    loop = world.loop(planner_of("mover", plan, heard.append))
    loop.turn()
    world.now = 61.0
    loop.turn()
    assert [[done.outcome for done in each] for each in heard] == [
        [Outcome.HELD_BACK],
        [Outcome.REFUSED],
    ]


def test_a_dry_run_says_each_action_in_a_line() -> None:
    idle = planner_of("idle", lambda _s, memory, _n: Planned(actions=(), memory=memory))
    text = show_plan(
        [asks_for(evict("placeholder-0")), idle], Snapshot("hub", "hub"), Moment(0.0, 0.0)
    )
    assert text == "asker: 1 action\n  evict hub/placeholder-0 (a test)\nidle: 0 actions\n"


def test_a_pod_is_made_as_the_controllers_own() -> None:
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "name": "hub-roost-controllers",
        "uid": "1",
    }
    world = World()
    world.applier._owner = lambda: account
    world.applier.apply([CreatePod(body={"metadata": {"name": "p"}}, why="")])
    owned = {"metadata": {"name": "p", "ownerReferences": [{**account, "controller": True}]}}
    assert world.client.requests == [("POST", "/api/v1/namespaces/hub/pods", owned)]


@pytest.mark.parametrize("text", ["", "[]", "{", "\xff"])
def test_a_settings_file_that_is_no_object_is_named_and_every_fault_of_one_that_is(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / "release.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(SettingsError) as caught:
        load_settings(path, None, 36)
    assert caught.value.faults[0].key == str(path)
    with pytest.raises(SettingsError):
        load_settings(tmp_path / "missing.json", None, 36)
    with pytest.raises(SettingsError) as caught:
        parse_settings({"version": 2, "release": "-", "namespace": "hub"}, None, 36)
    keys = {fault.key for fault in caught.value.faults}
    assert {"version", "release", "placeholderMover.evictionsPerMinute"} <= keys


def test_what_is_refused_is_asked_for_ever_more_seldom_and_holds_up_nothing_else() -> None:
    def refuse_one(_verb: str, path: str) -> None:
        if path.endswith("/refused"):
            raise ApiError(403, "forbidden")

    world = World(FakeClient(refuse_one))
    loop = world.loop(asks_for(delete("refused"), delete("fine")))
    for _ in range(600):
        loop.turn()
        world.now += 1.0
        world.writes = world.applier.writes = MinuteBudget(100, world.clock)
    asked = [path for _, path, _ in world.client.requests]
    # At 0, 5, 15, 35, 75, 155 and 315 s.
    assert asked.count("/api/v1/namespaces/hub/pods/refused") == 7
    assert asked.count("/api/v1/namespaces/hub/pods/fine") == 600


@pytest.mark.parametrize(
    "error",
    [ApiError(429, "too many requests"), ApiError(500, "etcd"), ClusterError("no answer in time")],
    ids=str,
)
def test_what_an_api_server_in_trouble_refuses_is_written_within_a_minute_after_it(
    error: ClusterError,
) -> None:
    """As the Lease may be renewed meanwhile, this leader asks on."""
    over_at = 0.0
    written_at: list[float] = []

    def refuse(_verb: str, _path: str) -> None:
        if world.now < over_at:
            raise error
        written_at.append(world.now)

    for over_at in (60.0, 160.0, 600.0):
        world = World(FakeClient(refuse))
        loop = world.loop(asks_for(delete("one")))
        written_at.clear()
        while not written_at and world.now < 2000.0:
            loop.turn()
            world.now += 1.0
        assert over_at <= written_at[0] <= over_at + 60.0
        # It is spared, all the same.
        assert len(world.client.requests) <= 5 + over_at / 40


def test_a_plan_that_takes_too_long_is_made_anew() -> None:
    def slow(_verb: str, _path: str) -> None:
        world.now += 40.0

    world = World(FakeClient(slow))
    outcomes = [
        one.outcome for one in world.applier.apply([delete(f"p{index}") for index in range(5)])
    ]
    assert outcomes == [Outcome.DONE] * 2 + [Outcome.HELD_BACK] * 3


def test_a_fault_outside_of_plans_does_not_end_the_loop() -> None:
    world = World()
    turns: list[None] = []
    stop = threading.Event()

    def broken() -> Snapshot:
        turns.append(None)
        if len(turns) == 2:
            stop.set()
        raise ValueError("secret")

    world.loop(asks_for(), snapshot=broken, steady=lambda: time.monotonic() * 100).run(stop)
    assert len(turns) == 2
    assert (
        'roost_controllers_plan_failures_total{controller="loop"} 2.0'
        in world.metrics.text().decode()
    )


class TestIsWorking:
    """What the Lease rests on: who hangs, or can't plan what the webhook relies on, gives it
    back.
    """

    @staticmethod
    def failing(name: str, fails: list[bool]) -> Planner[int]:
        def plan(_snapshot: Snapshot, memory: int, _now: Moment) -> Planned[int]:
            if fails[0]:
                raise RuntimeError("broken")
            return Planned(actions=[], memory=memory)

        return planner_of(name, plan)

    def test_a_loop_that_says_nothing_for_long_isnt_working_until_it_goes_on(self) -> None:
        world = World()
        loop = world.loop()
        assert loop.is_working
        world.now += SILENT_SECONDS + 1
        assert not loop.is_working
        loop.progressed()
        assert loop.is_working

    def test_plans_that_take_long_put_the_others_off_and_those_come_first_then(self) -> None:
        world, made, working = World(), list[str](), list[bool]()

        def slow(name: str) -> Planner[int]:
            def plan(_snapshot: Snapshot, memory: int, _now: Moment) -> Planned[int]:
                made.append(name)
                world.now += CYCLE_SECONDS * 0.75
                working.append(loop.is_working)
                return Planned(actions=(), memory=memory)

            return planner_of(name, plan)

        loop = world.loop(*map(slow, "abcdefg"))
        waits = [loop.turn() for _ in range(4)]
        # Twice within the time, and what has begun isn't broken off.
        assert made == list("abcdefga")
        assert waits[0] == 0.0
        assert 'plans_put_off_total{controller="c"} 3.0' in world.metrics.text().decode()
        assert all(working)

    def test_each_action_is_a_sign_of_life_however_long_all_of_them_take(self) -> None:
        seen: list[bool] = []

        def slow(_verb: str, _path: str) -> None:
            world.now += SILENT_SECONDS - 1
            seen.append(loop.is_working)

        world = World(FakeClient(slow))
        changes = [
            ChangeNode(node=name, uid=name, set_labels={"a": "b"}, why="a test") for name in "abc"
        ]
        loop = world.loop(asks_for(*changes))
        world.on_done = loop.progressed
        loop.turn()
        assert len(seen) >= 2
        assert all(seen)

    @pytest.mark.parametrize(("vital", "works"), [("gate", False), ("another", True)])
    def test_a_vital_plan_that_goes_on_failing_isnt_work_and_after_a_rest_it_is_tried_again(
        self, vital: str, works: bool
    ) -> None:
        world, fails = World(), [True]
        loop = world.loop(self.failing("gate", fails), vital=frozenset({vital}))
        loop.turn()
        assert loop.is_working
        world.now += SILENT_SECONDS + 1
        loop.progressed()
        loop.turn()
        assert loop.is_working is works
        world.now += UNFIT_SECONDS
        loop.progressed()
        assert loop.is_working
        fails[0] = False
        loop.turn()
        world.now += SILENT_SECONDS + 1
        loop.progressed()
        assert loop.is_working
