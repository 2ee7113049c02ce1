"""`roost book`: what words mean, what a booking says, and that nothing is lost of what others
booked.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.faults import UsageError
from lab.tests.told import cases
from roost.cli import run
from roost.doctor.evidence import AUTOSCALER_STATUS
from roost_core.kube.client import ApiError
from roost_core.placement.headroom_windows import parse_moment
from roost_lab.booking.entry import FORMS, read_when
from roost_lab.commands import book

# A Thursday.
NOW = parse_moment("2026-11-26T10:00", "Europe/Berlin")
SETS: list[dict[str, Any]] = [
    {
        "name": name,
        "nodeSelector": {"pool": name},
        "requiredNodeTerms": [],
        "tolerations": [],
        "resources": {"requests": {"cpu": "50m", "memory": "1Gi"}},
    }
    for name in ("default", "gpu")
]
EVENTS = {"enabled": True, "configMaps": True, "leadMinutes": 15, "maxPeople": 500}
EVENTS |= {"maxPlaceholders": 1000, "concurrentSpawnLimit": 64}
PROFILES = [
    {"names": ["GPU, large", "gpu"], "image": "quay.io/me/gpu:1", "set": "gpu"},
    {"names": ["Own image", None], "image": "", "set": "default"},
    {"names": ["Far away", None], "image": "quay.io/me/far:1", "set": None},
]
NODE: dict[str, Any] = {
    "metadata": {"labels": {"pool": "default"}},
    "status": {"allocatable": {"cpu": "4", "memory": "18Gi", "pods": "110"}},
}
BOOKINGS = "/api/v1/namespaces/hub/configmaps/roost-bookings"
RELEASE = "/api/v1/namespaces/hub/configmaps/roost-release"
SEATING = "/api/v1/namespaces/hub/services/roost-seating:metrics/proxy/readyz"
QUOTAS = "/api/v1/namespaces/hub/resourcequotas"


class Cluster:
    """An API server with ConfigMaps and nodes."""

    namespace = "hub"

    def __init__(self, **events: Any) -> None:
        document = {"placeholders": SETS, "profiles": PROFILES, "events": EVENTS | events}
        self.objects: dict[str, Any] = {RELEASE: {"data": {"release.json": json.dumps(document)}}}
        nodes = [{**NODE, "metadata": {**NODE["metadata"], "name": name}} for name in "abc"]
        self.objects["/api/v1/nodes"] = {"items": nodes}
        self.objects[QUOTAS] = {"items": []}
        self.forbidden: set[str] = set()

    def find(self, path: str) -> Any:
        if path in self.forbidden:
            raise ApiError(403, "forbidden")
        return self.objects.get(path)

    def get(self, path: str, _query: object = None) -> Any:
        return self.find(path)

    def lines(self, path: str, _query: Any, _seconds: float) -> Iterator[bytes]:
        if path in self.forbidden:
            raise ApiError(403, "forbidden")
        assert path == SEATING
        yield from (b"the hub answers\n", b"bio at 9:00: 2 seated\n")

    def create(self, path: str, body: Any) -> None:
        self.objects[f"{path}/{body['metadata']['name']}"] = body
        body["metadata"]["resourceVersion"] = "1"

    def merge(self, path: str, body: Any, _manager: str) -> None:
        if body["metadata"]["resourceVersion"] != self.objects[path]["metadata"]["resourceVersion"]:
            raise ApiError(409, "conflict")
        self.objects[path]["data"] |= body["data"]
        self.objects[path]["metadata"] |= body["metadata"]

    @property
    def booked(self) -> Any:
        return yaml.safe_load(self.objects[BOOKINGS]["data"]["events.yaml"])


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(book, "connect_as_user", lambda *_: made)
    monkeypatch.setattr(time, "time", lambda: NOW)
    return made


@pytest.mark.parametrize(("words", "start"), cases("booking", "starts"))
def test_words_are_a_start_as_events_reads_it(words: str, start: str) -> None:
    assert read_when(words.split(), "Europe/Berlin", NOW) == start


@pytest.mark.parametrize("words", cases("booking", "no starts"))
def test_other_words_are_refused_with_examples(words: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_when(words.split(), "Europe/Berlin", NOW)
    assert str(refused.value) == f"WHEN: found {words!r}, expected {FORMS}"


def test_a_booking_says_what_it_means_is_listed_changed_and_cancelled(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    first = "book 120 tomorrow 9:00 --zone Europe/Berlin --name intro --image quay.io/me/x:1"
    assert run(first.split()) == 0
    assert (
        capsys.readouterr().out
        == "Booked: intro: 120 people, Fri 2026-11-27 09:00 CET, quay.io/me/x:1.\n  From Fri"
        " 2026-11-27 08:45 CET set default has 120 placeholders more: about 7 nodes (18 a node),"
        " 1.8 node-hours more if all come, 3.5 if nobody does.\n  If all come at once, the hub"
        " starts 64 servers at a time (hub.concurrentSpawnLimit) and asks the others to retry:"
        " the last of 120 waits about 45 s. Set it to 120 in the hub's values, and"
        " events.concurrentSpawnLimit in Roost's.\n"
    )
    assert cluster.objects[BOOKINGS]["metadata"]["labels"] == {
        "roost.hub.jupyter.org/events": "roost"
    }
    assert (
        run(["book", "20", "every", "monday", "14:00", "--until", "2027-02-12", "--zone", "UTC"])
        == 0
    )
    assert (
        run(["book", "60", "tomorrow", "10:00", "--zone", "Europe/Berlin", "--name", "intro"]) == 0
    )
    said = capsys.readouterr().out
    assert (
        "Changed: intro: 60 people, Fri 2026-11-27 10:00 CET (before: 120 people,"
        " 2026-11-27T09:00)." in said
    )
    assert run(["book"]) == 0
    weekly = "20 people, Mon 2026-11-30 14:00 UTC, then every Monday 14:00 until 2027-02-12"
    assert capsys.readouterr().out.splitlines() == [
        "intro: 60 people, Fri 2026-11-27 10:00 CET",
        f"every monday 14:00: {weekly}",
    ]
    assert run(["book", "--cancel", "intro"]) == 0
    assert [event["name"] for event in cluster.booked] == ["every monday 14:00"]


def test_a_group_and_listed_users_are_seated_with_a_profile(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seats(cluster)
    users = tmp_path / "users.txt"
    users.write_text("# biology\nada\n\nbob\nada\n")
    words = ["book", "120", "Mon 9:00", "--zone", "UTC", "--name", "bio", "--group", "bio101"]
    assert run([*words, "--profile", "GPU, large", "--users", str(users)]) == 0
    said = capsys.readouterr().out
    assert "quay.io/me/gpu:1, servers of group bio101 and 2 users started before." in said
    assert "Servers of group bio101 of the hub and 2 users, at most 120, are started before" in said
    # There is room for the first whose server is started, 6.5 minutes before the class.
    assert "From Mon 2026-11-30 08:43 UTC set gpu has 120 placeholders more" in said
    # They need no start when they come.
    assert "asks the others to retry" not in said
    (event,) = cluster.booked
    assert event["start"] == "2026-11-30T09:00"
    assert (event["group"], event["users"], event["profile"]) == ("bio101", ["ada", "bob"], "gpu")
    assert run(["book"]) == 0
    said = capsys.readouterr().out
    assert "servers of group bio101 and 2 users started before" in said
    # What became of the last class, where it may be read.
    assert said.endswith("Seating: the hub answers\nSeating: bio at 9:00: 2 seated\n")
    cluster.forbidden.add(SEATING)
    assert run(["book"]) == 0
    assert "Seating" not in capsys.readouterr().out


def seats(cluster: Cluster) -> None:
    """The release seats people."""
    data = cluster.objects[RELEASE]["data"]
    document = json.loads(data["release.json"])
    document |= {"seating": {"enabled": True, "bookings": "roost-bookings"}}
    data["release.json"] = json.dumps(document)


def test_a_booking_of_a_config_map_that_seating_does_not_read_says_so(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    seats(cluster)
    words = ["book", "120", "Mon 9:00", "--zone", "UTC", "--name", "bio", "--group", "bio101"]
    assert run([*words, "--config-map", "course"]) == 0
    said = capsys.readouterr().out
    assert "either: seating reads ConfigMap roost-bookings alone" in said
    # Nobody is there before the class: the usual 15 minutes.
    assert "From Mon 2026-11-30 08:45 UTC" in said


def test_a_booking_that_seats_nobody_says_what_is_missing(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["book", "5", "tomorrow", "9:00", "--zone", "UTC", "--group", "bio101"]) == 0
    said = capsys.readouterr().out
    assert "Nobody's server is started before, of group bio101 of the hub either" in said
    assert cluster.booked[0]["group"] == "bio101"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "found no names, expected a user's name a line"),
        ("ada, bob\n", ":1: found 'ada, bob', expected one user's name"),
    ],
)
def test_a_file_without_names_is_refused(text: str, fault: str, tmp_path: Path) -> None:
    users = tmp_path / "users.txt"
    users.write_text(text)
    with pytest.raises(UsageError) as refused:
        run(["book", "5", "tomorrow", "9:00", "--users", str(users)])
    assert fault in str(refused.value)


@pytest.mark.parametrize(("said", "image", "set_name"), cases("booking", "profiles"))
def test_a_profile_gives_the_image_and_the_placeholders_that_are_not_said(
    said: list[str], image: str | None, set_name: str, cluster: Cluster
) -> None:
    assert run(["book", "5", "tomorrow", "9:00", "--zone", "UTC", "--profile", *said]) == 0
    (event,) = cluster.booked
    assert (event.get("image"), event["set"], "profile" in event) == (image, set_name, False)


@pytest.mark.parametrize(("arguments", "said"), cases("booking", "refused"))
def test_what_cannot_be_booked_is_named_with_the_fix_and_nothing_is_lost(
    arguments: str, said: str, cluster: Cluster
) -> None:
    name = "2026-12-01T09:00" if "2026-12-01 9:00" in arguments else "other"
    text = yaml.safe_dump(
        [{"name": name, "people": 1, "start": "2026-12-01T09:00", "timeZone": "UTC"}]
    )
    cluster.objects[BOOKINGS] = {
        "metadata": {"resourceVersion": "7"},
        "data": {"events.yaml": text},
    }
    zone = [] if "--zone" in arguments else ["--zone", "Europe/Berlin"]
    with pytest.raises(UsageError) as refused:
        run(["book", *arguments.split(), *zone])
    assert said in str(refused.value)
    assert cluster.objects[BOOKINGS]["data"]["events.yaml"] == text


@pytest.mark.parametrize(
    "text", ["{no: list}", "- [", "- {people: 3}", "- 3", "[{name: a}, {name: a}]"]
)
def test_a_config_map_that_is_no_list_of_events_stays_as_it_is(text: str, cluster: Cluster) -> None:
    cluster.objects[BOOKINGS] = {
        "metadata": {"resourceVersion": "7"},
        "data": {"events.yaml": text},
    }
    with pytest.raises(UsageError, match="Nothing was changed: mend it, or"):
        run(["book", "5", "tomorrow", "9:00"])
    assert cluster.objects[BOOKINGS]["data"]["events.yaml"] == text


def test_without_the_right_to_read_the_release_or_nodes_one_books_all_the_same(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.forbidden = {"/api/v1/nodes"}
    assert run(["book", "5", "tomorrow", "9:00", "--zone", "UTC"]) == 0
    assert "set default has 5 placeholders more.\n" in capsys.readouterr().out
    cluster.forbidden = {RELEASE}
    assert run(["book", "5", "tomorrow", "9:00", "--zone", "UTC", "--name", "two"]) == 0
    assert "Not checked: what the release allows" in capsys.readouterr().out
    assert len(cluster.booked) == 2
    with pytest.raises(
        UsageError, match=r"--profile: .* can't be read .*: say --image and --placeholders instead"
    ):
        run(
            [
                "book",
                "5",
                "tomorrow",
                "9:00",
                "--zone",
                "UTC",
                "--name",
                "three",
                "--profile",
                "gpu",
            ]
        )


def test_a_release_that_reads_no_bookings_and_a_change_meanwhile_are_told(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    off = Cluster(enabled=False)
    monkeypatch.setattr(book, "connect_as_user", lambda *_: off)
    with pytest.raises(UsageError, match=r"reads no bookings: the operator sets events\.enabled"):
        run(["book", "5", "tomorrow", "9:00"])
    monkeypatch.setattr(book, "connect_as_user", lambda *_: cluster)
    found = {"metadata": {"resourceVersion": "7"}, "data": {}}
    cluster.objects[BOOKINGS] = {"metadata": {"resourceVersion": "8"}, "data": {}}
    monkeypatch.setattr(
        cluster, "find", lambda path: found if path == BOOKINGS else cluster.objects.get(path)
    )
    assert run(["book", "5", "tomorrow", "9:00"]) == 2
    assert "changed meanwhile; nothing was booked: try again" in capsys.readouterr().err


def test_what_is_past_leaves_and_what_would_not_count_is_refused(cluster: Cluster) -> None:
    def put(count: int, start: str, labels: dict[str, str]) -> None:
        events = [
            {"name": str(index), "people": 1, "start": start, "timeZone": "UTC"}
            for index in range(count)
        ]
        metadata = {"resourceVersion": "7", "labels": labels}
        cluster.objects[BOOKINGS] = {
            "metadata": metadata,
            "data": {"events.yaml": yaml.safe_dump(events)},
        }

    new = ["book", "5", "tomorrow", "9:00", "--zone", "UTC", "--name", "new"]
    put(200, "2026-11-24T09:00", {})
    assert run(new) == 0
    assert [event["name"] for event in cluster.booked] == ["new"]
    put(200, "2026-12-01T09:00", {})
    with pytest.raises(UsageError, match=r"would hold 201 bookings of .* at most 200"):
        run(new)
    put(1, "2026-12-01T09:00", {"roost.hub.jupyter.org/events": "binder"})
    with pytest.raises(UsageError, match="books for release binder: say --release binder"):
        run(new)
    assert [event["name"] for event in cluster.booked] == ["0"]


@pytest.mark.usefixtures("cluster")
def test_what_the_hub_and_the_cluster_have_no_room_for_is_told_of_a_booking(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full = Cluster(activeServerLimit=100)
    monkeypatch.setattr(book, "connect_as_user", lambda *_: full)
    quota = {"metadata": {"name": "course", "namespace": "hub"}, "spec": {"hard": {"pods": "110"}}}
    full.objects[QUOTAS] = {"items": [quota | {"status": {"used": {"pods": "30"}}}]}
    status = "nodeGroups: [{name: aks-users-1-vmss, health: {maxSize: 6}}]"
    full.objects[AUTOSCALER_STATUS] = {"data": {"status": status}}
    for node in full.objects["/api/v1/nodes"]["items"]:
        node["metadata"]["labels"] = {"pool": "default", "kubernetes.azure.com/agentpool": "users"}
    new = ["book", "120", "tomorrow", "9:00", "--zone", "UTC", "--name", "intro"]
    assert run(new) == 0
    *_, active, quota_told, group = capsys.readouterr().out.splitlines()
    assert active.startswith(
        "  The hub runs 100 servers at most (hub.activeServerLimit), all users' together: of 120 "
    )
    assert (
        quota_told
        == "  ResourceQuota hub/course: 110 pods allowed, 30 used, 120 people booked: 0 of 120"
        " placeholders are kept, so that people find room. Ask for 270 pods."
    )
    assert group.startswith(
        "  Node group aks-users-1-vmss: never room for more than 108 of 120 placeholders of set "
    )
    # People don't meet a quota of placeholders alone.
    (of_room,) = full.objects[QUOTAS]["items"]
    own = {
        "scopeName": "PriorityClass",
        "operator": "In",
        "values": ["roost.hub.roost-placeholder"],
    }
    of_room["spec"]["scopeSelector"] = {"matchExpressions": [own]}
    assert run(new) == 0
    assert "people booked: 80 of 120 placeholders are kept" in capsys.readouterr().out
    full.forbidden = {QUOTAS}
    assert run(new) == 0
    assert "ResourceQuota" not in capsys.readouterr().out


@pytest.mark.usefixtures("cluster")
def test_what_only_has_a_limit_requests_as_much(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(SETS[0], "resources", {"limits": {"memory": "4Gi"}})
    monkeypatch.setattr(book, "connect_as_user", lambda *_: Cluster())
    assert run(["book", "120", "tomorrow", "9:00", "--zone", "UTC"]) == 0
    assert "about 30 nodes (4 a node)" in capsys.readouterr().out
