"""A ResourceQuota in the hub's namespace: everybody who was booked, or is learned, is created.

A pod is counted when it is created, so a placeholder that exists could refuse a user.
"""

import json
import time
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from roost_core.placement.headroom_history import History
from tests.harness.api import ApiError
from tests.harness.controlplane import CONTROLLERS, ControlPlane
from tests.harness.waiting import wait_until
from tests.judge.cases import Profile, user_pod
from tests.stack import Stack

pytestmark = pytest.mark.e2e

SOON_SECONDS = 60.0
CONFLICT = 409
PODS = 20
USERS = 15
PEOPLE = 30
SET = "hub-roost-placeholder-default"
LEARN = {"min": 0, "max": 200, "timeZone": "UTC"}


@pytest.fixture(scope="module")
def counting_plane() -> Iterator[ControlPlane]:
    """With the controller that keeps what quotas have used."""
    with ControlPlane(controllers=(*CONTROLLERS, "resourcequota-controller")) as cluster:
        yield cluster


def _values(replicas: int, *, learns: bool, books: bool) -> dict[str, Any]:
    entry = {
        "name": "default",
        "replicas": replicas,
        "learn": LEARN if learns else None,
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }
    events = {"enabled": True, "maxPeople": 500, "maxPlaceholders": 1000}
    return {
        "singleuser": {"image": {"name": "quay.io/jupyter/base", "tag": "1"}},
        "placeholders": [entry],
        **({"events": events} if books else {}),
    }


def _controllers(cluster: ControlPlane, namespace: str, values: dict[str, Any]) -> Stack:
    """The controllers alone: quotas count what exists, so nothing need run or be placed."""
    return Stack(
        cluster,
        namespace,
        values,
        controllers=True,
        webhook=False,
        scheduler=False,
        own_certificates=True,
    )


class _Hub:
    """The hub's namespace, its quota and its users."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self._api = cluster.api
        self._namespace = namespace
        self._core = f"/api/v1/namespaces/{namespace}"

    def set_quota(self, **hard: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "team", "namespace": self._namespace},
            "spec": {"hard": hard},
        }
        self._api.create(body, self._namespace)
        path = f"{self._core}/resourcequotas/team"
        wait_until(
            lambda: "used" in (self._api.get(path).get("status") or {}), SOON_SECONDS, "the quota"
        )

    def label(self, labels: dict[str, str]) -> None:
        path = f"/api/v1/namespaces/{self._namespace}"
        self._api.patch(path, {"metadata": {"labels": labels}})

    def book(self, people: int, name: str = "bookings") -> None:
        start = datetime.now(UTC) + timedelta(minutes=6)
        event = {
            "name": "lecture",
            "people": people,
            "start": start.strftime("%Y-%m-%dT%H:%M"),
            "timeZone": "UTC",
        }
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": self._namespace,
                "labels": {"roost.hub.jupyter.org/events": "hub"},
            },
            "data": {"events.yaml": json.dumps([event])},
        }
        self._api.create(body, self._namespace)

    def teach(self, people: int) -> None:
        """On each of the last 14 days so many came within the coming hour."""
        now = int(time.time() // 60)
        days = 15
        levels = array("i", [0] * (days * 1440))
        for day in range(1, days + 1):
            for minute in range(60):
                levels[min(len(levels) - 1, len(levels) - day * 1440 + 2 + minute)] = people
        text = History(now - days * 1440, levels).as_text()
        path = f"{self._core}/configmaps/hub-roost-headroom-history"
        self._api.patch(path, {"data": {"default": text}})

    def refused(self, count: int) -> list[str]:
        """Let so many users come at once; what the API server says to those whom it refuses."""
        refusals = []
        for number in range(count):
            body = user_pod(f"user-{number}", Profile(name="plain", cpu=0.1))
            body["metadata"]["namespace"] = self._namespace
            body["spec"].pop("priorityClassName", None)
            try:
                self._create_as_kubespawner_does(body)
            except ApiError as error:
                refusals.append(str(error))
        return refusals

    def _create_as_kubespawner_does(self, body: dict[str, Any]) -> None:
        """KubeSpawner asks again after a conflict, and gives up at any other answer.

        The API server answers "please apply your changes to the latest version and try again"
        when others' creations change the same quota at that moment: it isn't a refusal by quota.
        """
        tries = 5
        for attempt in range(tries):
            try:
                self._api.create(body, self._namespace)
            except ApiError as error:
                if error.status != CONFLICT or attempt == tries - 1:
                    raise
            else:
                return

    def wanted(self) -> int:
        """The StatefulSet's number."""
        path = f"/apis/apps/v1/namespaces/{self._namespace}/statefulsets/{SET}"
        replicas: int = self._api.get(path)["spec"].get("replicas", 1)
        return replicas

    def placeholders(self) -> int:
        pods = self._api.list(f"{self._core}/pods")
        return sum("placeholder" in pod["metadata"]["name"] for pod in pods)

    def said(self, reason: str) -> list[str]:
        events = self._api.list(f"{self._core}/events")
        return [event["message"] for event in events if event["reason"] == reason]


@pytest.mark.parametrize("how", ["booked", "learned", "said"])
def test_everybody_is_created_who_would_be_without_placeholders(
    counting_plane: ControlPlane, how: str
) -> None:
    namespace = counting_plane.create_namespace(f"quota-{how}")
    hub = _Hub(counting_plane, namespace)
    replicas = PEOPLE if how == "said" else 0
    values = _values(replicas, learns=how == "learned", books=how == "booked")
    with _controllers(counting_plane, namespace, values):
        hub.set_quota(pods=str(PODS))
        if how == "booked":
            hub.book(PEOPLE)
        elif how == "learned":
            hub.teach(PEOPLE)
        wait_until(
            lambda: bool(hub.said("HeadroomQuota")), SOON_SECONDS, "an Event about the quota"
        )
        wait_until(lambda: hub.wanted() == 0, SOON_SECONDS, "no placeholder")
        wait_until(lambda: hub.placeholders() == 0, SOON_SECONDS, "no placeholder")
        assert hub.refused(USERS) == []
        assert f"ResourceQuota team allows {PODS} pods" in hub.said("HeadroomQuota")[0]


def test_a_cut_goes_with_its_quota_though_other_controllers_made_it(
    counting_plane: ControlPlane,
) -> None:
    namespace = counting_plane.create_namespace("quota-gone")
    hub = _Hub(counting_plane, namespace)
    values = _values(3, learns=False, books=False)
    with _controllers(counting_plane, namespace, values) as stack:
        hub.set_quota(pods=str(PODS + 2))
        wait_until(lambda: hub.wanted() == 2, SOON_SECONDS, "what people leave")
        stack.controllers[0].process.kill()
        counting_plane.api.delete(f"/api/v1/namespaces/{namespace}/resourcequotas/team")
        stack.start_controllers().wait_leading()
        wait_until(lambda: hub.wanted() == 3, SOON_SECONDS, "the values' number again")


def test_the_quota_of_one_of_many_hubs_bounds_what_that_hub_books(
    counting_plane: ControlPlane,
) -> None:
    release = counting_plane.create_namespace("quota-release")
    hubs = [_Hub(counting_plane, counting_plane.create_namespace(f"quota-hub-{n}")) for n in "ab"]
    served = {"namespaceSelector": {"matchLabels": {"quota-hub": "yes"}}}
    values = {
        **_values(0, learns=False, books=True),
        "podClasses": {"user": {"match": served}, "build": {"match": served}},
    }
    for hub in hubs:
        hub.label({"quota-hub": "yes"})
    with _controllers(counting_plane, release, values):
        for hub in hubs:
            hub.book(PEOPLE, name="roost-events")
        wanted = _Hub(counting_plane, release).wanted
        wait_until(lambda: wanted() == 2 * PEOPLE, SOON_SECONDS, "placeholders for both hubs")
        hubs[0].set_quota(pods=str(PODS))
        wait_until(lambda: wanted() == PEOPLE + PODS, SOON_SECONDS, "fewer for the one hub")
        assert hubs[0].refused(PODS) == []
        wait_until(lambda: wanted() == PEOPLE, SOON_SECONDS, "none for the hub that is full")


def test_what_a_larger_quota_leaves_is_kept_and_goes_as_people_come(
    counting_plane: ControlPlane,
) -> None:
    namespace = counting_plane.create_namespace("quota-larger")
    hub = _Hub(counting_plane, namespace)
    values = _values(0, learns=False, books=True)
    with _controllers(counting_plane, namespace, values):
        hub.set_quota(pods="50")
        hub.book(PEOPLE)
        # A puller's pod may be there, too.
        wait_until(lambda: 17 <= hub.wanted() <= 20, SOON_SECONDS, "what people leave")
        wait_until(lambda: hub.placeholders() == hub.wanted(), SOON_SECONDS, "placeholders")
        assert hub.refused(PEOPLE) == []
