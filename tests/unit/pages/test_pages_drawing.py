from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roost.pages.drawing import NAME_LENGTH, short_names, time_ticks
from tests.recorded import BEGIN, HOUR, MINUTE


@given(st.integers(0, 2 * 10**15), st.integers(10 * MINUTE, 4000 * 24 * HOUR))
def test_ticks_of_time_are_few_round_and_within(from_us: int, length_us: int) -> None:
    ticks = time_ticks(from_us, from_us + length_us)
    assert 1 <= len(ticks["tickvals"]) <= 5
    assert len(set(ticks["tickvals"])) == len(ticks["ticktext"])
    assert all(text.endswith(":00") for text in ticks["tickvals"])


def test_ticks_within_a_day_say_the_day_once_and_the_next_day_again() -> None:
    assert time_ticks(BEGIN + 10 * HOUR, BEGIN + 20 * HOUR)["ticktext"] == [
        "18:00<br>15 Jan",
        "21:00",
        "00:00<br>16 Jan",
        "03:00",
    ]
    assert time_ticks(BEGIN, BEGIN + 5 * 24 * HOUR)["ticktext"] == ["16 Jan", "17 Jan", "18 Jan", "19 Jan", "20 Jan"]


def test_short_names_tell_images_apart_and_fit() -> None:
    names = ["r.example.org/a/base:1", "r.example.org/b/base:1", "r.example.org/c/other:1", "x" * 90]
    short = short_names(names)
    assert short["r.example.org/c/other:1"] == "other:1"
    assert len(set(short.values())) == len(names)
    assert all(len(one) <= NAME_LENGTH for one in short.values())
