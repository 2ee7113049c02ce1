"""Hubs come and go in one process of controllers, and no error of one touches another."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest

from roost.controllers import served_hubs
from roost.controllers.hub_settings import HubSettings, read_hub_settings
from roost.controllers.runtime.metrics import Metrics
from roost.controllers.served_hubs import ServedHubs, Surroundings
from tests.builders import Object, merged
from tests.harness.waiting import wait_until
from tests.unit.controllers.test_served_hubs import CENTRAL, document

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL = ("alpha", "evil", "physics")


class Feed:
    """Documents without a cluster."""

    is_listed = True

    def __init__(self, _client: object, _identity: object, _key: str, *, on_change: Any, on_error: object) -> None:
        assert on_error
        self.texts: dict[str, bytes] = {}
        self._on_change = on_change

    def start(self, _stop: threading.Event) -> None:
        """Nothing to watch."""

    def documents(self) -> dict[str, bytes]:
        return dict(sorted(self.texts.items()))

    def put(self, namespace: str, text: bytes) -> None:
        self.texts[namespace] = text
        self._on_change()


class FakeHub:
    """Counts its starts."""

    made: list[FakeHub]
    # How many starts of the hub in `evil` fail.
    failing_starts = 0

    def __init__(self, hub: HubSettings, _shared: object) -> None:
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
