"""Forecasts of headroom: for any history."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from roost_core.placement.headroom_forecast import forecast_need, look_ahead
from roost_core.placement.headroom_history import (
    MOST_USERS,
    UNSEEN,
    History,
    history_of,
    read_history,
)
from roost_core.placement.headroom_worth import worth_of

FIRST = 29_520_000
LEVELS = st.one_of(
    st.lists(st.integers(UNSEEN, MOST_USERS), max_size=300),
    # Long enough for a forecast.
    st.tuples(
        st.lists(st.integers(UNSEEN, 50), min_size=20, max_size=60), st.integers(150, 400)
    ).map(lambda one: one[0] * one[1]),
)
HISTORIES = st.builds(
    lambda first, levels: History(first, array("i", levels)), st.integers(0, FIRST), LEVELS
)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "Pacific/Apia"])


@given(
    history=HISTORIES,
    ahead=st.integers(0, 3000),
    came=st.one_of(st.none(), st.integers(-50, 50)),
    prices=st.tuples(st.floats(0, 1000), st.floats(0, 1000)),
    per_node=st.integers(1, 200),
    room=st.integers(0, 300),
    zone=ZONES,
)
def test_dearer_waiting_never_needs_fewer_seats(
    *,
    history: History,
    ahead: int,
    came: int | None,
    prices: tuple[float, float],
    per_node: int,
    room: int,
    zone: str,
) -> None:
    if (outlook := look_ahead(history, history.end + ahead, zone)) is not None:
        cheap, dear = (
            forecast_need(outlook, came, worth_of(price, per_node, history.ahead_minutes), room)
            for price in sorted(prices)
        )
        assert 0 <= cheap.worth <= dear.worth <= 2 * MOST_USERS
        assert 0 <= cheap.steady <= dear.steady
        # A number above the room beside users, or none.
        assert cheap.worth == 0 or cheap.worth > room


@given(history=HISTORIES)
def test_a_stored_history_is_read_back(history: History) -> None:
    found = read_history(history.as_text())
    assert [found.at(minute) for minute in range(history.first, history.end)] == list(
        history.levels
    )


@given(
    sessions=st.lists(
        st.tuples(st.floats(0, 40_000), st.floats(0, 20_000)).map(
            lambda one: (one[0], one[0] + one[1], 1.0)
        ),
        max_size=40,
    )
)
def test_there_are_never_more_than_all_who_came(sessions: list[tuple[float, float, float]]) -> None:
    assert all(0 <= level <= len(sessions) for level in history_of(sessions).levels)
