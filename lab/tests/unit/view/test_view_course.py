"""What users waited for over a time: figures, the sentence made of them, and the file that carries
both.
"""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lab.tests.moments import BEGIN, HOUR, MINUTE, SECOND
from lab.tests.recorded import bind_record, empty_store, phase_record, pod_record
from roost.__main__ import main
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import NodeRecord, Phase, PullRecord, Record
from roost_lab.report.statistics import Span
from roost_lab.view import shareable
from roost_lab.view.course import Course, read_course, tell_course, tell_difference
from roost_lab.view.moment import as_json
from roost_lab.view.reading import RecordSource
from roost_lab.view.server import story

HOURS = Span(BEGIN, BEGIN + HOUR)


def user(
    number: int, created_us: int, wait_us: int | None, *, pulled: bool = False, **more: Any
) -> list[Record]:
    """A user who is bound at once and runs after that time; None: never."""
    uid = f"u{number}"
    records: list[Record] = [
        pod_record(uid, created_us=created_us, **more),
        bind_record(uid, created_us, "n"),
    ]
    if wait_us is not None:
        records.append(phase_record(uid, Phase.STARTED, created_us + wait_us))
    if pulled:
        records.append(
            PullRecord(pod_uid=uid, image="i", node_name="n", at_us=created_us, warm=False)
        )
    return records


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = empty_store(tmp_path)
    records: list[Record] = [
        NodeRecord(uid="n", name="n", created_us=BEGIN - HOUR, is_ready=True, labels="{}"),
        NodeRecord(
            uid="m",
            name="m",
            created_us=BEGIN + 30 * MINUTE,
            gone_us=BEGIN + 45 * MINUTE,
            labels="{}",
        ),
        # It began to wait before, and waits for half a minute of the hour.
        *user(0, BEGIN - MINUTE, MINUTE + 30 * SECOND),
        *(record for number in range(1, 20) for record in user(number, BEGIN + MINUTE, SECOND)),
        *user(20, BEGIN + 2 * MINUTE, 90 * SECOND, pulled=True),
        *user(21, BEGIN + 10 * MINUTE, None, deleted_us=BEGIN + 12 * MINUTE),
        *user(22, BEGIN + 59 * MINUTE, None),
        *user(23, BEGIN + 2 * MINUTE, MINUTE, pod_class="build", pulled=True),
    ]
    store.write(records, {"pods": ("1", BEGIN + HOUR)})
    return store


def test_who_waited_when_and_how_long_is_counted(store: Store) -> None:
    course = read_course(store, HOURS)
    waiting = dict(enumerate(course["waiting"]))
    expected = {0: 0.5, 1: round(19 / 60, 6), 2: 1, 3: 0.5, 10: 1, 11: 1, 59: 1}
    assert {step: number for step, number in waiting.items() if number} == expected
    assert {step: number for step, number in enumerate(course["started"]) if number} == {
        1: 19,
        2: 1,
        10: 1,
        59: 1,
    }
    assert [step for step, number in enumerate(course["cold"]) if number] == [2]
    # Half of the wait is over then.
    assert course["slow"] == [
        (BEGIN + 2 * MINUTE + 45 * SECOND, 90 * SECOND, "u20", "hub/u20"),
        (BEGIN + 11 * MINUTE, 2 * MINUTE, "u21", "hub/u21"),
        (BEGIN + 59 * MINUTE + 30 * SECOND, MINUTE, "u22", "hub/u22"),
    ]
    assert (course["count"], course["cold_count"], course["node_hours"]) == (22, 1, 1.2)
    assert (course["slow_count"], [crowd["people"] for crowd in course["crowds"]]) == (3, [21])
    said = (
        "Of 22 starts, 1 pulled an image (5 %); 95 of 100 users waited at most 1 min 30 s until"
        " containers ran."
    )
    assert tell_course(course) == said
    # Of whose creation the watch told within its second.
    told_us, answered_us = BEGIN + 2 * MINUTE + SECOND // 2, BEGIN + 4 * MINUTE
    phases = ((Phase.CREATED, told_us), (Phase.ANSWERED, answered_us))
    store.write([phase_record("u20", phase, at_us) for phase, at_us in phases], {})
    course = read_course(store, HOURS)
    assert course["slow"][0][1] == answered_us - told_us
    told = tell_course(course)
    assert told.endswith(
        "users waited at most 2 min until servers answered, where their hub's log tells."
    )


def course_of(p95_us: int, node_hours: float, cold: int = 5, count: int = 41) -> Course:
    return {"count": count, "cold_count": cold, "p95_us": p95_us, "node_hours": node_hours}


FASTER, SLOW = course_of(SECOND, 2.0), course_of(26 * SECOND, 1.8)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            course_of(120 * SECOND, 1.0),
            SLOW,
            "wait at most 26 s instead of 2 min, for 0.8 node-hours more (80 %).",
        ),
        (
            FASTER,
            SLOW,
            "95 of 100 users wait at most 26 s instead of 1 s, for 0.2 node-hours fewer (10 %).",
        ),
        # Of many, nobody counts tenths.
        (
            course_of(120 * SECOND, 200.3),
            course_of(26 * SECOND, 1320.9),
            "wait at most 26 s instead of 2 min, for 1,121 node-hours more (559 %).",
        ),
        (
            FASTER,
            course_of(SECOND, 2.0, cold=3),
            "3 of 41 starts pull an image instead of 5, for as many node-hours.",
        ),
        (
            FASTER,
            FASTER,
            "With Roost, 95 of 100 users wait at most 1 s, as before, for as many node-hours.",
        ),
        (
            course_of(SECOND, 2.0) | {"slow_count": 12},
            course_of(SECOND, 2.0, count=40) | {"slow_count": 1},
            "1 of 40 starts takes longer than 30 s instead of 12 of 41, for as many node-hours.",
        ),
        (
            FASTER | {"slow_count": 0},
            FASTER | {"slow_count": 2},
            "2 of 41 starts take longer than 30 s instead of none, for as many node-hours.",
        ),
        (course_of(0, 2.0, count=0), FASTER, "No user started in this time in one of the records."),
    ],
)
def test_two_records_are_compared_in_one_sentence(before: Course, after: Course, said: str) -> None:
    told = tell_difference(["z2jh", "roost"], [before, after])
    assert told.endswith(said)
    # Whichever is named first, and however.
    assert tell_difference(["roost", "z2jh"], [after, before]) == told
    assert tell_difference(["With Roost", "Without Roost"], [after, before]) == told


def test_a_class_that_waits_for_a_node_is_told(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    begin = BEGIN + 15 * MINUTE
    records: list[Record] = []
    for number in range(30):
        uid, created_us = f"u{number}", begin + number * SECOND
        wait_us = (3 if number < 10 else 90) * SECOND
        records += [
            pod_record(uid, created_us=created_us),
            bind_record(uid, created_us + wait_us - SECOND, "n"),
            phase_record(uid, Phase.STARTED, created_us + wait_us),
        ]
    store.write(records, {"pods": ("1", BEGIN + HOUR)})
    (crowd,) = read_course(store, HOURS)["crowds"]
    assert (crowd["at"], crowd["people"]) == (begin, 30)
    assert crowd["text"].endswith(
        ":15: 30 people come; 20 wait longer than 30 s for a node, at most 1 min 30 s."
    )


def test_nodes_of_which_only_pods_are_recorded_are_told_once(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    for uid, node in (("x", "here"), ("y", "there")):
        store.write([pod_record(uid), bind_record(uid, BEGIN + MINUTE, node)], {})
    moment = RecordSource(store, now_us=lambda: 2**60).moment(BEGIN + 5 * MINUTE)
    assert moment is not None
    told = "Of 2 nodes only the pods are recorded: no state, size or images."
    assert list(moment.notices) == [told]


def test_a_time_without_starts_says_so(store: Store) -> None:
    assert (
        tell_course(read_course(store, Span(BEGIN + 20 * MINUTE, BEGIN + 21 * MINUTE)))
        == "No user started in this time."
    )


def test_the_story_is_of_the_time_that_both_records_know(store: Store, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = empty_store(tmp_path / "other")
    other.write([pod_record("p", created_us=BEGIN + MINUTE)], {"pods": ("1", BEGIN + 30 * MINUTE)})
    both = [RecordSource(one, now_us=lambda: 2**60) for one in (store, other)]
    told = story(both, ["one", "other"])
    assert [(course["from"], len(course["started"])) for course in told["courses"]] == [
        (BEGIN + MINUTE, 30)
    ] * 2
    # What is wanted beside it isn't there.
    assert (
        story(both, ["one", "other"], Span(BEGIN + 40 * MINUTE, BEGIN + 50 * MINUTE))["courses"]
        == []
    )
    assert (
        story([RecordSource(empty_store(tmp_path / "other"))], [""])["to"]
        == BEGIN + 30 * MINUTE + 1
    )


def test_the_file_holds_what_the_page_would_ask_for_and_nothing_of_the_network(
    store: Store,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = tmp_path / "page.html"
    database = str(tmp_path / "roost.db")
    assert main(["view", "--database", database, "--output", str(page)]) == 0
    assert str(page) in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"https?://|<link rel=.stylesheet|src=", text)
    found = re.search(r'id="record">([^<]+)<', text)
    assert found is not None
    data = json.loads(gzip.decompress(base64.b64decode(found[1])))
    assert data["story"]["sentence"].startswith("Of 23 starts, ")
    assert data["whys"][0].keys() == {"u0", "u20", "u21", "u22"}
    assert "Where it went: node n" in data["whys"][0]["u20"]
    (frames,) = data["frames"]
    # The steps, and each slow start.
    assert {one[0] for one in data["story"]["courses"][0]["slow"]} < {
        frame["at"] for frame in frames
    }
    source = RecordSource(store, now_us=lambda: 2**60)
    things = data["things"]
    for frame in frames:
        for key in ("nodes", "pending", "changes"):
            frame[key] = [things[number] for number in frame[key]]
        frame["nodes"] = [
            {**node, "pods": [things[number] for number in node["pods"]]} for node in frame["nodes"]
        ]
        seen = source.moment(frame["at"])
        assert seen is not None
        assert frame == json.loads(json.dumps(as_json(seen), default=list))
    monkeypatch.setattr(shareable, "MOST_BYTES", 1000)
    assert main(["view", "--database", database, "--output", str(page)]) == 2
    assert f"--output: {page}: 12 moments take more than 1,000 bytes" in capsys.readouterr().err
    assert (
        main(["view", "--database", database, "--output", str(page), "--at", "2030-01-01T00:00Z"])
        == 2
    )
    assert "--at: expected a time from " in capsys.readouterr().err
