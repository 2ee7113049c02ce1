"""ConfigMaps that book events: which are watched and read, within which bounds."""

import json
from typing import Any, cast

import pytest

from generator.values.merge import SetOptions
from roost.controllers.contract.bookings import BookingSource
from roost.controllers.controllers_settings import parse_settings
from roost.controllers.runtime import booking_sources
from roost.controllers.runtime.booking_sources import (
    MOST_CONFIG_MAPS,
    MOST_TEXT_IN_ALL,
    BookingText,
    ConfigMapReader,
    ReadingTime,
    keep_config_map,
)
from roost.controllers.runtime.watching.watched_cluster import WatchedCluster
from roost_core.release.bookings import MOST_TEXT, Limits
from roost_lab.simulator.setup.policy import load_policy
from tests.recorded_data import rows

LECTURE = '[{name: lecture, people: 9, start: "2026-11-24T09:00", timeZone: UTC}]'


def _config_map(name: str, text: str = "") -> BookingText:
    return keep_config_map({"metadata": {"name": name, "uid": name}, "data": {"events.yaml": text}})


def test_config_maps_are_bounded_in_number_and_in_bytes() -> None:
    reader = ConfigMapReader(Limits(("default",), 100), ReadingTime())
    many = {
        f"{number:03}": _config_map(str(number), LECTURE) for number in range(MOST_CONFIG_MAPS + 2)
    }
    sources = reader.sources(many)
    assert [len(source.events) for source in sources] == [1] * MOST_CONFIG_MAPS + [0, 0]
    assert "expected 200 with 4 MiB in all" in sources[-1].faults[0]
    large = {
        str(number): _config_map(str(number), LECTURE + " " * (MOST_TEXT - len(LECTURE)))
        for number in range(40)
    }
    counted = [len(source.events) for source in reader.sources(large)]
    assert sum(counted) == MOST_TEXT_IN_ALL // MOST_TEXT
    longer = {"a": _config_map("a", "x" * (MOST_TEXT + 1))}
    assert reader.sources(longer)[0].faults == (
        f'events.yaml: found "{MOST_TEXT + 1} characters", expected at most {MOST_TEXT}.',
    )


def test_one_that_is_written_again_and_again_costs_the_others_no_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    read: list[str] = []

    def slow(text: BookingText, *_more: object) -> BookingSource:
        now[0] += 2.0
        read.append(text.name)
        return BookingSource(text.name, text.uid, ())

    monkeypatch.setattr(booking_sources, "read_config_map", slow)
    reader = ConfigMapReader(Limits(("default",), 100), ReadingTime(lambda: now[0]))
    texts = {each: _config_map(each) for each in "bcde"}
    for name in "abcde":
        # "a" is written in each turn.
        others = {each: texts[each] for each in texts if each <= name}
        sources = reader.sources({"a": _config_map("a"), **others})
    # All that fits in a minute's time; what was read before counts on, and what wasn't is named.
    assert read == ["a", "b", "a"]
    assert [source.name for source in sources if source.is_unread] == ["a", "c", "d", "e"]
    now[0] += 60.0
    assert [
        source.name for source in reader.sources({each: _config_map(each) for each in "abcde"})
    ] == list("abcde")
    assert read[3:] == ["c", "d", "e"]


def cluster_of(settings: SetOptions) -> WatchedCluster:
    """What the controllers watch under a shipped policy with these values; it never begins."""
    policy = load_policy("roost", (), settings)
    release = parse_settings(
        policy.controllers or {}, policy.scheduler_configuration, policy.minor
    ).shared
    return WatchedCluster(cast("Any", None), release, on_change=lambda: None)


@pytest.mark.parametrize(("values", "watched"), rows("controllers/watched-config-maps"))
def test_config_maps_are_watched_only_where_the_values_ask_for_it(
    values: dict[str, Any], watched: int
) -> None:
    cluster = cluster_of(
        SetOptions(json_values=tuple(f"{key}={json.dumps(value)}" for key, value in values.items()))
    )
    kinds = [cache.kind for cache in (*cluster.caches, *cluster._others.caches)]
    assert kinds.count("configmaps") == watched
