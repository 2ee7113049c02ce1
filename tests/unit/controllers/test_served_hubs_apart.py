"""Hubs come and go in one process of controllers, and no error of one touches another."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest

from roost.controllers import served_hubs
from roost.controllers.hub_settings import HubSettings, read_hub_settings
from roost.controllers.runtime.budget import WINDOW_SECONDS, WRITES_PER_MINUTE
from roost.controllers.runtime.fair_shares import WRITES_PER_MINUTE_OF_ALL, FairShares
from roost.controllers.runtime.metrics import Metrics
from roost.controllers.served_hubs import Budgets, ServedHubs, Surroundings
from roost_core.kube.hub_feed import CHANGE_SECONDS, DocumentPace
from tests.builders import Object, merged
from tests.harness.waiting import wait_until
from tests.unit.controllers.test_served_hubs import CENTRAL, document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ALL = ("alpha", "evil", "physics")


class Feed:
    """Documents without a cluster."""

    is_listed = True

    def __init__(self, _client: object, _identity: object, _key: str, *, on_change: Any, on_error: object) -> None:
        assert on_error
        self.texts: dict[str, bytes] = {}
        self.now = 0.0
        self._pace = DocumentPace(lambda: self.now)
        self._on_change = on_change

    def start(self, _stop: threading.Event) -> None:
        """Nothing to watch."""

    def paced_documents(self) -> Mapping[str, bytes]:
        return self._pace.take_in(dict(sorted(self.texts.items())))

    @property
    def is_due(self) -> bool:
        return self._pace.is_due

    def put(self, namespace: str, text: bytes, *, after_seconds: float = CHANGE_SECONDS) -> None:
        self.now += after_seconds
        self.texts[namespace] = text
        self._on_change()


class FakeHub:
    """Counts its starts."""

    made: list[FakeHub]
    # How many starts of the hub in `evil` fail.
    failing_starts = 0

    def __init__(self, hub: HubSettings, _shared: object, budgets: Budgets) -> None:
        self.budgets = budgets
        self.namespace = hub.settings.namespace
        self.name, self.metrics, self.is_leader = hub.hub, Metrics("test", of_process=False), False
        self.evictions = hub.settings.evictions_per_minute
        self.starts, self.stopped = 0, False
        FakeHub.made.append(self)

    def start(self) -> None:
        self.starts += 1
        if self.namespace == "evil" and FakeHub.failing_starts:
            FakeHub.failing_starts -= 1
            raise RuntimeError("can't start new thread")

    def stop(self) -> None:
        self.stopped = True

    def wait_released(self, _seconds: float) -> None:
        """It never had the Lease."""


class Running:
    """Hubs that follow a fake feed."""

    def __init__(self) -> None:
        self.metrics = Metrics("test")
        shared: Any = type("Shared", (), {})()
        shared.client, shared.central, shared.metrics = None, CENTRAL, self.metrics
        shared.scheduler_configuration, shared.minor, shared.wake = None, 37, lambda: None
        self.now = 0.0
        shared.writes = FairShares(WRITES_PER_MINUTE_OF_ALL, lambda: self.now)
        shared.evictions = FairShares(20, lambda: self.now)
        self.shared = shared
        self.hubs = ServedHubs(cast("Surroundings", shared))
        self.feed = cast("Feed", self.hubs._feed)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.hubs.run, args=(self.stop,))
        self.thread.start()

    @staticmethod
    def live() -> dict[str, FakeHub]:
        return {hub.namespace: hub for hub in FakeHub.made if not hub.stopped and hub.starts}

    def refused(self, namespace: str) -> float:
        found = self.metrics.registry.get_sample_value(
            "roost_controllers_hub_settings_refused_total", {"hub": namespace}
        )
        return found or 0.0


def text_of(namespace: str, evictions: int = 1) -> bytes:
    changes: Object = {"namespace": namespace, "placeholderMover": {"evictionsPerMinute": evictions}}
    return json.dumps(merged(document(), changes)).encode()


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setattr(served_hubs, "HubFeed", Feed)
    monkeypatch.setattr(served_hubs, "ServedHub", FakeHub)
    monkeypatch.setattr(served_hubs, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(FakeHub, "made", [], raising=False)
    monkeypatch.setattr(FakeHub, "failing_starts", 0)
    found = Running()
    yield found
    found.stop.set()
    found.thread.join()


def test_no_error_of_one_hubs_document_touches_the_others(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(text: bytes, namespace: str, *others: Any) -> HubSettings:
        if text == b"odd":
            raise TypeError("unhashable type")
        return read_hub_settings(text, namespace, *others)

    monkeypatch.setattr(served_hubs, "read_hub_settings", faulty)
    for namespace in ALL:
        running.feed.put(namespace, text_of(namespace))
    wait_until(lambda: len(running.live()) == 3, 10, "three hubs")
    before, moved = running.live()["evil"], {"alpha": 7, "evil": 1, "physics": 7}
    running.feed.put("evil", b"odd")
    for namespace in ("alpha", "physics"):
        running.feed.put(namespace, text_of(namespace, evictions=7))
    wait_until(
        lambda: {name: hub.evictions for name, hub in running.live().items()} == moved, 10, "the others' new settings"
    )
    assert running.live()["evil"] is before
    assert running.refused("evil") == 1
    assert {hub.starts for hub in FakeHub.made} == {1}


def test_a_hub_that_could_not_start_is_made_anew(running: Running) -> None:
    FakeHub.failing_starts = 2
    for namespace in ALL:
        running.feed.put(namespace, text_of(namespace))
    wait_until(lambda: len(running.live()) == 3, 10, "three hubs")
    assert [hub.stopped for hub in FakeHub.made if hub.namespace == "evil"] == [True, True, False]
    assert {hub.starts for hub in FakeHub.made} == {1}
    assert len([hub for hub in FakeHub.made if hub.namespace != "evil"]) == 2


def test_who_writes_its_document_again_and_again_gets_no_new_budgets(running: Running) -> None:
    names = (*ALL, "maths", "zoology")
    for namespace in names:
        running.feed.put(namespace, text_of(namespace))
    wait_until(lambda: len(running.live()) == 5, 10, "five hubs")
    running.shared.writes.divide([hub.budgets.writes for hub in running.live().values()], 5)
    taken = 0
    for evictions in range(2, 8):
        evil = running.live()["evil"].budgets.writes
        while evil.take():
            taken += 1
        running.feed.put("evil", text_of("evil", evictions))
        wait_until(lambda wanted=evictions: running.live()["evil"].evictions == wanted, 10, "the new document")  # type: ignore[misc]
    assert taken == WRITES_PER_MINUTE
    assert running.live()["evil"].budgets.writes.rank[0] == WRITES_PER_MINUTE
    assert running.live()["alpha"].budgets.writes.left > 0


def test_a_hub_that_goes_and_comes_back_has_what_it_had_for_a_minute(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(served_hubs, "time", type("Time", (), {"monotonic": staticmethod(lambda: now)}))

    def goes() -> None:
        running.feed.texts.clear()
        running.feed.put("other", text_of("other"))
        wait_until(lambda: "evil" not in running.live(), 10, "the hub to go")

    def comes() -> Budgets:
        running.feed.put("evil", text_of("evil"))
        wait_until(lambda: "evil" in running.live(), 10, "the hub to come")
        return running.live()["evil"].budgets

    first = comes()
    # It was there for long: what counts is when it went.
    now = 1000.0
    goes()
    now += WINDOW_SECONDS
    assert comes() is first
    goes()
    now += WINDOW_SECONDS + 1
    running.feed.put("another", text_of("another"))
    wait_until(lambda: "another" in running.live(), 10, "another hub")
    assert comes() is not first


def test_a_hubs_turn_has_ended_only_after_its_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_hubs, "TURN_END_SECONDS", 0.01)
    seen: list[bool] = []

    class Loop:
        def safe_turn(self) -> float:
            seen.append(hub._has_ended())
            return 1.0

    hub: Any = object.__new__(served_hubs.ServedHub)
    hub._in_turn, hub._evictions_per_minute, hub._loop = threading.Lock(), 7, Loop()
    hub._leadership = type("Leadership", (), {"is_leader": True})
    evictions = FairShares(20, lambda: 0.0).share(5)
    hub.budgets = Budgets(evictions, evictions)
    assert hub.turn() == 1.0
    assert seen == [False]
    assert hub._has_ended()
    assert evictions.per_minute == 7, "as this document says"


def test_a_document_that_is_written_again_and_again_makes_few_hubs(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_hubs, "LOOK_SECONDS", 0.01)
    for evictions in range(1, 31):
        running.feed.put("evil", text_of("evil", evictions), after_seconds=0.1)
        running.feed.put(f"hub-{evictions}", text_of(f"hub-{evictions}"), after_seconds=0.0)
        wait_until(lambda wanted=evictions: f"hub-{wanted}" in running.live(), 10, "another hub, at once")  # type: ignore[misc]
    assert [hub.evictions for hub in FakeHub.made if hub.namespace == "evil"] == [1]
    running.feed.now += CHANGE_SECONDS
    wait_until(lambda: running.live()["evil"].evictions == 30, 10, "the newest document")
    assert [hub.evictions for hub in FakeHub.made if hub.namespace == "evil"] == [1, 30]
    running.feed.put("evil", text_of("evil", 31), after_seconds=0.1)
    del running.feed.texts["evil"]
    running.feed.put("physics", text_of("physics"), after_seconds=0.1)
    wait_until(lambda: "evil" not in running.live(), 10, "the hub to go, at once")
