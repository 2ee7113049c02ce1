"""Bookings by hubs of other namespaces: what counts, within which bounds, and how the most is divided among hubs."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.values.merge import Settings
from roost.controllers.contract.actions import Notice
from roost.controllers.contract.bookings import BookingSource, bounded
from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
from roost.controllers.headroom.booked import share_out
from roost.controllers.headroom.plan import CONTROLLER as HEADROOM
from roost.controllers.runtime.booking_sources import MOST_EVENTS_OF_HUB, MOST_OF_HUB, keep_config_map, read_config_map
from roost_core.objects.pod import Pod
from roost_core.placement.headroom_windows import parse_moment
from roost_core.release.events import MOST_IN_ALL, Limits
from tests.builders import NAMESPACE, RELEASE, default_values
from tests.popular_builders import user
from tests.unit.controllers.planners import planner_from
from tests.unit.controllers.test_booking_calendar_feed import watching_of

SET = "hub-roost-placeholder-default"
LIMITS = Limits(("default",), 500)
START = parse_moment("2026-11-24T09:00", "UTC")
SELECTOR = {"matchLabels": {"hub": "yes"}}
HUBS = {NAMESPACE: {}, "physics": {"hub": "yes"}, "biology": {"hub": "yes"}, "stranger": {}}


def booking(hub: str, *people: int, padding: int = 0) -> BookingSource:
    events = [
        {"name": f"e{number}", "people": count, "timeZone": "UTC", "start": "2026-11-24T09:00"}
        for number, count in enumerate(people)
    ]
    data = {"events.yaml": json.dumps(events), **({"notes": "x" * padding} if padding else {})}
    item = {"metadata": {"name": "roost-events", "namespace": hub, "uid": hub}, "data": data}
    return read_config_map(keep_config_map(item, hub), LIMITS)


def document(most: int) -> dict[str, Any]:
    values = default_values()
    values["podClasses"]["user"]["match"]["namespaceSelector"] = SELECTOR
    return {
        "version": 1,
        "release": RELEASE,
        "namespace": NAMESPACE,
        "podClasses": values["podClasses"],
        "placeholders": [{"name": "default", "statefulSet": SET, "replicas": 0, "windows": []}],
        "events": {**values["events"], "enabled": True, "maxPlaceholders": most},
    }


def plan(
    *sources: BookingSource, most: int = 1000, pods: tuple[Pod, ...] = (), seconds: float = 60.0
) -> tuple[int, list[Notice]]:
    """The set's placeholders so long after the beginning of the events, and what is told."""
    planner = planner_from(HEADROOM, document(most))
    snapshot = Snapshot(
        RELEASE,
        NAMESPACE,
        pods={pod.key: pod for pod in pods},
        stateful_sets={SET: StatefulSetState(SET, "uid", 0)},
        bookings={source.hub: source for source in sources},
        namespaces=HUBS,
    )
    planned = planner.plan(snapshot, Moment(START + seconds, 10_000.0))
    notices = [action for action in planned.actions if isinstance(action, Notice)]
    return int(planned.gauges["headroom_replicas"]["default",]), notices


def test_a_hubs_booking_counts_its_own_users_and_is_told_in_its_namespace() -> None:
    came = [user(f"{hub}-{number}", "a/b:1", started=START) for hub in ("physics", "biology") for number in range(3)]
    pods = tuple(replace(pod, namespace=pod.name.partition("-")[0]) for pod in came)
    assert plan(booking("physics", 10), pods=pods)[0] == 7
    _, notices = plan(booking("physics", 10), seconds=-3600.0)
    about = [(one.namespace, one.name, one.reason) for one in notices if one.kind == "ConfigMap"]
    assert about == [("physics", "roost-events", "EventBooked")]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (booking("physics", 10, padding=MOST_OF_HUB), f"at most {MOST_OF_HUB} of one hub; none of its events counts"),
        (booking("physics", *[1] * 51), f"at most {MOST_EVENTS_OF_HUB} events of one hub; none of them counts"),
    ],
)
def test_what_is_too_large_or_too_many_is_refused_whole_and_harms_no_other_hub(
    source: BookingSource, fault: str
) -> None:
    wanted, notices = plan(source, booking("biology", 10))
    assert wanted == 10
    (refused,) = [one for one in notices if one.reason == "EventRefused"]
    assert (refused.namespace, refused.warning) == ("physics", True)
    assert fault in refused.message


def test_a_hub_that_books_more_than_is_allowed_takes_nothing_of_a_hub_that_books_little() -> None:
    assert plan(booking("physics", 500, 500), booking("biology", 40), most=100)[0] == 100
    assert share_out({"physics": 1000, "biology": 40}, 100) == {"biology": 40, "physics": 60}


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 2000), max_size=8), st.integers(0, 3000))
def test_nobody_gets_less_than_another_unless_that_is_all_that_it_needs(needs: dict[str, int], total: int) -> None:
    shares = share_out(needs, total)
    assert sum(shares.values()) == min(total, sum(needs.values()))
    for hub, share in shares.items():
        assert share <= needs[hub]
        # But for what a division leaves over.
        assert share == needs[hub] or share + 1 >= max(shares.values())


def test_of_too_many_events_in_all_those_of_hubs_with_few_count_and_the_releases_own() -> None:
    events = booking("physics", 1).events
    own = BookingSource("ConfigMap", "own", "", events * (MOST_IN_ALL - 60))
    large = BookingSource("ConfigMap", "roost-events", "", events * 50, hub="a")
    small = BookingSource("ConfigMap", "roost-events", "", events * 20, hub="b")
    counted = {source.hub: len(source.events) for source in bounded([large, own, small])}
    assert counted == {"": MOST_IN_ALL - 60, "b": 20, "a": 0}


def test_only_selected_namespaces_may_book_and_only_by_the_one_name() -> None:
    values = (f"podClasses.user.match.namespaceSelector={json.dumps(SELECTOR)}", "events.enabled=true")
    watching = watching_of(Settings(json_values=values))
    asked = watching._hub_bookings
    assert asked is not None
    assert asked._stream._selectors["fieldSelector"] == "metadata.name=roost-events"
    assert asked not in watching.caches, "plans don't wait for a right that may be missing"
    namespaces = watching._namespaces
    assert namespaces is not None
    namespaces._objects = dict(HUBS)
    assert [name for name in HUBS if watching._is_hub(name)] == ["physics", "biology"]
