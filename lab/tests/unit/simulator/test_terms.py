"""`benchmarks.terms`: a seed is one university for ever, and other terms are made of it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from zoneinfo import ZoneInfo

import pytest

from benchmarks.terms import (
    CLOCK_CHANGES,
    EXAM,
    FIRST_MONDAY,
    VARIANTS,
    Launch,
    Term,
    after_empty_weeks,
    at_hubs,
    draw_term,
    every_second_week,
    first_weeks,
    hub_names,
    hub_of,
    in_zone,
    moved_classes,
    new_timetable,
    ten_times,
    weeks_before,
    without_exam,
)
from roost_lab.units import DAY_SECONDS

TERM = draw_term(4, 5)


def checksum(launches: Iterable[Launch]) -> str:
    digest = sha256()
    for each, _ in launches:
        amounts = f"{each.image_bytes} {each.cpu_millicores} {each.memory_bytes}"
        times = f"{each.moment:.4f} {each.session_seconds:.4f}"
        digest.update(f"{each.number} {times} {each.image} {amounts}\n".encode())
    return digest.hexdigest()[:16]


def weeks_of(term: Term, number: int) -> set[int]:
    """The weeks in which a class's people come."""
    ours = (launch.attempt.moment for launch in term.launches if launch.group == number)
    return {term.week_of(moment) for moment in ours}


def launches_before(term: Term, week: int) -> list[Launch]:
    return [each for each in term.launches if each.attempt.moment < term.begin_of(week)]


def moments_without_class(term: Term) -> list[float]:
    """When people come one by one, or for the exam."""
    return [each.attempt.moment for each in term.launches if each.group in (None, EXAM)]


# Recorded from the script that first drew these terms: seed -> launches and their checksum.
RECORDED = {
    1: (8003, "83ae7bc6819252c4"),
    2: (5482, "675b0a410b008185"),
    3: (7485, "5dc6532ecd5976f6"),
    4: (4790, "8fa5e20b1397b4f9"),
    5: (7689, "927591809b08b4af"),
}  # as drawn for five weeks


@pytest.mark.parametrize("seed", RECORDED)
def test_a_seed_is_the_same_university_for_ever(seed: int) -> None:
    term = draw_term(seed, 5)
    assert (len(term.launches), checksum(term.launches)) == RECORDED[seed]


def test_a_launch_is_as_it_was_recorded() -> None:
    attempt, group = TERM.launches[1000]
    at = datetime.fromtimestamp(attempt.moment, UTC).isoformat()
    assert (at, group) == ("2026-10-09T16:15:18.049142+00:00", 11)
    assert (attempt.number, attempt.repository, attempt.hub) == (1000, "", "hub")
    assert (attempt.cpu_millicores, attempt.memory_bytes) == (50, 2 * 10**9)
    assert attempt.session_seconds == pytest.approx(12874.241536)
    assert (TERM.classes[11].weekday, TERM.classes[11].hour) == (4, 16)


def test_launches_are_in_order_and_belong_to_classes_to_the_exam_or_to_nobody() -> None:
    moments = [launch.attempt.moment for launch in TERM.launches]
    assert moments == sorted(moments)
    groups = Counter(launch.group for launch in TERM.launches)
    assert TERM.exam is not None
    assert groups[EXAM] == TERM.exam.people
    assert groups.keys() == {None, EXAM, *range(len(TERM.classes))}
    for number, each in enumerate(TERM.classes):
        holidays = {TERM.holiday // 7 + 1} if TERM.holiday % 7 == each.weekday else set()
        out = holidays | set(each.weeks_left_out)
        assert weeks_of(TERM, number) == {1, 2, 3, 4, 5} - out


def test_a_term_has_at_least_three_weeks() -> None:
    with pytest.raises(ValueError, match="at least 3 weeks, not 2"):
        draw_term(1, 2)


def test_the_hub_has_a_profile_for_each_image_if_there_are_several() -> None:
    (image,) = TERM.images
    assert hub_of(TERM) == {
        "singleuser": {
            "image": {"name": "quay.io/uni/image-0", "tag": "2026"},
            "memory": {"guarantee": image.memory_bytes},
            "cpu": {"guarantee": 0.05},
        }
    }
    several = draw_term(1, 5)
    profiles = hub_of(several)["singleuser"]["profileList"]
    assert [profile["kubespawner_override"] for profile in profiles] == [
        {"image": image.ref, "mem_guarantee": image.memory_bytes} for image in several.images
    ]


def test_the_first_weeks_are_those_of_the_whole_term() -> None:
    beginning = first_weeks(TERM, 2)
    assert beginning.launches == TERM.launches[: len(beginning.launches)]
    assert {beginning.week_of(launch.attempt.moment) for launch in beginning.launches} == {1, 2}
    assert (beginning.weeks, beginning.exam) == (2, None)


def test_without_its_exam_a_term_is_otherwise_the_same() -> None:
    term = without_exam(TERM)
    others = [launch for launch in TERM.launches if launch.group != EXAM]
    assert term.exam is None
    assert [each.attempt.moment for each in term.launches] == [e.attempt.moment for e in others]
    assert [each.attempt.number for each in term.launches] == list(range(len(others)))


def test_a_university_of_ten_times_the_size_has_the_same_days() -> None:
    large = ten_times(TERM)
    assert ten_times(TERM) == large
    assert 5 < len(large.classes) / len(TERM.classes) < 20
    assert list(large.classes) == sorted(large.classes, key=lambda class_: class_[:5])
    assert all(course in large.classes for course in TERM.classes)
    alone, more = (sum(launch.group is None for launch in term.launches) for term in (TERM, large))
    # Of small numbers, more is lost where an hour's people are rounded down.
    assert 10 < more / alone < 15
    assert large.exam == TERM.exam
    exam = [sum(launch.group == EXAM for launch in term.launches) for term in (TERM, large)]
    assert exam[0] == exam[1] > 0
    on_holiday = (
        launch.group
        for launch in large.launches
        if 0 <= launch.attempt.moment - large.begin_of_day(large.holiday) < DAY_SECONDS
    )
    assert set(on_holiday) == {None}
    assert ten_times(without_exam(TERM)).exam is None


def test_every_second_week_each_class_comes_in_odd_or_in_even_weeks() -> None:
    term = every_second_week(TERM)
    for number, each in enumerate(term.classes):
        weeks = weeks_of(term, number)
        assert weeks == weeks_of(TERM, number) & ({1, 3, 5} if number % 2 == 0 else {2, 4})
        assert not weeks & set(each.weeks_left_out)
    alone = [sum(launch.group is None for launch in one.launches) for one in (term, TERM)]
    assert alone[0] == alone[1]


def test_a_new_timetable_begins_in_the_fourth_week_and_the_old_classes_end() -> None:
    term = new_timetable(TERM)
    assert new_timetable(TERM) == term
    old = len(TERM.classes)
    assert len(term.classes) - old >= 8
    for number, each in enumerate(term.classes):
        weeks = weeks_of(term, number)
        assert weeks
        assert weeks <= ({1, 2, 3} if number < old else {4, 5})
        assert not weeks & set(each.weeks_left_out)
    # Nothing else changes.
    assert launches_before(term, 4) == launches_before(TERM, 4)
    assert moments_without_class(term) == moments_without_class(TERM)
    assert {launch.group for launch in weeks_before(term, 2)} == {None, *range(old)}


def test_a_third_of_the_classes_moves_in_the_third_week() -> None:
    term = moved_classes(TERM)
    assert moved_classes(TERM) == term
    old = len(TERM.classes)
    gone = [n for n in range(old) if term.classes[n] != TERM.classes[n]]
    assert len(gone) == len(term.classes) - old == old // 3
    for number, moved in zip(gone, term.classes[old:], strict=True):
        was = TERM.classes[number]
        assert (moved.people, moved.image, moved.minute) == (was.people, was.image, was.minute)
        # Another day, or another hour.
        assert (moved.weekday != was.weekday) != (moved.hour != was.hour)
        assert weeks_of(term, number) == weeks_of(TERM, number) & {1, 2}
    for number in range(old, len(term.classes)):
        assert weeks_of(term, number) <= {3, 4, 5}
        begins = [launch.attempt.moment for launch in term.launches if launch.group == number]
        assert {datetime.fromtimestamp(each, UTC).weekday() for each in begins} == {
            term.classes[number].weekday
        }
    for number in set(range(old)) - set(gone):
        assert weeks_of(term, number) == weeks_of(TERM, number)
    assert launches_before(term, 3) == launches_before(TERM, 3)
    assert moments_without_class(term) == moments_without_class(TERM)


def test_a_new_timetable_keeps_the_holiday_and_local_times() -> None:
    early = replace(TERM, holiday=24)  # the fourth week's Thursday
    groups = {
        launch.group
        for launch in new_timetable(early).launches
        if 0 <= launch.attempt.moment - early.begin_of_day(24) < DAY_SECONDS
    }
    assert not groups & set(range(len(TERM.classes), len(new_timetable(TERM).classes)))
    there = new_timetable(in_zone(TERM, CLOCK_CHANGES))
    assert there.launches == in_zone(new_timetable(TERM), CLOCK_CHANGES).launches


def test_before_empty_weeks_only_the_administrator_comes() -> None:
    term = after_empty_weeks(TERM, 2)
    first, second = term.launches[:2]
    at = datetime.fromtimestamp(first.attempt.moment, UTC)
    assert at.isoformat() == "2026-09-21T09:00:00+00:00"
    assert [term.week_of(launch.attempt.moment) for launch in (first, second)] == [-1, 1]
    assert second.attempt == TERM.launches[0].attempt._replace(number=1)


def test_in_a_zone_people_come_at_the_same_local_time_when_its_clock_changes() -> None:
    term = in_zone(TERM, CLOCK_CHANGES)
    by_week: dict[int, set[float]] = {}
    for ours, theirs in zip(TERM.launches, term.launches, strict=True):
        week = term.week_of(theirs.attempt.moment)
        assert week == TERM.week_of(ours.attempt.moment)
        earlier = round(ours.attempt.moment - theirs.attempt.moment, 3)
        by_week.setdefault(week, set()).add(earlier)
    # The clock goes back on the last Sunday of October, the seventh day of the third week.
    assert by_week == {1: {7200.0}, 2: {7200.0}, 3: {7200.0, 3600.0}, 4: {3600.0}, 5: {3600.0}}
    for week in (1, 4):
        begin = datetime.fromtimestamp(term.begin_of(week), ZoneInfo(CLOCK_CHANGES))
        assert (begin.weekday(), begin.hour, begin.minute) == (0, 0, 0)
    assert datetime.fromtimestamp(TERM.begin_of(1), UTC).replace(tzinfo=None) == FIRST_MONDAY
    with pytest.raises(ValueError, match="found 'Nowhere', expected a name of the IANA database"):
        in_zone(TERM, "Nowhere")


def test_of_several_hubs_each_has_whole_classes_and_some_who_come_one_by_one() -> None:
    term = at_hubs(TERM, 3)
    hubs_of: dict[int | None, set[str]] = {}
    for launch in term.launches:
        hubs_of.setdefault(launch.group, set()).add(launch.attempt.hub)
    assert hubs_of.pop(None) == {"faculty-1", "faculty-2", "faculty-3"}
    assert {len(hubs) for hubs in hubs_of.values()} == {1}
    assert {hub for hubs in hubs_of.values() for hub in hubs} == set(hub_names(3))
    # All else is as before.
    moments = [launch.attempt.moment for launch in term.launches]
    assert moments == [launch.attempt.moment for launch in TERM.launches]


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_numbered_and_in_order(name: str) -> None:
    attempts = VARIANTS[name](TERM).attempts
    assert [attempt.number for attempt in attempts] == list(range(len(attempts)))
    moments = [attempt.moment for attempt in attempts]
    assert moments == sorted(moments)
    assert attempts != TERM.attempts
