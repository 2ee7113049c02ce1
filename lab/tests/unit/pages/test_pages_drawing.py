from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from lab.tests.recorded import BEGIN, HOUR, MINUTE
from roost_lab.pages.drawing import MAX_LINES, Row, bars, time_ticks


@given(st.integers(0, 2 * 10**15), st.integers(10 * MINUTE, 4000 * 24 * HOUR))
def test_ticks_of_time_are_few_round_and_within(from_us: int, length_us: int) -> None:
    ticks = time_ticks(from_us, from_us + length_us)
    assert 1 <= len(ticks["tickvals"]) <= 5
    assert len(set(ticks["tickvals"])) == len(ticks["ticktext"])
    assert all(text.endswith(":00") for text in ticks["tickvals"])


def test_ticks_within_a_day_say_the_day_once_and_the_next_day_again() -> None:
    assert time_ticks(BEGIN + 10 * HOUR, BEGIN + 20 * HOUR)["ticktext"] == [
        "18:00\n15 Jan",
        "21:00",
        "00:00\n16 Jan",
        "03:00",
    ]
    assert time_ticks(BEGIN, BEGIN + 5 * 24 * HOUR)["ticktext"] == ["16 Jan", "17 Jan", "18 Jan", "19 Jan", "20 Jan"]


@given(
    st.integers(24 * HOUR, 2 * 10**15),
    st.integers(3 * HOUR, 4000 * 24 * HOUR),
    st.sampled_from(["Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia", "Australia/Lord_Howe"]),
)
def test_ticks_are_where_the_zones_clocks_show_their_labels(from_us: int, length_us: int, name: str) -> None:
    zone = ZoneInfo(name)
    ticks = time_ticks(from_us, from_us + length_us, zone)
    assert 1 <= len(ticks["tickvals"]) <= 5
    for value, text in zip(ticks["tickvals"], ticks["ticktext"], strict=True):
        shown = datetime.fromisoformat(value + "+00:00").astimezone(zone)
        # A label that clocks skip stands where they are changed.
        if shown.replace(tzinfo=None) in times_around(shown, zone):
            assert shown.strftime("%H:%M" if ":" in text else "%-d %b") == text.partition("\n")[0]


def times_around(shown: datetime, zone: ZoneInfo) -> list[datetime]:
    """The time itself, if the zone's clocks are not changed within a day of it."""
    day = timedelta(days=1)
    offsets = {(shown.astimezone(UTC) + shift).astimezone(zone).utcoffset() for shift in (-day, 0 * day, day)}
    return [shown.replace(tzinfo=None)] if len(offsets) == 1 else []


def test_ticks_of_the_night_in_which_clocks_are_changed_are_apart() -> None:
    begin_us = int(datetime(2026, 10, 24, 20, tzinfo=UTC).timestamp()) * 1_000_000
    ticks = time_ticks(begin_us, begin_us + 12 * HOUR, ZoneInfo("Europe/Berlin"))
    assert ticks["ticktext"] == ["00:00\n25 Oct", "03:00", "06:00", "09:00"]
    assert [value[11:16] for value in ticks["tickvals"]] == ["22:00", "02:00", "05:00", "08:00"]


def test_names_are_short_and_told_apart_and_whole_below_the_mouse() -> None:
    nodes = [f"gke-prod-cluster-user-pool-1a2b3c4d-{end}" for end in ("abcd", "x1z9")]
    figure = bars("key", "Caption.", [Row(node, "1", [1]) for node in nodes], [("--user", "users")], {})
    assert figure is not None
    named = [note for note in figure.layout["annotations"] if "hovertext" in note]
    assert [note["hovertext"] for note in named] == nodes
    assert [note["text"] for note in named] == ["…abcd", "…x1z9"]


def test_a_sentence_has_its_end_cut_where_it_has_too_many_lines() -> None:
    figure = bars("key", "Caption.", [Row("a reason " * 40, "1", [1])], [("--user", "users")], {})
    assert figure is not None
    texts = [note["text"] for note in figure.layout["annotations"]]
    assert len(texts) == MAX_LINES + 1
    assert texts[MAX_LINES - 1].endswith(" …")
