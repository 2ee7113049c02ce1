"""When many people come at once, and what they waited for."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lab.tests.moments import BEGIN, HOUR, MINUTE, SECOND
from roost_lab.report.statistics import Span
from roost_lab.view.crowds import (
    CROWD_US,
    FEWEST_PEOPLE,
    FOR_IMAGE,
    FOR_NODE,
    Wait,
    begin_of,
    find_crowds,
    people_in,
    tell_crowd,
)

DAY = Span(BEGIN, BEGIN + 24 * HOUR)
SLOW = 30 * SECOND


@given(
    st.lists(st.integers(BEGIN, DAY.to_us - 1), max_size=60),
    st.integers(0, 23),
    st.integers(FEWEST_PEOPLE + 5, 200),
)
def test_a_class_among_people_who_come_one_by_one_is_found_once(
    others: list[int], hour: int, people: int
) -> None:
    begin = BEGIN + hour * HOUR + 20 * MINUTE
    crowd = [begin - 3 * MINUTE + n * 6 * MINUTE // people for n in range(people)]
    arrivals = sorted(others + crowd)
    found = find_crowds(arrivals, DAY)
    holding = [span for span in found if span.from_us <= begin < span.to_us]
    assert len(holding) == 1
    inside = arrivals[people_in(arrivals, holding[0])]
    assert len(inside) >= people
    assert all(holding[0].from_us <= at_us < holding[0].to_us for at_us in inside)
    for before, after in pairwise(found):
        assert before.to_us <= after.from_us


@given(st.integers(1, 40), st.integers(0, 59))
def test_people_who_come_all_the_time_are_no_crowd(each_minute: int, second: int) -> None:
    arrivals = [
        BEGIN + minute * MINUTE + second * SECOND
        for minute in range(24 * 60)
        for _ in range(each_minute)
    ]
    assert find_crowds(arrivals, DAY) == []


def test_few_people_are_no_crowd_and_none_are_none() -> None:
    assert find_crowds([BEGIN + HOUR] * (FEWEST_PEOPLE - 1), DAY) == []
    assert len(find_crowds([BEGIN + HOUR] * FEWEST_PEOPLE, DAY)) == 1
    assert find_crowds([], DAY) == []


def test_a_class_begins_where_the_middle_of_its_people_comes() -> None:
    nine_fifteen = BEGIN + 9 * HOUR + 15 * MINUTE
    assert begin_of([nine_fifteen + n * SECOND for n in range(-150, 100)]) == nine_fifteen
    assert CROWD_US > 250 * SECOND


def test_what_a_crowd_waited_for_is_told_by_person() -> None:
    begin = BEGIN + 9 * HOUR + 15 * MINUTE

    def wait(name: str, seconds: int, reason: str, after: int = 0) -> Wait:
        return Wait(begin + after * SECOND, seconds * SECOND, reason, name)

    quick = [wait(f"q{n}", 2, FOR_NODE) for n in range(3)]
    clock = f"{9 + (BEGIN // HOUR) % 24}:15"
    assert tell_crowd(quick, SLOW) == f"{clock}: 3 people come; nobody waits longer than 30 s."
    told = tell_crowd([*quick, wait("a", 40, FOR_NODE)], SLOW)
    assert told == f"{clock}: 4 people come; 1 waits longer than 30 s for a node, at most 40 s."
    # Whose first try was given up after five minutes waited on.
    tries = [wait("a", 300, FOR_NODE), wait("b", 40, FOR_IMAGE), wait("a", 50, FOR_IMAGE, 310)]
    assert tell_crowd([*quick, *tries], SLOW) == (
        f"{clock}: 5 people come; 2 wait longer than 30 s: 1 for a node, 1 for an image,"
        " at most 6 min."
    )
