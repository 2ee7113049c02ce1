"""Forecasts of headroom: for any history."""

from hypothesis import given
from hypothesis import strategies as st

from roost_core.placement.headroom_forecast import experience_of, forecast_hour
from roost_core.placement.headroom_history import MOST_GROWTH, History, history_of, read_history

BOOT = 300
FIRST_HOUR = 492_000
HISTORIES = st.builds(
    lambda first, growth: History(BOOT, first, tuple(growth)),
    st.integers(0, 1_000_000),
    st.one_of(
        st.lists(st.one_of(st.none(), st.integers(0, MOST_GROWTH)), max_size=400),
        # Long enough for a forecast.
        st.lists(st.integers(0, 50), min_size=72, max_size=400),
    ),
)
QUANTILES = st.floats(0.01, 0.99)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "Pacific/Apia"])


@given(history=HISTORIES, ahead=st.integers(0, 400), quantiles=st.tuples(QUANTILES, QUANTILES), zone=ZONES)
def test_a_higher_quantile_never_needs_fewer(
    history: History, ahead: int, quantiles: tuple[float, float], zone: str
) -> None:
    experience = experience_of(history, zone)
    moment = (history.end_hour + ahead) * 3600.0
    low, high = (forecast_hour(experience, moment, quantile) for quantile in sorted(quantiles))
    assert (low is None) == (high is None)
    if low is not None and high is not None:
        assert 0 <= low.placeholders <= high.placeholders <= MOST_GROWTH


@given(history=HISTORIES)
def test_a_stored_history_is_read_back(history: History) -> None:
    assert read_history(history.as_text()) == history


@given(
    growth=st.lists(st.integers(0, 40), min_size=96, max_size=300),
    factor=st.integers(2, 9),
    quantile=st.floats(0.5, 0.95),
)
def test_more_users_never_need_fewer(growth: list[int], factor: int, quantile: float) -> None:
    moment = (FIRST_HOUR + len(growth)) * 3600.0
    small, large = (
        forecast_hour(
            experience_of(History(BOOT, FIRST_HOUR, tuple(each * times for each in growth)), "UTC"), moment, quantile
        )
        for times in (1, factor)
    )
    assert small is not None
    assert large is not None
    assert large.usual == small.usual * factor or abs(large.usual / (small.usual * factor) - 1) < 1e-9
    if small.placeholders >= small.usual:
        assert large.placeholders >= small.placeholders


@given(
    sessions=st.lists(
        st.tuples(st.floats(0, 40_000), st.floats(0, 20_000)).map(lambda one: (one[0], one[0] + one[1], 1.0)),
        max_size=40,
    )
)
def test_growth_is_never_more_than_all_who_came(sessions: list[tuple[float, float, float]]) -> None:
    assert all(0 <= (growth or 0) <= len(sessions) for growth in history_of(sessions, BOOT).growth)
