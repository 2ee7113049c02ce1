"""What one namespace's people write changes nothing for others, but within bounds that are stated
here.

A stranger's namespace is none of the release's hubs; a hostile hub is one. Both may write any pods
and bookings. Their pods ask for nothing: room that is used is used, with Roost and without.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast
from unittest import mock

from hypothesis import example, given, settings
from hypothesis import strategies as st

from roost.controllers.contract.actions import (
    Action,
    ChangeNode,
    CreatePod,
    DeletePod,
    EvictPod,
    Notice,
    ScaleSet,
)
from roost.controllers.contract.bookings import bounded
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
from roost.controllers.registry import CONTROLLERS
from roost.controllers.runtime.booking_sources import (
    MOST_OF_HUB,
    ConfigMapReader,
    ReadingTime,
    keep_config_map,
)
from roost.controllers.runtime.watching.pods import PodReader
from roost.controllers.runtime.watching.watched_cluster import WatchedCluster
from roost_core.kube.event_stream import ListWatch
from roost_core.objects.fields import JSONObject
from roost_core.placement import labels
from roost_core.placement.kubelet_pulls import PULLED, PullEvent
from roost_core.release.reader import Reader
from tests.builders import IMAGE, NAMESPACE, RELEASE, release_document
from tests.popular_builders import WALL, node_state
from tests.recorded_data import object_of

SET = "hub-roost-placeholder-default"
HUBS = {
    NAMESPACE: {"hubs": "yes"},
    "good": {"hubs": "yes"},
    "evil": {"hubs": "yes"},
    "stranger": {},
}
NODES = ("a", "b", "c")
MOST_BOOKED = 40
VALUES = {
    "singleuser": {"image": {"name": IMAGE.partition(":")[0], "tag": IMAGE.partition(":")[2]}},
    "podClasses": {
        "user": {
            "match": {"namespaceSelector": {"matchLabels": {"hubs": "yes"}}},
            "warm": {"podsPerNode": 3},
        }
    },
    "placeholders": [
        {
            "name": "default",
            "replicas": 2,
            "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
        }
    ],
    "popularImages": {"enabled": True},
    "events": {"enabled": True, "maxPlaceholders": MOST_BOOKED},
}
LABELS = {
    "component": [
        *["singleuser-server"] * 4,
        "binderhub-build",
        "user-placeholder",
        "image-puller",
        "dind",
        "x" * 63,
    ],
    "app": ["jupyterhub", "binder"],
    labels.PART_OF_LABEL: [labels.OWN_PART],
    labels.OWN_INSTANCE_LABEL: [RELEASE],
    labels.OWN_COMPONENT_LABEL: [labels.OWN_POPULAR_PULLER, labels.OWN_PLACEHOLDER, "puller"],
    labels.PLACEHOLDER_SET_LABEL: ["default"],
}
STATUSES: list[JSONObject] = object_of("pod-statuses")
HOSTILE_IMAGES = (IMAGE, "evil/image:1", "x" * 4000, "quay.io/evil/\u0000:1", "")


DOCUMENT = release_document(VALUES)


def pod_of(namespace: str, name: str, **more: Any) -> JSONObject:
    """A pod that asks for nothing."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        **more.pop("metadata", {}),
    }
    metadata.setdefault("creationTimestamp", "2027-01-15T07:00:00Z")
    containers = [{"name": "c", "image": more.pop("image", IMAGE)}]
    return {
        "metadata": metadata,
        "spec": {"containers": containers, **more.pop("spec", {})},
        "status": more["status"],
    }


PULLER = "hub-roost-puller-c"
OF_OTHERS: list[JSONObject] = object_of("pods-of-others")


@st.composite
def hostile_pods(draw: st.DrawFn) -> list[JSONObject]:
    """Pods that say they were somebody else's."""
    pods = []
    for number in range(draw(st.integers(1, 5))):
        chosen = {
            key: draw(st.sampled_from(values))
            for key, values in LABELS.items()
            if draw(st.booleans())
        }
        annotations = {
            labels.POPULAR_IMAGE_ANNOTATION: "evil/image:1",
            labels.POPULAR_NODE_ANNOTATION: "a",
        }
        spec = {"nodeName": draw(st.sampled_from(["", *NODES, "nowhere"]))}
        if draw(st.booleans()):
            spec["schedulerName"] = "roost.hub.user"
        pods.append(
            pod_of(
                "evil",
                f"p{number}",
                image=draw(st.sampled_from(HOSTILE_IMAGES)),
                spec=spec,
                metadata={"labels": chosen, "annotations": annotations},
                status=draw(st.sampled_from(STATUSES)),
            )
        )
    return pods


def booking(people: int, count: int, padding: int) -> JSONObject:
    entries = [
        {"name": f"e{index}", "people": people, "timeZone": "UTC", "start": "2027-01-15T08:05"}
        for index in range(count)
    ]
    return {"events.yaml": json.dumps(entries), "notes": "x" * padding}


BOOKINGS = st.one_of(
    st.none(),
    st.builds(booking, st.integers(0, 600), st.integers(0, 60), st.sampled_from([0, MOST_OF_HUB])),
    st.builds(lambda text: {"events.yaml": text}, st.text(max_size=100)),
)


class Asked:
    """Stands in for the controllers' watches: what each asks the API server for."""

    def __init__(self, _client: object, list_watch: ListWatch[Any], **_: Any) -> None:
        self.path = list_watch.path
        self.read = list_watch.read
        self.selector = list_watch.field_selector
        if list_watch.kind == "events":
            Asked.of_events = self

    of_events: "Asked"

    def __class_getitem__(cls, _: object) -> type["Asked"]:
        return cls

    def takes(self, event: JSONObject) -> bool:
        folder = f"/api/v1/namespaces/{event['metadata']['namespace']}/events"
        found = {"involvedObject.kind": event["involvedObject"]["kind"], "reason": event["reason"]}
        wanted = dict(part.split("=") for part in self.selector.split(","))
        return self.path in (folder, "/api/v1/events") and wanted.items() <= found.items()


def read_events(events: Iterable[JSONObject]) -> dict[str, PullEvent]:
    """Of Events in any namespaces what the controllers come to know."""
    with mock.patch("roost_core.kube.watches.WatchCache", Asked):
        WatchedCluster(
            cast("Any", None), ReleaseDocument(Reader(), DOCUMENT), on_change=lambda: None
        )
    read = (Asked.of_events.read(event) for event in events if Asked.of_events.takes(event))
    return {str(number): event for number, event in enumerate(read) if event is not None}


def event(about: tuple[str, str, str], reason: str, message: str, host: str, at: str) -> JSONObject:
    """In whichever namespace; the API server checks no more of it than that this is the
    object's.
    """
    kind, name, uid = about
    source = {"component": "kubelet", "host": host}
    regarding = {"kind": kind, "name": name, "uid": uid}
    body = {"metadata": {}, "involvedObject": regarding, "source": source, "lastTimestamp": at}
    return {**body, "reason": reason, "message": message}


HELD = [
    f'Successfully pulled image "{IMAGE}" in 9000h0m1s.',
    f'Container image "{IMAGE}" already present on machine',
]
ABOUT = [
    ("Pod", PULLER, f"uid-{NAMESPACE}-{PULLER}"),
    ("Pod", "waits", "uid-good-waits"),
    ("Pod", "p0", "uid-evil-p0"),
    ("Node", "c", "c"),
    ("StatefulSet", SET, "uid"),
    ("", "", ""),
]
EVENTS = st.lists(
    st.builds(
        event,
        st.sampled_from(ABOUT),
        st.sampled_from([PULLED, PULLED, "Failed", "Killing"]) | st.text(max_size=9),
        st.sampled_from([*HELD, f'Back-off pulling image "{IMAGE}"', HELD[0] + "x" * 100_000])
        | st.text(max_size=50),
        st.sampled_from([*NODES, "nowhere"]),
        st.sampled_from(
            ["2027-01-15T08:00:00Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "soon"]
        ),
    ),
    max_size=6,
)
TOLD = st.dictionaries(
    st.sampled_from(["hubs", "kubernetes.io/metadata.name"]), st.sampled_from(["no", "YES", "good"])
)


def moved_to(bodies: Iterable[JSONObject], namespace: str) -> list[JSONObject]:
    return [{**body, "metadata": {**body["metadata"], "namespace": namespace}} for body in bodies]


def plans(
    pods: Sequence[JSONObject],
    books: JSONObject | None = None,
    namespace: str = "evil",
    *,
    events: Sequence[JSONObject] = (),
    told: JSONObject | None = None,
) -> list[Action]:
    """What all controllers would do, in their first plans and half a minute later."""
    read = Reader()
    release = ReleaseDocument(read, DOCUMENT, None, 37)
    planners = [
        planner
        for controller in CONTROLLERS
        if (planner := controller.planner(release)) is not None
    ]
    assert not read.faults
    read_pod = PodReader(release).read
    known = {pod.key: pod for pod in map(read_pod, [*OF_OTHERS, *pods]) if pod is not None}
    item = {
        "metadata": {"name": labels.HUB_BOOKINGS, "namespace": namespace, "uid": "1"},
        "data": books,
    }
    assert release.events is not None
    texts = (
        {"1": keep_config_map(item, namespace)} if books is not None and namespace == "evil" else {}
    )
    sources = ConfigMapReader(release.events.limits, ReadingTime()).sources(texts)
    snapshot = Snapshot(
        RELEASE,
        NAMESPACE,
        nodes={
            name: node_state(name, joined=WALL - 3600, images={IMAGE: 10**9} if name != "c" else {})
            for name in NODES
        },
        pods=known,
        namespaces={**HUBS, namespace: {**HUBS[namespace], **(told or {})}},
        pull_events=read_events(events),
        stateful_sets={SET: StatefulSetState(SET, "uid", 2)},
        bookings={source.hub: source for source in bounded(sources)},
    )
    moments = [Moment(WALL + seconds, 10_000.0 + seconds) for seconds in (0.0, 30.0)]
    return [
        action
        for moment in moments
        for planner in planners
        for action in planner.plan(snapshot, moment).actions
    ]


def is_about(action: Action, namespace: str) -> bool:
    return isinstance(action, Notice) and action.namespace == namespace


# Two users of one image: it would be brought to all nodes, were they a hub's.
NOT_A_HUBS = [
    pod_of(
        "evil",
        name,
        image="evil/image:1",
        metadata={"labels": OF_OTHERS[0]["metadata"]["labels"]},
        spec={"nodeName": "a"},
        status=STATUSES[0],
    )
    for name in ("x", "y")
]


FORGED = [event(ABOUT[0], PULLED, HELD[0], "c", "2027-01-15T08:00:00Z")] * 5000


@settings(max_examples=60)
@given(hostile_pods(), BOOKINGS, EVENTS, TOLD)
@example([], booking(500, 50, 0), FORGED, {})
@example(NOT_A_HUBS, None, FORGED, {"hubs": "YES"})
def test_plans_for_others_change_by_what_a_hub_may_book_and_bring(
    pods: list[JSONObject], books: JSONObject | None, events: list[JSONObject], told: JSONObject
) -> None:
    before = plans([])
    assert {ChangeNode, Notice} <= {type(action) for action in before}
    strange = moved_to(events, "stranger")
    assert plans(moved_to(pods, "stranger"), books, "stranger", events=strange, told=told) == before
    evil = moved_to(events, "evil")
    after = [
        action
        for action in plans(pods, books, events=evil, told=told)
        if not is_about(action, "evil")
    ]
    new = [action for action in after if action not in before]
    # A hub's people may book, and its users' images may become popular.
    for action in new:
        assert isinstance(action, ScaleSet | CreatePod | Notice), action
        assert not isinstance(action, Notice) or action.name == SET, action
    assert all(
        2 <= action.replicas <= 2 + MOST_BOOKED for action in new if isinstance(action, ScaleSet)
    )
    assert sum(isinstance(action, CreatePod) for action in new) <= len(NODES)
    # Nobody's pods are deleted or evicted, and no node is changed.
    assert not any(isinstance(action, EvictPod | DeletePod | ChangeNode) for action in new)
    # What was to be done is done.
    scaled = {action.name for action in after if isinstance(action, ScaleSet)}
    assert all(action in after or getattr(action, "name", "") in scaled for action in before)


@settings(max_examples=100)
@given(EVENTS)
@example(
    [{**one, "involvedObject": event(ABOUT[1], "", "", "", "")["involvedObject"]} for one in FORGED]
)
def test_events_in_the_releases_namespace_change_told_waits_and_those_of_pullers_held_images(
    events: list[JSONObject],
) -> None:
    """Whoever may write Events there is believed about pullers' pods, and about nothing else."""
    before, after = plans([]), plans([], events=moved_to(events, NAMESPACE))

    def done(actions: Sequence[Action]) -> list[Action]:
        return [
            one
            for one in actions
            if not isinstance(one, Notice) and (not is_forged or is_elsewhere(one))
        ]

    def is_elsewhere(action: Action) -> bool:
        return not isinstance(action, ChangeNode) or action.node != "c"

    is_forged = any(
        one["involvedObject"]["uid"] == ABOUT[0][2] and IMAGE in one["message"] for one in events
    )
    assert done(after) == done(before)
    told = [
        {(one.kind, one.namespace, one.name) for one in each if isinstance(one, Notice)}
        for each in (after, before)
    ]
    assert told[0] == told[1] or is_forged
    # No pull takes more than an hour, whatever is said.
    said = [one.message for one in after if isinstance(one, Notice) and one.kind == "Pod"]
    assert all(re.fullmatch(r"[A-Za-z0-9 ,;.()'-]{1,200}", message) for message in said)
    assert max(int(number) for message in said for number in re.findall(r"\d+", message)) <= 120
    kept = read_events(moved_to(events, NAMESPACE)).values()
    assert all(len(one.message) <= 4096 for one in kept)
