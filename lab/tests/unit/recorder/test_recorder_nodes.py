"""What is told of nodes: each change once, across restarts and gaps, and when all images were there."""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from lab.tests.objects import BOUND, Object, event_object, node_object, pod_object
from lab.tests.recorded import empty_store
from roost_core.placement.labels import pulled_label
from roost_core.release.reader import SettingsError
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.reading import read_event, read_node, read_pod
from roost_lab.recorder.recording.settings import RecorderSettings, parse_settings
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import NODES, NodeChangeRecord, NodeRecord, Record, StoredState

US = 1_000_000
HEARD_US = 1_800_000_000 * US
LATER_US = HEARD_US + 600 * US
IMAGES = ("me/first:1", "me/second:1")
LABELS = [pulled_label("hub", "jhub", image) for image in IMAGES]


def node(version: int, labels: Mapping[str, str] | None = None, **how: Any) -> Object:
    return node_object("n", version, labels=labels, **how)


def gated_settings(**gate: Any) -> RecorderSettings:
    pullers = [
        {"name": "all", "nodeSelector": {}, "images": [IMAGES[0]]},
        {"name": "large", "nodeSelector": {"pool": "large"}, "images": [IMAGES[1]]},
    ]
    document = {"version": 1, "release": "hub", "namespace": "jhub", "podClasses": {}, "retentionDays": 0}
    return parse_settings({**document, "imageGate": {"mode": "requireLabel", "pullers": pullers, **gate}})


def no_class(_labels: Mapping[str, str], _namespace: str) -> str:
    return ""


class Run:
    """One run of the recorder on a store; each call is one change, stored at once."""

    def __init__(self, store: Store, *, listed: Object, at_us: int, lost: str = "") -> None:
        self.store = store
        self.assembler = Assembler(no_class, store.read_state(), None, gated_settings().gate_labels)
        self.relist(listed, at_us, lost)

    def relist(self, listed: Object, at_us: int, lost: str = "") -> None:
        if lost:
            self.assembler.lost(NODES, lost)
        self.assembler.listing(NODES)
        self.tell(listed, at_us, listed=True)
        self.store.write(self.assembler.synced(NODES, at_us), {NODES: ("1", at_us)})
        self.assembler.heard(NODES, at_us)

    def tell(self, item: Object, at_us: int, **how: Any) -> list[Record]:
        records = self.assembler.node("n", read_node(item), at_us, **how)
        self.store.write(records, {})
        return records


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = empty_store(tmp_path)
    yield store
    store.close()


def changes(store: Store) -> list[tuple[str, str, str, int, int]]:
    change = schema.node_change.c
    query = sa.select(change.field, change.old, change.new, change.at_us, change.resolution_us).order_by(change.field)
    with store.reading() as connection:
        return [(row[0], row[1], row[2], row[3], row[4]) for row in connection.execute(query)]


def one_row(store: Store, table: sa.Table) -> Object:
    with store.reading() as connection:
        return dict(connection.execute(sa.select(table)).mappings().one())


CORDONED: Object = {
    "labels": {"zone": "b"},
    "unschedulable": True,
    "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
    "cpu": "3",
    "ready": "False",
}
ALLOCATABLE = '{"cpu": %d, "memory": 8589934592, "pods": 10}'
TOLD = [
    ("allocatable", ALLOCATABLE % 4000, ALLOCATABLE % 3000),
    ("label:zone", "a", "b"),
    ("ready", "True", "False"),
    ("taints", "", "k=v:NoSchedule"),
    ("unschedulable", "False", "True"),
]


def restart(first: Run) -> Callable[[Object, int, str], None]:
    def relist(listed: Object, at_us: int, lost: str) -> None:
        Run(first.store, listed=listed, at_us=at_us, lost=lost)

    return relist


def go_on(first: Run) -> Callable[[Object, int, str], None]:
    return first.relist


@pytest.mark.parametrize("way", [restart, go_on])
def test_what_changed_while_nobody_watched_is_told_once_and_how_much_earlier_it_may_have_been(
    store: Store, way: Callable[[Run], Callable[[Object, int, str], None]]
) -> None:
    relist = way(Run(store, listed=node(5, {"zone": "a"}), at_us=HEARD_US))
    relist(node(9, **CORDONED), LATER_US, "forgotten")
    wanted = [(*one, LATER_US, 600 * US) for one in TOLD]
    assert changes(store) == wanted
    # Once more, and after a second gap in which nothing changed.
    relist(node(9, **CORDONED), LATER_US + 60 * US, "forgotten")
    assert changes(store) == wanted


def test_a_watched_change_is_told_with_the_moment_of_its_telling(store: Store) -> None:
    run = Run(store, listed=node(5, {"zone": "a"}), at_us=HEARD_US)
    run.tell(node(6, {"zone": "b"}), HEARD_US + 5)
    run.tell(node(7, {"zone": "c"}), HEARD_US + 9 * US, late_us=4 * US)
    assert changes(store) == [
        ("label:zone", "a", "b", HEARD_US + 5, 1),
        ("label:zone", "b", "c", HEARD_US + 9 * US, 4 * US),
    ]


def test_the_row_of_a_node_says_how_it_stands_and_keeps_that_after_its_end(store: Store) -> None:
    Run(store, listed=node(5, {"zone": "a"}), at_us=HEARD_US).tell(node(6, **CORDONED), HEARD_US + 5)
    row = one_row(store, schema.node)
    assert json.loads(row["labels"]) == {"zone": "b"}
    assert (row["is_ready"], row["is_unschedulable"], row["taints"]) == (False, True, "k=v:NoSchedule")
    # It goes while nobody watches.
    later = Assembler(no_class, store.read_state())
    later.listing(NODES)
    store.write(later.synced(NODES, LATER_US), {})
    assert one_row(store, schema.node) == {**row, "gone_us": LATER_US}


def test_a_heartbeat_writes_nothing(store: Store) -> None:
    assert Run(store, listed=node(5), at_us=HEARD_US).tell(node(6), HEARD_US + 5) == []


def test_all_images_are_there_when_the_last_label_that_belongs_on_the_node_has_come(store: Store) -> None:
    pool = {"pool": "large"}
    run = Run(store, listed=node(5, pool), at_us=HEARD_US)
    run.tell(node(6, {**pool, LABELS[0]: "true"}), HEARD_US + 1 * US)
    assert one_row(store, schema.node)["images_ready_us"] is None
    run.tell(node(7, {**pool, LABELS[0]: "true", LABELS[1]: "true"}), HEARD_US + 2 * US)
    # One goes and comes back: it is the first time that counts; after a restart, too.
    run.tell(node(8, {**pool, LABELS[0]: "true"}), HEARD_US + 3 * US)
    again = Run(store, listed=node(8, {**pool, LABELS[0]: "true"}), at_us=HEARD_US + 4 * US)
    again.tell(node(9, {**pool, LABELS[0]: "true", LABELS[1]: "true"}), HEARD_US + 5 * US)
    assert one_row(store, schema.node)["images_ready_us"] == HEARD_US + 2 * US


def test_only_images_for_that_kind_of_node_are_waited_for(store: Store) -> None:
    Run(store, listed=node(5), at_us=HEARD_US).tell(node(6, {LABELS[0]: "true"}), HEARD_US + 1)
    assert one_row(store, schema.node)["images_ready_us"] == HEARD_US + 1


def test_since_when_a_node_has_images_that_had_them_before_it_was_seen_is_not_said(store: Store) -> None:
    full = {LABELS[0]: "true"}
    Run(store, listed=node(5, full), at_us=HEARD_US).tell(node(6, {**full, "zone": "b"}), HEARD_US + 5)
    Run(store, listed=node(6, {**full, "zone": "b"}), at_us=LATER_US)
    assert one_row(store, schema.node)["images_ready_us"] is None


def test_images_that_came_in_a_gap_are_there_at_its_end_at_the_latest(store: Store) -> None:
    Run(store, listed=node(5), at_us=HEARD_US)
    Run(store, listed=node(9, {LABELS[0]: "true"}), at_us=LATER_US, lost="forgotten")
    assert one_row(store, schema.node)["images_ready_us"] == LATER_US
    assert [one[-2:] for one in changes(store)] == [(LATER_US, 600 * US)]


def test_a_gate_that_is_off_labels_no_nodes() -> None:
    assert gated_settings(mode="off").gate_labels({"pool": "large"}) == frozenset()
    assert gated_settings().gate_labels({"pool": "large"}) == frozenset(LABELS)


def test_faults_of_the_gate_are_told_with_their_keys() -> None:
    with pytest.raises(SettingsError) as caught:
        gated_settings(mode="sometimes", pullers=[{"nodeSelector": {"pool": 5}, "images": [7]}])
    assert [fault.key for fault in caught.value.faults] == [
        "imageGate.mode",
        "imageGate.pullers[0].images[0]",
        "imageGate.pullers[0].nodeSelector.pool",
    ]


def test_records_of_a_node_are_told_with_the_row_before_its_changes() -> None:
    assembler = Assembler(no_class, StoredState())
    assembler.node("n", read_node(node(1)), 1)
    told = assembler.node("n", read_node(node(2, unschedulable=True)), 2)
    assert [type(one) for one in told] == [NodeRecord, NodeChangeRecord]


POD = pod_object(on="n", conditions=[BOUND])
EVENT = event_object("Scheduled", "Successfully assigned hub/p to n")


def told(folder: Path, order: tuple[str, ...], created: str) -> tuple[set[str], set[bool]]:
    """Uids of nodes that bindings name, and whether starts know their node's age."""
    store = empty_store(folder)
    assembler = Assembler(lambda _labels, _namespace: "user", StoredState())
    for one in order:
        if one == "node":
            store.write(assembler.node("n", read_node(node_object(created=created)), 1, listed=True), {})
        elif one == "pod":
            store.write(assembler.pod("hub/p", read_pod(POD, (), {}), 1, listed=True), {})
        else:
            store.write(assembler.event(read_event(EVENT)), {})
    with store.reading() as connection:
        uids = set(connection.scalars(sa.select(schema.decision.c.node_uid)))
        ages = {age is not None for age in connection.scalars(sa.select(schema.start.c.node_created_us))}
    store.close()
    return uids, ages


@pytest.mark.parametrize("order", list(permutations(("node", "pod", "event"))))
def test_whoever_tells_first_the_binding_has_its_node_and_the_start_its_nodes_age(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    assert told(tmp_path, order, "2027-01-15T07:00:00Z") == ({"uid-n"}, {True})


def test_a_machine_that_came_later_under_the_same_name_is_not_the_bindings(tmp_path: Path) -> None:
    assert told(tmp_path, ("pod", "event", "node"), "2027-01-15T09:00:00Z") == ({""}, {False})
