"""What a served hub may ask of the central release's controllers, and how its metrics are shown."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from generator.render.manifests import render
from generator.values.release import Release
from roost.controllers.cleanup import END_SECONDS, CleanupOptions, clean_up
from roost.controllers.hub_settings import read_hub_settings
from roost.controllers.runtime.metrics import Metrics
from roost.controllers.settings import parse_settings
from roost_core.kube.borrowed_account import TOKEN_SECONDS, connect_as
from roost_core.kube.client import ApiError, Client, ClusterError, connect
from roost_core.kube.leader_election import LEASE_SECONDS
from roost_core.placement.settings_reader import SettingsError
from tests.builders import Object, default_values, merged

CENTRAL = ("roost", "roost-system")


def document() -> Object:
    """controllers.json as a hub's release renders it."""
    central = {"release": CENTRAL[0], "namespace": CENTRAL[1], "controllers": True}
    values = merged(default_values(), {"hubs": {"central": central}})
    manifests: list[Any] = [one.body for one in render(values, Release("hub", "hub-a"))]
    (config_map,) = (one for one in manifests if one["kind"] == "ConfigMap" and one["metadata"]["name"] == "roost-hub")
    found: Object = json.loads(config_map["data"]["controllers.json"])
    return found


def test_a_hub_is_worked_for_as_its_own_account_and_under_its_own_lease() -> None:
    hub = read_hub_settings(json.dumps(document()).encode(), "hub-a", CENTRAL, None, 37)
    assert (hub.hub, hub.account, hub.lease) == ("hub.hub-a", "hub-roost-controllers", "hub-roost-controllers")
    assert "image-gate" in {planner.name for planner in hub.settings.planners}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"namespace": "hub-b"}, 'namespace: found "hub-b", expected hub-a'),
        ({"central": {"release": "other", "namespace": "a"}}, "expected roost in namespace roost-system"),
        ({"account": "../../kube-system/serviceaccounts/default"}, "expected a ServiceAccount's name"),
        ({"lease": "a/b"}, "expected a Lease's name"),
        ({"account": None}, "account: found nothing"),
        ({"events": {"calendarUrl": "https://169.254.169.254/"}}, "from inside its own network: book with ConfigMaps"),
        (
            {"placeholders": [{"windows": [{}] * 101}, {"windows": [{}] * 100}]},
            "placeholders[].windows: found 201, expected at most 200 windows in all sets",
        ),
        ({"placeholders": [{"windows": 5}]}, "placeholders[0].windows"),
        (
            {"gate": {"pullers": [{"images": ["a"] * 250}, {"images": ["a"] * 251}]}},
            "gate.pullers[].images: found 501, expected at most 500 images",
        ),
        ({"gate": {"pullers": [{}] * 101}}, "gate.pullers: found 101, expected at most 100 pullers"),
        ({"podClasses": {"user": {"match": {"namespaceSelector": {}}}}}, "for pods of its own namespace"),
        ({"podClasses": {f"c{number}": {"match": {}} for number in range(16)}}, "expected at most 16 classes"),
        ({"placeholderMover": {"evictionsPerMinute": "many"}}, "placeholderMover.evictionsPerMinute"),
    ],
)
def test_settings_that_reach_beyond_the_hub_are_refused(changes: Object, fault: str) -> None:
    text = json.dumps(merged(document(), changes)).encode()
    with pytest.raises(SettingsError) as refused:
        read_hub_settings(text, "hub-a", CENTRAL, None, 37)
    assert fault in str(refused.value)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"[" * 100_000, b"null"])
def test_what_is_not_a_json_object_is_refused(text: bytes) -> None:
    with pytest.raises(SettingsError, match="expected a JSON object"):
        read_hub_settings(text, "hub-a", CENTRAL, None, 37)


@pytest.mark.parametrize(
    ("hubs", "of_all"), [({"serve": True}, 20), ({"serve": True, "evictionsPerMinute": 7}, 7), ({}, 9)]
)
def test_a_central_release_has_a_total_of_evictions_and_any_other_what_is_its_own(hubs: Object, of_all: int) -> None:
    values = merged(default_values(), {"hubs": hubs, "placeholderMover": {"evictionsPerMinute": 9}})
    manifests: list[Any] = [one.body for one in render(values, Release("roost", "roost-system"))]
    (text,) = (one["data"]["controllers.json"] for one in manifests if "controllers.json" in (one.get("data") or {}))
    settings = parse_settings(json.loads(text), None, 37)
    assert (settings.evictions_per_minute, settings.evictions_per_minute_of_all) == (9, of_all)


def test_metrics_of_hubs_carry_their_name_and_each_family_is_there_once() -> None:
    own = Metrics("test")
    for hub, left in (("hub.a", 3), ("hub.b", 4)):
        metrics = Metrics("test", of_process=False)
        metrics.show_budgets({"writes": left}, 5)
        own.hubs = {**own.hubs, hub: metrics}
    own.show_budgets({"writes": 9}, 5)
    lines = own.text().decode().splitlines()
    assert 'roost_controllers_budget_left{budget="writes"} 9.0' in lines
    assert 'roost_controllers_budget_left{budget="writes",hub="hub.a"} 3.0' in lines
    assert 'roost_controllers_budget_left{budget="writes",hub="hub.b"} 4.0' in lines
    helps = [line.split()[2] for line in lines if line.startswith("# HELP")]
    assert len(helps) == len(set(helps))
    assert not [line for line in lines if line.startswith("process_") and "hub=" in line]


class Lender:
    """Gives tokens, and remembers for whom."""

    def __init__(self, api_client: Any) -> None:
        self.api_client = api_client
        self.asked: list[str] = []
        self.refuses = False

    def create(self, path: str, body: Object) -> Object:
        if self.refuses:
            raise ApiError(403, f"{path} is forbidden")
        assert body["spec"]["expirationSeconds"] == TOKEN_SECONDS
        self.asked.append(path)
        return {"status": {"token": f"token-{len(self.asked)}"}}


def test_a_borrowed_account_asks_for_a_token_and_for_the_next_one_in_time(tmp_path: Any) -> None:
    kubeconfig = tmp_path / "config"
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "of-the-lender"}}
    kubeconfig.write_text(
        json.dumps({"current-context": "c", "clusters": [cluster], "contexts": [context], "users": [user]})
    )
    lender = Lender(connect(kubeconfig).api_client)
    now = 0.0
    client = connect_as(cast("Client", lender), "hub-a", "hub-roost-controllers", clock=lambda: now)
    configuration = client.api_client.configuration
    assert configuration.host == "https://127.0.0.1:1"

    def sent() -> Any:
        return cast("Any", configuration.auth_settings()["BearerToken"])["value"]

    assert lender.asked == []
    assert [sent(), sent()] == ["Bearer token-1", "Bearer token-1"]
    assert lender.asked == ["/api/v1/namespaces/hub-a/serviceaccounts/hub-roost-controllers/token"]
    now = TOKEN_SECONDS / 2 + 1
    assert sent() == "Bearer token-2"
    now, lender.refuses = 2 * TOKEN_SECONDS, True
    with pytest.raises(ApiError, match="forbidden"):
        client.get("/api/v1/nodes")


def test_a_refused_token_is_requested_anew(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig = tmp_path / "config"
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "of-the-lender"}}
    kubeconfig.write_text(
        json.dumps({"current-context": "c", "clusters": [cluster], "contexts": [context], "users": [user]})
    )
    lender = Lender(connect(kubeconfig).api_client)
    status, refused = 403, []
    expected = ((403, 1), (401, 1), (403, 2), (403, 2))

    def answer(client: Client, *_args: Any, **_options: Any) -> Any:
        client.api_client.configuration.auth_settings()
        raise ApiError(status, "refused")

    monkeypatch.setattr(Client, "_request", answer)
    client = connect_as(cast("Client", lender), "hub-a", "a", on_refused=lambda: refused.append(status))
    for status, tokens in expected:  # noqa: B007 - `answer` reads it
        with pytest.raises(ApiError):
            client.get("/api/v1/nodes")
        assert len(lender.asked) == tokens
    assert refused == [401]


class ServedCluster:
    """A cluster without nodes, and without a Deployment of this hub's controllers."""

    def __init__(self, released_after: float = 0.0, *, is_renewed: bool = False) -> None:
        self.now = 0.0
        self.taken_away: list[object] = []
        self._released_after = released_after
        self._is_renewed = is_renewed

    def merge(self, path: str, body: object, manager: str) -> Object:
        assert manager
        if path.endswith("/configmaps/roost-hub"):
            self.taken_away.append(body)
            return {}
        raise ApiError(404, path)

    def get(self, path: str, _query: Object | None = None) -> Object:
        if not path.endswith("/leases/hub-roost-controllers"):
            return {"items": []}
        holder = "" if self.now >= self._released_after else "central"
        return {"spec": {"holderIdentity": holder, "renewTime": str(self.now if self._is_renewed else 0)}}

    def clean_up(self) -> float:
        options = CleanupOptions(release="hub", namespace="hub-a", controllers="hub-roost-controllers")
        clean_up(cast("Client", self), options, sleep=self._sleep, clock=lambda: self.now)
        return self.now

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_cleanup_takes_the_settings_away_and_waits_until_nobody_holds_the_lease() -> None:
    cluster = ServedCluster(4.0, is_renewed=True)
    assert cluster.clean_up() == 4.0
    assert cluster.taken_away == [{"data": {"controllers.json": None}}]


def test_a_cleanup_waits_no_longer_than_a_dead_holders_lease_lasts() -> None:
    assert LEASE_SECONDS < ServedCluster(1e9).clean_up() < LEASE_SECONDS + 2


def test_a_cleanup_gives_up_when_somebody_works_for_the_hub_on() -> None:
    cluster = ServedCluster(1e9, is_renewed=True)
    with pytest.raises(ClusterError, match="is still renewed"):
        cluster.clean_up()
    assert cluster.now > END_SECONDS
