"""The arms `booked` and `known` of `benchmarks.term`, and what controllers tell of learning."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from benchmarks import term_figures as figures
from benchmarks import term_playing as playing
from benchmarks.term_figures import IMPORTED, NONE, Period, Run, Told, Waits
from benchmarks.term_playing import BOOKED, KNOWN, Job
from benchmarks.terms import (
    EXAM,
    Launch,
    after_empty_weeks,
    draw_term,
    every_second_week,
    first_weeks,
    in_zone,
    weeks_before,
)
from roost_core.placement.headroom_history import read_history

KARPENTER = "karpenter"
TERM = draw_term(4, 5)
DAY = 86_400.0


# What is booked


def test_each_class_is_booked_once_with_all_its_people_until_the_terms_end() -> None:
    booked = playing.timetable_of(TERM)
    assert [each["people"] for each in booked] == [taught.people for taught in TERM.classes]
    first, lesson = booked[0], TERM.classes[0]
    assert first == {
        "name": "class 1",
        "people": lesson.people,
        "start": f"{lesson.minute} {lesson.hour} * 10,11 {lesson.weekday + 1}",
        "timeZone": "UTC",
        "until": "2026-11-08",
    }


def test_an_image_is_booked_where_the_hub_has_several_and_times_are_the_terms_zone() -> None:
    several = in_zone(draw_term(1, 5), "Europe/Berlin")
    assert len(several.images) > 1
    for each, lesson in zip(playing.timetable_of(several), several.classes, strict=True):
        assert each["image"] == several.images[lesson.image].ref
        assert each["timeZone"] == "Europe/Berlin"


def test_only_the_arm_booked_books() -> None:
    values: Any = playing.policy_of_job(Job(4, BOOKED, KARPENTER)).merged.values
    assert values["events"]["enabled"]
    assert values["events"]["booked"] == playing.timetable_of(TERM)
    imported: Any = playing.policy_of_job(Job(4, IMPORTED, KARPENTER)).merged.values
    assert imported["placeholders"] == values["placeholders"]
    assert not imported["events"]["enabled"]


# What is known


def days_of(launches: list[Launch], begin: float, number: int) -> set[int]:
    return {
        int((launch.attempt.moment - begin) // DAY) for launch in launches if launch.group == number
    }


def test_the_weeks_before_have_the_same_timetable_and_other_people() -> None:
    before = weeks_before(TERM, 2)
    begin = TERM.begin_of(-1)
    assert begin <= before[0].attempt.moment <= before[-1].attempt.moment < TERM.begin_of(1)
    for number, lesson in enumerate(TERM.classes):
        assert days_of(before, begin, number) == {lesson.weekday, lesson.weekday + 7}
    people = Counter(one.group for one in before)
    assert EXAM not in people
    most = 2 * TERM.classes[0].people
    assert 0.84 * most - 2 <= people[0] <= most
    assert [launch.attempt.moment for launch in weeks_before(TERM, 2)] == [
        launch.attempt.moment for launch in before
    ]


def test_the_weeks_before_follow_the_terms_variants() -> None:
    late = weeks_before(after_empty_weeks(TERM, 2), 2)
    assert TERM.begin_of(-3) <= late[0].attempt.moment <= late[-1].attempt.moment
    assert late[-1].attempt.moment < TERM.begin_of(-1)
    halved = weeks_before(every_second_week(TERM), 2)
    weeks = [{TERM.week_of(one.attempt.moment) for one in halved if one.group == n} for n in (0, 1)]
    assert weeks == [{-1}, {0}]
    berlin, utc = weeks_before(in_zone(TERM, "Europe/Berlin"), 1), weeks_before(TERM, 1)
    assert {
        round(there.attempt.moment - here.attempt.moment)
        for here, there in zip(berlin, utc, strict=True)
    } == {7200}


def test_a_history_counts_servers_by_their_size() -> None:
    policy = playing.policy_of_job(Job(4, KNOWN, KARPENTER))
    begin = TERM.begin_of(1)
    seat = TERM.launches[0].attempt._replace(moment=begin, session_seconds=600.0)
    large = seat._replace(moment=begin + 60, memory_bytes=4 * 10**9)
    history = read_history(playing.history_text([Launch(seat, 0), Launch(large, 0)], policy))
    assert list(history.levels) == [1, 3]


# Replays


def test_in_the_first_class_who_is_booked_or_known_waits_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Monday's first class begins at eleven.
    begin = TERM.begin_of(1) + 10 * 3600.0
    hours = [launch for launch in TERM.launches if begin < launch.attempt.moment < begin + 5400]
    launches = [
        each._replace(attempt=each.attempt._replace(number=number))
        for number, each in enumerate(hours)
    ]
    term = replace(first_weeks(TERM, 1), launches=launches)
    monkeypatch.setattr(playing, "term_of_job", lambda _job: term)
    arms = (NONE, IMPORTED, BOOKED, KNOWN)
    runs = {arm: playing.play(Job(4, arm, KARPENTER, weeks=1)) for arm in arms}
    late = {arm: run.weeks[0].everybody.late_percent for arm, run in runs.items()}
    assert {run.weeks[0].most_nodes > 0 for run in runs.values()} == {True}
    assert late[NONE] >= late[IMPORTED] > 50
    assert late[BOOKED] < 1
    assert late[KNOWN] < 5
    assert {arm for arm, run in runs.items() if run.told is not None} == {IMPORTED}
    table = figures.show_first_week({KARPENTER: {arm: {4: run} for arm, run in runs.items()}})
    assert table.count("(seed 4)") == 5 * len(arms)


# What is told


def run_of(people_hours: float, node_hours: float, told: Told | None = None) -> Run:
    waits = Waits(100, 0.5, 2.4, 2.0, people_hours)
    nobody = Waits(0, 0.0, 0.0, 0.0, 0.0)
    before = Period(nobody, nobody, 10.0, 1)
    week = Period(waits, waits, node_hours, 5)
    return Run(before, (week, week), week, 1.0, told)


def test_what_is_told_of_learning_is_judged_by_both_arms_whole_replays() -> None:
    none = {1: run_of(50.0, 100.0), 2: run_of(50.0, 100.0)}
    told = Told(saved_hours=72.0, node_hours=9.0)
    imported = {1: run_of(10.0, 105.0, told), 2: run_of(10.0, 106.0, told)}
    saved = figures.saved_hours_error(imported, none)
    assert saved == pytest.approx({1: 10.0, 2: 10.0})
    assert figures.node_hours_error(imported, none) == pytest.approx({1: 10.0, 2: 25.0})
    runs = {KARPENTER: {NONE: none, IMPORTED: imported}}
    texts = [each.text for each in figures.judge(runs)]
    assert (
        texts[-1]
        == "told node-hours of learning, wrong by: median 17.50 % (at most 25), worst seed 25.00 %"
        " (seed 2, at most 25)"
    )
    assert "| karpenter  | 2    | 72.0" in figures.show_told(runs)
    # The truth is the difference to the mean of all draws of the hub alone.
    draws = (run_of(48.0, 99.0), run_of(46.0, 101.0), run_of(56.0, 97.0))
    drawn = {1: replace(none[1], other_draws=draws)}
    assert figures.node_hours_error(imported, drawn) == pytest.approx({1: 100 - 100 * 9 / 11.5})
    assert figures.saved_hours_error(imported, drawn) == pytest.approx({1: 10.0})
    silent = {1: run_of(10.0, 105.0)}
    assert len(figures.judge({KARPENTER: {NONE: none, IMPORTED: silent}})) == 3
    assert figures.show_told({KARPENTER: {NONE: none, IMPORTED: silent}}) == ""
