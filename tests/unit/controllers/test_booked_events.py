"""Booked events: their placeholders and images, what is told of them, and how bookings are divided
among hubs.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.values.merge import SetOptions
from roost.controllers.contract.actions import CreatePod, Done, Notice, Outcome, Planned, ScaleSet
from roost.controllers.contract.bookings import BookingSource, bounded
from roost.controllers.contract.planner import Planner
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
from roost.controllers.headroom.booked import share_out
from roost.controllers.headroom.plan import CONTROLLER as HEADROOM
from roost.controllers.popular_images.plan import PopularMemory, plan_popular_images
from roost.controllers.popular_images.settings import read_popular_settings
from roost.controllers.runtime import booking_sources
from roost.controllers.runtime.booking_sources import (
    MOST_EVENTS_OF_HUB,
    MOST_OF_HUB,
    keep_config_map,
    read_config_map,
)
from roost_core.objects.pod import Pod
from roost_core.placement.headroom_windows import parse_moment
from roost_core.placement.labels import OWN_INSTANCE_LABEL, PLACEHOLDER_SET_LABEL
from roost_core.release.bookings import MOST_IN_ALL, Limits, first_start_after, parse_events
from roost_core.release.reader import Reader
from tests.builders import NAMESPACE, RELEASE, default_values, release_document
from tests.popular_builders import node_of, node_state, popular_document, reference_of, user
from tests.recorded_data import rows
from tests.unit.controllers.planners import only, planner_from
from tests.unit.controllers.test_booking_sources import cluster_of

SEATED_MAP = "hub-roost-bookings"
SET = "hub-roost-placeholder-default"
COURSE = "quay.io/me/course:1"
LIMITS = Limits(("default",), 500)
START = parse_moment("2026-11-24T09:00", "Europe/Berlin")
LECTURE = {
    "name": "lecture",
    "people": 120,
    "timeZone": "Europe/Berlin",
    "start": "2026-11-24T09:00",
    "image": COURSE,
}


def events_document(*booked: dict[str, Any], **changes: Any) -> dict[str, Any]:
    values = default_values()
    return {
        **popular_document(popularImages={"enabled": False}),
        "podClasses": values["podClasses"],
        "placeholders": [{"name": "default", "statefulSet": SET, "replicas": 3, "windows": []}],
        "events": {**values["events"], "enabled": True, "booked": list(booked), **changes},
        "seating": {"enabled": True, "bookings": SEATED_MAP},
    }


def _planner(*booked: dict[str, Any], **changes: Any) -> Planner[Any]:
    return planner_from(HEADROOM, events_document(*booked, **changes))


def _plan(
    planner: Planner[Any],
    minutes: float,
    *pods: Pod,
    replicas: int = 3,
    sources: tuple[BookingSource, ...] = (),
) -> Planned[Any]:
    """Plan so many minutes after the lecture's beginning."""
    snapshot = Snapshot(
        RELEASE,
        NAMESPACE,
        pods={pod.key: pod for pod in pods},
        stateful_sets={SET: StatefulSetState(SET, "uid-set", replicas)},
        bookings={source.name: source for source in sources},
    )
    return planner.plan(snapshot, Moment(START + 60 * minutes, 1000.0 + 60 * minutes))


def _wanted(planned: Planned[Any]) -> int:
    """How many placeholders there should be."""
    return int(planned.gauges["headroom_replicas"]["default",])


def _users(count: int, image: str = COURSE, minutes: float = 1.0, **details: Any) -> list[Pod]:
    started = START + 60 * minutes
    return [
        user(f"{image[-6:]}-{minutes}-{number}", image, started=started, **details)
        for number in range(count)
    ]


def test_the_next_plan_is_made_when_placeholders_are_due() -> None:
    assert _plan(_planner(LECTURE), -120).wake_after_seconds == pytest.approx(105 * 60, abs=0.1)
    # While people come every ten seconds, or as the next placeholders are due to go.
    assert _plan(_planner(LECTURE), 0).wake_after_seconds == pytest.approx(10.05)
    assert _plan(_planner(LECTURE), 14.95).wake_after_seconds == pytest.approx(3.05)


BY_ALL = {key: value for key, value in LECTURE.items() if key != "image"}


@pytest.mark.parametrize(
    ("events", "minutes", "users", "expected"), rows("controllers/people-who-come")
)
def test_placeholders_go_as_people_come(
    events: list[Any], minutes: float, users: list[Any], expected: int
) -> None:
    pods = [pod for some in users for pod in _users(**some)]
    assert _wanted(_plan(_planner(*events), minutes, *pods)) == expected


def test_a_booking_more_than_a_leap_year_ahead_is_asked_about() -> None:
    source = _config_map(EVENT_YAML)
    for seconds, reason in ((0, "EventBooked"), (1, "EventFarAway")):
        minutes = -366 * 1440 - seconds / 60
        planned = _plan(_planner(), minutes, sources=(source,))
        assert [action.reason for action in planned.actions if isinstance(action, Notice)] == [
            reason
        ]


def test_fifty_bookings_are_told_of_in_a_minute_and_the_next_when_it_is_over() -> None:
    events = [{**LECTURE, "name": f"e{number}", "people": 1} for number in range(103)]
    source = _config_map(json.dumps(events))
    planner = _planner()
    told = []
    waits = []
    for seconds in (0, 10, 59, 60, 61, 120, 121):
        moment = Moment(START - 86_400 + seconds, 30.0 + seconds)
        snapshot = Snapshot(RELEASE, NAMESPACE, bookings={"course": source})
        planned = planner.plan(snapshot, moment)
        told.append(len(planned.actions))
        waits.append(planned.wake_after_seconds)
    assert told == [50, 0, 0, 50, 0, 3, 0]
    assert waits[:5] == pytest.approx([60.05, 50.05, 1.05, 60.05, 59.05])


def test_who_has_the_image_of_an_event_counts_for_it_and_not_for_another() -> None:
    exam = {**BY_ALL, "name": "exam", "people": 5}
    course = {**LECTURE, "people": 5}
    some = [*_users(5), *_users(5, "quay.io/me/other:1")]
    for events in ([exam, course], [course, exam]):
        assert _wanted(_plan(_planner(*events), 2, *some)) == 3
        assert _wanted(_plan(_planner(*events), 2, *some[5:])) == 8


def test_what_is_booked_of_a_set_is_shown_while_its_placeholders_are_kept() -> None:
    for minutes, shown in ((-120, {}), (-10, {("default",): 120}), (120, {})):
        assert _plan(_planner(LECTURE), minutes).gauges["headroom_booked"] == shown
    coming = _plan(_planner(LECTURE), 2, *_users(50))
    (scale,) = [action for action in coming.actions if isinstance(action, ScaleSet)]
    # All who have yet to come have theirs.
    assert "as many as" not in scale.why
    assert coming.gauges["headroom_booked"] == {("default",): 70}


def test_placeholders_of_a_class_with_the_image_gate_are_nobody_who_came() -> None:
    document = events_document(BY_ALL)
    document["podClasses"]["placeholder"]["imageGate"] = True
    pods = _users(5, minutes=2, component="user-placeholder")
    assert _wanted(_plan(planner_from(HEADROOM, document), 3, *pods)) == 123


def test_all_events_together_get_no_more_than_the_values_allow_the_first_most() -> None:
    later = {**LECTURE, "name": "seminar", "people": 100, "start": "2026-11-24T09:10"}
    planned = _plan(_planner(LECTURE, later, maxPlaceholders=150), 0)
    assert _wanted(planned) == 153
    (scale,) = [action for action in planned.actions if isinstance(action, ScaleSet)]
    assert (
        "event seminar at Tue 2026-11-24 09:10 CET with 100 people, as many as"
        " events.maxPlaceholders" in scale.why
    )


def test_who_came_to_one_booking_leaves_another_sets_booking_its_placeholders() -> None:
    tutorial = {
        **LECTURE,
        "name": "tutorial",
        "people": 40,
        "set": "gpu",
        "image": "quay.io/me/lab:1",
    }
    document = events_document(LECTURE, tutorial)
    gpu = {**document["placeholders"][0], "name": "gpu", "statefulSet": "gpu"}
    document["placeholders"].append(gpu)
    planned = _plan(planner_from(HEADROOM, document), 2, *_users(60))
    assert planned.gauges["headroom_booked"] == {("default",): 60, ("gpu",): 40}


@pytest.mark.parametrize(
    ("start", "minutes", "is_told"),
    [
        ("09:00", -60, True),
        ("09:00", -1, True),
        ("09:00", 0, False),
        ("09:00", 60, False),
        ("09:00", 3 * 1440, False),
        # It is told of until its hour is over: plans of an hour say the same.
        ("08:30", -1, True),
        ("08:30", 0, False),
    ],
)
def test_of_a_booking_whose_hour_is_over_nobody_is_told(
    start: str, minutes: float, *, is_told: bool
) -> None:
    text = EVENT_YAML.replace("09:00", start)
    planned = _plan(_planner(), minutes, sources=(_config_map(text),))
    reasons = [
        action.reason
        for action in planned.actions
        if isinstance(action, Notice) and action.kind == "ConfigMap"
    ]
    assert reasons == (["EventBooked"] if is_told else [])


def test_an_event_tells_of_more_placeholders_once_and_not_of_each_who_comes() -> None:
    notices = [
        action for action in _plan(_planner(LECTURE), -15).actions if isinstance(action, Notice)
    ]
    (notice,) = notices
    assert (
        notice.message
        == "From 3 to 123 placeholders of set default: event lecture at Tue 2026-11-24 09:00 CET"
        " with 120 people; else the values say so."
    )
    coming = _plan(_planner(LECTURE), 2, *_users(50), replicas=123)
    assert [type(action) for action in coming.actions] == [ScaleSet]


def _config_map(text: str, key: str = "events.yaml", name: str = "course") -> BookingSource:
    return read_config_map(
        keep_config_map({"metadata": {"name": name, "uid": "uid-map"}, "data": {key: text}}), LIMITS
    )


EVENT_YAML = (
    '[{name: lecture, people: 120, start: "2026-11-24T09:00", timeZone: Europe/Berlin, image:'
    f' "{COURSE}"}}]'
)


def test_a_config_map_books_and_its_writer_is_told() -> None:
    planner = _planner()
    source = _config_map(EVENT_YAML)
    assert _wanted(_plan(planner, 0, sources=(source,))) == 123
    (notice,) = [
        action
        for action in _plan(_planner(), -60, sources=(source,)).actions
        if isinstance(action, Notice)
    ]
    assert (notice.kind, notice.name, notice.uid, notice.reason) == (
        "ConfigMap",
        "course",
        "uid-map",
        "EventBooked",
    )
    assert (
        notice.message
        == "Booking lecture at Tue 2026-11-24 09:00 CET: from Tue 2026-11-24 08:45 CET to Tue"
        " 2026-11-24 09:15 CET set default has up to 120 placeholders more, fewer as people"
        f" come. Image {COURSE} is brought to their nodes."
    )


def test_a_config_map_that_is_not_read_yet_counts_as_before_and_that_is_told() -> None:
    planned = _plan(_planner(), -10, sources=(replace(_config_map(EVENT_YAML), is_unread=True),))
    assert _wanted(planned) == 123
    told = [
        action
        for action in planned.actions
        if isinstance(action, Notice) and action.reason == "EventsNotRead"
    ]
    assert [(notice.name, notice.warning) for notice in told] == [("course", True)]
    assert planned.gauges["headroom_bookings_unread"] == {(): 1}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        *rows("controllers/bookings-refused"),
        ("[" * 100_000, "deep"),
        ("- " + "x" * 200_000, "characters"),
        (
            "- {name: a, people: 0x" + "f" * 6000 + "}",
            "[0].people: found a number of thousands of digits",
        ),
        (
            "- {name: a, people: 1" + ":1" * 5000 + "}",
            "[0].people: found a number of thousands of digits",
        ),
        ("- ? " + "k" * 5000 + "\n  : 1", "[0].kkkk"),
    ],
)
def test_a_faulty_config_map_is_told_and_takes_nothing_with_it(text: str, fault: str) -> None:
    sources = (_config_map(text, name="bad"), _config_map(EVENT_YAML))
    assert _wanted(_plan(_planner(), 0, sources=sources)) == 123
    told = [
        action
        for action in _plan(_planner(), -60, sources=sources).actions
        if isinstance(action, Notice)
    ]
    refused = [notice for notice in told if notice.reason == "EventRefused"]
    assert {notice.name for notice in refused} == {"bad"}
    assert all(notice.warning for notice in refused)
    assert any(fault in notice.message for notice in refused), refused
    assert [notice.name for notice in told if notice.reason == "EventBooked"] == ["course"]


def test_a_config_map_without_a_known_key_or_that_fails_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = _config_map(EVENT_YAML, key="event.yml")
    assert source.faults == ('data: found ["event.yml"], expected a key events.yaml.',)
    (fault,) = _config_map("BEGIN:VCALENDAR", key="course.ics").faults
    assert fault.endswith(
        "a key events.yaml, which roost book --calendar FILE writes of a calendar."
    )
    assert max(map(len, _config_map("- ? " + "k" * 100_000 + "\n  : 1").faults)) == 500
    monkeypatch.setattr(booking_sources, "read_events", Mock(side_effect=ZeroDivisionError))
    assert _config_map(EVENT_YAML).faults == (
        'data: found "ZeroDivisionError", expected events that can be read.',
    )


def test_an_event_may_list_its_date_times() -> None:
    text = """
- name: seminar
  people: 20
  start: ["2026-12-01T09:00", "2026-11-24T09:00", "2026-11-24T09:00"]
  timeZone: Europe/Berlin
  calendar: course.ics
"""
    source = _config_map(text)
    assert source.faults == ()
    moments = [START - 1, START, START + 7 * 86_400]
    (event,) = source.events
    assert [first_start_after(event, int(moment)) for moment in moments] == [
        START,
        START + 7 * 86_400,
        None,
    ]
    assert _wanted(_plan(_planner(), 0, sources=(source,))) == 23


def _many(count: int, name: str = "course") -> BookingSource:
    entries = [
        f'{{name: e{index}, people: 1, start: "2026-11-24T09:00", timeZone: UTC}}'
        for index in range(count)
    ]
    return _config_map(f"[{', '.join(entries)}]", name=name)


def test_a_config_map_books_200_events() -> None:
    source = _many(300)
    assert len(source.events) == 200
    expected = "expected at most 200 events; the first 200 count."
    assert source.faults == (f"events.yaml: found 300, {expected}",)


def test_all_sources_book_2000_events_together_and_who_exceeds_that_is_told() -> None:
    sources = list(bounded(_many(150, f"m{number:02}") for number in range(14)))
    assert sum(len(source.events) for source in sources) == 1950
    assert sources[-1].events == ()
    assert sources[-1].faults == (
        "data: found 150 events beside those of others, expected 2000 in all.",
    )


def test_no_more_than_50_are_told_a_minute_and_the_others_later() -> None:
    planner = _planner()
    told = [
        _plan(planner, minutes, sources=(_many(120),)).actions
        for minutes in (-10, -9.5, -9, -8, -7)
    ]
    assert [len(actions) for actions in told] == [50, 0, 50, 20, 0]
    assert len({action for actions in told for action in actions}) == 120
    # Who books much doesn't keep another from an answer.
    first = _plan(_planner(), -10, sources=(_many(120), _many(1, name="z"))).actions
    assert [notice.name for notice in first if isinstance(notice, Notice)].count("z") == 1


def test_what_could_not_be_told_is_told_again() -> None:
    planner = _planner()
    sources = (_config_map(EVENT_YAML),)
    (notice,) = _plan(planner, -60, sources=sources).actions
    planner.note([Done(notice, Outcome.HELD_BACK)], Moment(START, 0.0))
    assert _plan(planner, -59, sources=sources).actions == [notice]
    planner.note([Done(notice, Outcome.DONE)], Moment(START, 0.0))
    assert not _plan(planner, -58, sources=sources).actions


def test_an_event_in_years_is_told_as_a_likely_mistake() -> None:
    planned = _plan(_planner(), -60, sources=(_config_map(EVENT_YAML.replace("2026", "2062")),))
    notice = only(Notice, planned.actions)
    assert (notice.reason, notice.warning) == ("EventFarAway", True)


def _placeholder(node: str, set_name: str = "default") -> Pod:
    labels = {PLACEHOLDER_SET_LABEL: set_name, OWN_INSTANCE_LABEL: RELEASE}
    return Pod(
        NAMESPACE, f"p-{node}", uid=f"uid-p-{node}", labels=labels, node_name=node, phase="Running"
    )


def _created(
    minutes: float, pods: list[Pod], names: Iterable[str], images: dict[str, int] | None = None
) -> list[CreatePod]:
    """Pods that pull, in a plan with nodes of these names that joined a minute ago."""
    settings = read_popular_settings(ReleaseDocument(Reader(), events_document(LECTURE)))
    now = START + 60 * minutes
    states = {name: node_state(name, joined=now - 60, images=images) for name in names}
    snapshot = Snapshot(RELEASE, NAMESPACE, nodes=states, pods={pod.key: pod for pod in pods})
    planned = plan_popular_images(snapshot, PopularMemory(), settings, Moment(now, 1000.0))
    return [action for action in planned.actions if isinstance(action, CreatePod)]


POPULAR = [user(f"u{number}", "quay.io/me/popular:1", "a") for number in range(9)]
OF_ANOTHER = replace(
    _placeholder("a"), labels={PLACEHOLDER_SET_LABEL: "default", OWN_INSTANCE_LABEL: "other"}
)


@pytest.mark.parametrize(
    ("minutes", "pods", "held", "expected"),
    [
        (-10, [_placeholder("a")], False, "a"),
        (-10, [_placeholder("a"), _placeholder("b")], False, "ab"),
        (-16, [_placeholder("a")], False, ""),
        (16, [_placeholder("a")], False, ""),
        (-10, [_placeholder("a")], True, ""),
        (-10, [_placeholder("a", "gpu"), OF_ANOTHER], False, ""),
        (-60, POPULAR, False, ""),
    ],
    ids=[
        "one",
        "two",
        "too early",
        "too late",
        "there",
        "another's placeholders",
        "only events are on",
    ],
)
def test_the_image_goes_to_the_placeholders_nodes(
    minutes: float, pods: list[Pod], held: bool, expected: str
) -> None:
    created = _created(minutes, pods, "ab", {COURSE: 10**9} if held else None)
    assert [(node_of(creation.body), reference_of(creation.body)) for creation in created] == [
        (name, COURSE) for name in expected
    ]
    assert all(
        one.why == f"an event is booked with {COURSE}, and {node_of(one.body)} lacks it"
        for one in created
    )


def test_twenty_nodes_are_pulled_to_at_a_time() -> None:
    nodes = [f"n{number}" for number in range(30)]
    assert len(_created(-10, list(map(_placeholder, nodes)), nodes)) == 20


NINE_UTC = parse_moment("2026-11-24T09:00", "UTC")
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
    return release_document(
        {
            "podClasses": {"user": {"match": {"namespaceSelector": SELECTOR}}},
            "placeholders": [{"name": "default", "replicas": 0}],
            "events": {"enabled": True, "maxPlaceholders": most},
        }
    )


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
    planned = planner.plan(snapshot, Moment(NINE_UTC + seconds, 10_000.0))
    notices = [action for action in planned.actions if isinstance(action, Notice)]
    return int(planned.gauges["headroom_replicas"]["default",]), notices


def test_a_hubs_booking_counts_its_own_users_and_is_told_in_its_namespace() -> None:
    came = [
        user(f"{hub}-{number}", "a/b:1", started=NINE_UTC)
        for hub in ("physics", "biology")
        for number in range(3)
    ]
    pods = tuple(replace(pod, namespace=pod.name.partition("-")[0]) for pod in came)
    assert plan(booking("physics", 10), pods=pods)[0] == 7
    _, notices = plan(booking("physics", 10), seconds=-3600.0)
    about = [
        (notice.namespace, notice.name, notice.reason)
        for notice in notices
        if notice.kind == "ConfigMap"
    ]
    assert about == [("physics", "roost-events", "EventBooked")]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (
            booking("physics", 10, padding=MOST_OF_HUB),
            f"at most {MOST_OF_HUB} of one hub; none of its bookings counts",
        ),
        (
            booking("physics", *[1] * 51),
            f"at most {MOST_EVENTS_OF_HUB} bookings of one hub; none of them counts",
        ),
    ],
)
def test_what_is_too_much_is_refused_whole_and_harms_no_other_hub(
    source: BookingSource, fault: str
) -> None:
    wanted, notices = plan(source, booking("biology", 10))
    assert wanted == 10
    (refused,) = [notice for notice in notices if notice.reason == "EventRefused"]
    assert (refused.namespace, refused.warning) == ("physics", True)
    assert fault in refused.message


def test_a_hub_that_books_more_than_is_allowed_takes_nothing_of_a_hub_that_books_little() -> None:
    assert plan(booking("physics", 500, 500), booking("biology", 40), most=100)[0] == 100
    assert share_out({"physics": 1000, "biology": 40}, 100) == {"biology": 40, "physics": 60}


def test_a_hub_whose_people_have_come_leaves_the_rest_to_another_hub() -> None:
    came = _users(80, minutes=0, namespace="physics")
    at_nine = tuple(replace(pod, created=NINE_UTC) for pod in came)
    both = (booking("physics", 100), booking("biology", 100))
    assert plan(*both, most=100)[0] == 100
    assert plan(*both, most=100, pods=at_nine)[0] == 100


def test_what_a_division_leaves_over_goes_to_the_same_hub_in_each_plan() -> None:
    for needs in ({"a": 3, "b": 3}, {"b": 3, "a": 3}):
        assert share_out(needs, 5) == {"a": 2, "b": 3}


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 2000), max_size=8), st.integers(0, 3000))
def test_nobody_gets_less_than_another_unless_that_is_all_that_it_needs(
    needs: dict[str, int], total: int
) -> None:
    shares = share_out(needs, total)
    assert sum(shares.values()) == min(total, sum(needs.values()))
    for hub, share in shares.items():
        assert share <= needs[hub]
        # But for what a division leaves over.
        assert share == needs[hub] or share + 1 >= max(shares.values())


def test_of_too_many_events_in_all_those_of_hubs_with_few_count_and_the_releases_own() -> None:
    events = booking("physics", 1).events
    own = BookingSource("own", "", events * (MOST_IN_ALL - 60))
    large = BookingSource("roost-events", "", events * 50, hub="a")
    small = BookingSource("roost-events", "", events * 20, hub="b")
    counted = {source.hub: len(source.events) for source in bounded([large, own, small])}
    assert counted == {"": MOST_IN_ALL - 60, "b": 20, "a": 0}


def test_only_selected_namespaces_may_book_and_only_by_the_one_name() -> None:
    values = (
        f"podClasses.user.match.namespaceSelector={json.dumps(SELECTOR)}",
        "events.enabled=true",
    )
    cluster = cluster_of(SetOptions(json_values=values))
    asked = cluster.bookings._of_hubs.cache
    assert asked is not None
    assert asked._stream._selectors["fieldSelector"] == "metadata.name=roost-events"
    assert asked not in cluster.caches, "plans don't wait for a right that may be missing"
    namespaces = cluster.namespaces.cache
    assert namespaces is not None
    namespaces._objects = dict(HUBS)
    assert [name for name in HUBS if cluster.bookings._is_hub(name)] == ["physics", "biology"]


SEATED = {**LECTURE, "people": 150, "group": "bio101"}


def test_seated_people_find_room_when_their_servers_start_and_count_once() -> None:
    # 7.5 minutes before: half of 64 at once, each in 30 s, and two minutes to spare.
    assert _wanted(_plan(_planner(SEATED), -15.1)) == 153
    assert _wanted(_plan(_planner({**SEATED, "group": ""}), -15.1)) == 3
    # Before an event that seats nobody, who comes so early is none of its people.
    early = _users(90, minutes=-7)
    assert _wanted(_plan(_planner(SEATED), -6, *early)) == 63
    assert _wanted(_plan(_planner({**SEATED, "group": ""}), -6, *early)) == 153
    # All are seated, those who don't come, too: no placeholder waits for them.
    assert _wanted(_plan(_planner(SEATED), 10, *_users(150, minutes=-6))) == 3


def test_a_booking_says_that_nobody_is_seated_where_seating_is_off() -> None:
    document = events_document() | {"seating": {"enabled": False}}
    source = BookingSource(SEATED_MAP, "uid", tuple(_events_of(SEATED)))
    planned = _plan(planner_from(HEADROOM, document), -60, sources=(source,))
    (notice,) = [action for action in planned.actions if isinstance(action, Notice)]
    assert "Nobody's server is started before: seating.enabled is false." in notice.message
    on = _plan(_planner(), -60, sources=(source,))
    assert not [
        action for action in on.actions if isinstance(action, Notice) and "Nobody" in action.message
    ]


def test_bookings_of_a_config_map_that_seating_does_not_read_are_nobodys_who_is_seated() -> None:
    other = BookingSource("course", "uid", tuple(_events_of(SEATED)))
    read = replace(other, name=SEATED_MAP)
    assert _wanted(_plan(_planner(), -15.1, sources=(read,))) == 153
    assert _wanted(_plan(_planner(), -15.1, sources=(other,))) == 3
    planned = _plan(_planner(), -60, sources=(other,))
    (notice,) = [action for action in planned.actions if isinstance(action, Notice)]
    assert f"started before: seating reads ConfigMap {SEATED_MAP} alone." in notice.message


def _events_of(*entries: dict[str, Any]) -> list[Any]:
    read = Reader()
    events = parse_events(read, list(entries), "", LIMITS)
    assert read.faults == []
    return list(events)
