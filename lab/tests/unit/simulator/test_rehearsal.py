"""Rehearsals: that a booking helps its people in the simulator, and what is said of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.faults import UsageError, ValuesError
from generator.values.merge import NO_SET_OPTIONS, SetOptions
from lab.tests.told import cases
from roost.cli import run
from roost_core.release.bookings import Event, LocalStarts
from roost_core.release.seating_pace import SEATING_START_SECONDS, most_seating, seating_seconds
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.simulator.sweep import rehearsal
from roost_lab.simulator.sweep.rehearsal import Days, Rehearsal, quantile, rehearse
from roost_lab.simulator.sweep.seated_days import seating_moments

LECTURE = {"name": "lecture", "people": 120, "start": "2026-11-24T09:00", "timeZone": "UTC"}
COURSE = {**LECTURE, "image": "quay.io/me/course:1"}


def _rehearse(
    entry: dict[str, Any] = COURSE, settings: SetOptions = NO_SET_OPTIONS, **options: Any
) -> Rehearsal:
    return rehearse(entry, (), settings, Assumptions(), seeds=1, launches=300, **options)


@pytest.mark.parametrize(("more", "settings", "said"), cases("simulator", "rehearsals"))
def test_what_the_values_do_not_allow_is_refused(
    more: dict[str, str], settings: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        _rehearse(COURSE | more, SetOptions(values=(settings,)))


@pytest.mark.parametrize(
    ("image", "launched"),
    [
        # As import writes what the hub's spawner names.
        ({"name": "quay.io/lab/other:1"}, "quay.io/lab/other:1"),
        ({"name": "quay.io/lab/other", "tag": "1"}, "quay.io/lab/other:1"),
        ({"name": "other"}, "docker.io/library/other:latest"),
    ],
)
def test_people_run_the_image_that_is_brought_to_nodes(
    image: dict[str, str], launched: str
) -> None:
    assert rehearsal.own_image({"singleuser": {"image": image}}) == launched


def test_values_without_a_set_and_values_that_do_not_fit_the_schema_are_refused() -> None:
    with pytest.raises(UsageError, match="Add one; replicas: 0 keeps nothing"):
        _rehearse(COURSE, SetOptions(json_values=("placeholders=[]",)))
    with pytest.raises(ValuesError, match=r"events\.maxPeople"):
        _rehearse(COURSE, SetOptions(values=("events.maxPeople=many",)))


def test_a_booked_lecture_starts_within_seconds_and_an_unbooked_one_waits_for_nodes() -> None:
    found = _rehearse()
    assert len(found.booked.waits) == len(found.unbooked.waits) == 120
    assert quantile(found.booked.waits, 0.95) < 30
    assert quantile(found.unbooked.waits, 0.95) > 120
    (more,) = found.more_by_seed
    assert 0 < more < 0.25 * found.unbooked.node_hours_by_seed[0]


def test_a_day_is_the_same_without_other_launches_and_without_an_image() -> None:
    settings = SetOptions(values=("events.activeServerLimit=100",))
    found = rehearse(LECTURE, (), settings, Assumptions(), seeds=1, launches=0)
    assert quantile(found.booked.waits, 0.95) < 30
    at_once, at_most = found.rows().splitlines()[3:]
    assert at_once.endswith(
        "waits about 45 s. Set it to 120 in the hub's values, and events.concurrentSpawnLimit in"
        " Roost's."
    )
    assert at_most.startswith("The hub runs 100 servers at most (hub.activeServerLimit)")
    # As it is played, too: servers that ended make room for some.
    assert 15 <= found.booked.refused == found.booked.without_server <= 20
    uncounted = "get no server; whom activeServerLimit refuses doesn't count)"
    assert f"({100 * found.booked.refused / 120:.0f} % {uncounted}" in found.rows()


def test_people_who_get_no_server_are_told_and_not_taken_for_quick() -> None:
    found = rehearse(LECTURE, (), NO_SET_OPTIONS, Assumptions(max_nodes=1), seeds=1, launches=0)
    refused = found.unbooked.without_server
    assert 0 < refused < 120
    assert f"({100 * refused / 120:.0f} % get no server); it costs" in found.sentence()


def test_the_sentence_says_waits_and_cost_with_their_spread() -> None:
    event = Event("lecture", 4, LocalStarts("2026-11-24T09:00", "UTC"))
    booked = Days([1.0, 1.0, 2.0, 40.0], [2.0, 40.0], [11.0, 12.5], [1, 2])
    unbooked = replace(booked, waits=[1.0, 60.0, 90.0, 300.0], node_hours_by_seed=[10.0, 10.0])
    assert (
        Rehearsal(event, booked, unbooked).sentence()
        == "With the booking, half of the 4 people wait 1 s at most and 95 of 100 40 s, without it"
        " 1 min and 5 min; it costs 1.8 node-hours more (+18 %; +1.0 to +2.5 in 2 seeds)."
    )
    nobody = replace(booked, waits=[], without_server=8, refused=8)
    refused = Rehearsal(event, nobody, nobody)
    assert refused.sentence().startswith(
        "activeServerLimit refuses all 4 people, booked or not; it costs 0.0 "
    )
    assert "0 s" not in refused.rows()
    assert (
        Rehearsal(event, booked, unbooked, (), "servers answer")
        .rows()
        .startswith("until servers answer  half ")
    )


EVENT = [
    "rehearse",
    "60",
    "2026-11-24",
    "9:00",
    "--zone",
    "UTC",
    "--image",
    "quay.io/me/course:1",
    "--seeds",
    "1",
]


def test_the_sentence_comes_first_then_a_row_with_and_without_the_booking(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([*EVENT, "--launches", "100"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("With the booking, half of the 60 people wait ")
    with_it, without = out.splitlines()[2:]
    assert (with_it[:6], without[:10], len(with_it)) == ("booked", "not booked", len(without))
    assert not err


@pytest.mark.parametrize(("more", "said"), cases("simulator", "rehearsal arguments"))
def test_faults_are_said_in_a_line(
    more: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("HUGE").write_text(
        "placeholders: [{name: default, replicas: 1, resources: {requests: {memory: 900G}}}]"
    )
    assert run([*EVENT, *more]) == 2
    assert said in capsys.readouterr().err


def test_people_who_are_seated_wait_for_nothing_and_absent_ones_are_priced() -> None:
    found = _rehearse({**COURSE, "people": 60}, absent=0.25)
    assert found.seated is not None
    assert len(found.seated.waits) == len(found.booked.waits) == 45
    assert quantile(found.seated.waits, 0.99) == 0.0
    assert found.seated.without_server == 0
    # Fifteen servers, each from some minutes before the class to twenty after it began.
    assert 15 * 20 / 60 < found.seated.absent_hours < 15 * 30 / 60
    (seated,) = found.seated.node_hours_by_seed
    (booked,) = found.booked.node_hours_by_seed
    assert seated - booked < 1.0
    assert "Seated, 95 of 100 wait 0 s at most; " in found.seated_sentence()
    assert found.rows().splitlines()[1].startswith("seated ")


@given(st.integers(1, 400), st.integers(0, 200), st.floats(0.1, 60.0))
@settings(max_examples=40, deadline=None)
def test_seats_are_asked_for_at_the_services_pace(
    people: int, limit: int, start_seconds: float
) -> None:
    event = Event("lecture", people, LocalStarts("2026-11-24T09:00", "UTC"))
    moments = seating_moments(event, 0, limit, start_seconds)
    assert len(moments) == people
    assert moments[0] == -seating_seconds(people, limit, SEATING_START_SECONDS)
    for moment in moments:
        assert sum(moment <= other < moment + 1.0 for other in moments) <= 4
        going = sum(other <= moment < other + start_seconds for other in moments)
        assert going <= most_seating(limit)
    if start_seconds <= SEATING_START_SECONDS:
        assert max(moments) + start_seconds <= 0
