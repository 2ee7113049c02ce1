"""What a report is about: one hub, class or image, the last hours, the time before; its title and its time zone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from lab.tests.recorded import (
    BEGIN,
    HOUR,
    MINUTE,
    SECOND,
    bind_record,
    empty_store,
    fail_record,
    phase_record,
    pod_record,
    story_records,
)
from roost.__main__ import main
from roost_lab.recorder.store.records import Phase, PreemptionRecord, PullRecord, Record
from roost_lab.report.formats import to_json
from roost_lab.report.gather import gather
from roost_lab.report.page import TITLE, make_page, title
from roost_lab.report.query import Scope, ScopeError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from roost_lab.recorder.store.database import Store
    from roost_lab.report.subject import Report


def pod_of(uid: str, ready_seconds: int = 3, **pod: Any) -> list[Record]:
    """A pod that was bound, pulled, became ready, failed once and was pre-empted."""
    record = pod_record(uid, **pod)
    begin = record.created_us
    return [
        record,
        replace(bind_record(uid, begin + SECOND, "n", "agrees"), scheduler=record.scheduler),
        replace(fail_record(uid, 1, {"Insufficient cpu": 1}), at_us=begin + 1),
        phase_record(uid, Phase.STARTED, begin + 2 * SECOND),
        phase_record(uid, Phase.READY, begin + ready_seconds * SECOND),
        PullRecord(pod_uid=uid, image=record.image, node_name="n", at_us=begin + SECOND, warm=True),
        PreemptionRecord(victim_uid=uid, node_name="n", at_us=begin + MINUTE, kind="preempted"),
    ]


def two_hubs(folder: Path) -> Store:
    store = empty_store(folder)
    store.write(
        [
            *pod_of("a", hub="maths", image="registry/scipy"),
            *pod_of("b", hub="maths", image="registry/r", created_us=BEGIN + MINUTE),
            *pod_of("c", hub="physics", image="registry/scipy", created_us=BEGIN + 2 * MINUTE),
            *pod_of("d", hub="physics", image="registry/build", pod_class="build", created_us=BEGIN + 3 * MINUTE),
            *pod_of("e", hub="physics", image="pause", pod_class="placeholder", created_us=BEGIN + 4 * MINUTE),
        ],
        {"pods": ("1", BEGIN + HOUR)},
    )
    return store


def key_figures(report: Report) -> dict[str, float | None]:
    return {row["figure"]: row["value"] for row in json.loads(to_json(report))["tables"]["key_figures"]}


@pytest.mark.parametrize(
    ("scope", "pods", "starts"),
    [
        (Scope(), 5, 3),
        (Scope(hub="maths"), 2, 2),
        (Scope(hub="physics"), 3, 1),
        (Scope(pod_class="build"), 1, 1),
        (Scope(image="registry/scipy"), 2, 2),
        (Scope(hub="maths", image="registry/scipy"), 1, 1),
        # Both are in the record, but no pod has both.
        (Scope(hub="maths", pod_class="build"), 0, None),
    ],
)
def test_every_number_is_of_the_pods_that_were_asked_for(
    tmp_path: Path, scope: Scope, pods: int, starts: int | None
) -> None:
    report = gather(two_hubs(tmp_path), scope=scope)
    assert key_figures(report).get("starts") == starts
    found = json.loads(to_json(report))["tables"]
    assert sum(row["tries"] for row in found["failures"]) == pods
    assert sum(row["warm"] for row in found["pulls_by_node"]) == pods
    assert sum(row["pods"] for row in found["removals_by_class"]) == pods
    assert sum(row["pods"] for row in found["starts_by_class"] if row["phase"] == "whole") == pods
    nodes = [row for row in found["occupancy_by_node"] if any(value for key, value in row.items() if key != "node")]
    assert len(nodes) == (1 if pods else 0)
    assert report.is_empty == (pods == 0)
    assert ("Only pods of" in make_page(report, "about")) == bool(scope.chosen)
    if not pods:
        assert "Nothing of these pods was recorded" in make_page(report, "about")


def test_a_value_that_no_pod_has_is_said_with_those_that_pods_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = two_hubs(tmp_path)
    with pytest.raises(ScopeError, match="--class: found 'users', expected one that pods of the record have: user, bu"):
        gather(store, scope=Scope(pod_class="users"))
    database = ["report", "--database", str(tmp_path / "roost.db")]
    assert main([*database, "--hub", "chemistry"]) == 1
    assert "--hub: found 'chemistry', expected one that pods of the record have: physics, maths" in (
        capsys.readouterr().err
    )
    assert main([*database, "--class", "build", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["only"] == {"class": "build"}


def test_removed_users_and_removed_placeholders_are_told_apart(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    store.write([*pod_of("p", pod_class="placeholder"), pod_record("u")], {"pods": ("1", BEGIN + HOUR)})
    report = gather(store)
    assert key_figures(report)["removed_users"] == 0
    page = make_page(report, "about")
    assert "besides 1 placeholder<" in page


def test_each_figure_stands_beside_that_of_the_time_before(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    # Two in the first hour, one that is slow in the second; the record ends after two hours.
    fast = [*pod_of("a"), *pod_of("b", created_us=BEGIN + MINUTE)]
    slow = pod_of("c", ready_seconds=12, created_us=BEGIN + HOUR + SECOND)
    store.write([*fast, *slow], {"pods": ("1", BEGIN + 2 * HOUR - 1)})
    report = gather(store, last_us=HOUR)
    assert report.window == (BEGIN + HOUR, BEGIN + 2 * HOUR)
    rows = {row["figure"]: row for row in json.loads(to_json(report))["tables"]["key_figures"]}
    assert (rows["starts"]["value"], rows["starts"]["previous"]) == (1, 2)
    assert (rows["start_p50"]["value"], rows["start_p50"]["previous"]) == (12, 3)
    assert "; before: 3 s" in make_page(report, "about")
    # Of the time before the first two hours nothing is known.
    whole = gather(store, last_us=2 * HOUR)
    assert whole.previous is None
    assert "; before:" not in make_page(whole, "about")


@pytest.mark.parametrize(
    ("hubs", "server", "expected"),
    [
        ([], "https://10.96.0.1:443", TITLE),
        ([], "https://[fd00::1]:443", TITLE),
        (["maths"], "https://10.96.0.1:443", "maths: how pods started, and where they went"),
        (["maths", "physics"], "https://prod.example.org:6443", "maths, physics on prod.example.org: how pods started"),
        (["a", "b", "c", "d"], "", "4 hubs: how pods started"),
    ],
)
def test_the_title_names_hubs_and_cluster(tmp_path: Path, hubs: list[str], server: str, expected: str) -> None:
    store = empty_store(tmp_path)
    with store.run(server, "0.1", ""):
        pass
    store.write([pod_record(hub, hub=hub) for hub in hubs] + story_records(), {})
    assert title(gather(store, BEGIN, BEGIN + 3 * HOUR)).startswith(expected)


def test_the_title_names_the_cluster_that_was_told(tmp_path: Path) -> None:
    two_hubs(tmp_path)
    page = tmp_path / "report.html"
    arguments = ["--hub", "maths", "--cluster", "prod <1>", "--output", str(page)]
    assert main(["report", "--database", str(tmp_path / "roost.db"), *arguments]) == 0
    text = page.read_text(encoding="utf-8")
    assert "<title>maths on prod &lt;1&gt;: how pods started, and where they went</title>" in text
    assert "<h1>maths on prod &lt;1&gt;: how" in text


@pytest.mark.parametrize(
    ("since", "span"),
    [("90m", 90 * MINUTE), ("2h", 2 * HOUR), ("7d", 7 * 24 * HOUR), ("2w", 14 * 24 * HOUR)],
)
def test_since_may_be_a_length_of_time(tmp_path: Path, since: str, span: int) -> None:
    read(two_hubs, tmp_path, "--since", since)
    document = json.loads((tmp_path / "out").read_text(encoding="utf-8"))
    end = gather(two_hubs(tmp_path)).window.to_us
    assert document["since"] == json.loads(to_json(gather(two_hubs(tmp_path), end - span)))["since"]


@pytest.mark.parametrize("since", ["0h", "2 h", "h", "2y", "-2h", "٢h"])
def test_a_length_that_can_not_be_read_says_which_can(
    tmp_path: Path, since: str, capsys: pytest.CaptureFixture[str]
) -> None:
    two_hubs(tmp_path)
    assert main(["report", "--database", str(tmp_path / "roost.db"), f"--since={since}"]) == 2
    assert "or a duration such as 90m, 2h, 7d, 2w" in capsys.readouterr().err


def read(make: Callable[[Path], Store], folder: Path, *arguments: str) -> None:
    make(folder)
    database = ["report", "--database", str(folder / "roost.db"), "--format", "json", "--output", str(folder / "out")]
    assert main([*database, *arguments]) == 0


def test_times_are_of_the_zone_for_people_and_utc_for_programs(tmp_path: Path) -> None:
    two_hubs(tmp_path)
    database = ["report", "--database", str(tmp_path / "roost.db"), "--timezone", "Asia/Kathmandu"]
    page, data = tmp_path / "report.html", tmp_path / "report.json"
    # 5 h 45 min ahead of UTC; the record begins at 08:00 UTC.
    since = ["--since", "2027-01-15T13:45", "--until", "2027-01-15T14:30"]
    assert main([*database, *since, "--output", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "2027-01-15 13:45 to 2027-01-15 14:30 Asia/Kathmandu (45 min)" in text
    assert ">from (Asia/Kathmandu)</th>" in text
    assert "UTC<" not in text
    assert "Fri 15 Jan 13:45 Asia/Kathmandu" in text
    assert main([*database, *since, "--format", "json", "--output", str(data)]) == 0
    assert json.loads(data.read_text(encoding="utf-8"))["since"] == "2027-01-15T08:00:00Z"
    # Steps begin when the zone's clocks show a round time.
    starts = gather(two_hubs(tmp_path), last_us=14 * 24 * HOUR, zone=ZoneInfo("Asia/Kathmandu")).steps
    assert starts.step_us == 2 * HOUR
    assert (starts.from_us + 5 * HOUR + 45 * MINUTE) % (2 * HOUR) == 0


@pytest.mark.parametrize("zone", ["Berlin", "../etc/passwd", "", "Europe"])
def test_a_time_zone_that_is_not_known_is_wrong_usage(
    tmp_path: Path, zone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--database", str(tmp_path / "roost.db"), "--timezone", zone]) == 2
    assert "expected a time zone's name, such as Europe/Berlin" in capsys.readouterr().err
