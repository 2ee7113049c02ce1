"""What is told of nodes: each change once, across restarts and gaps, and when all images were
there.
"""

import itertools
import json
from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from lab.tests.history import rows as store_rows
from lab.tests.moments import BEGIN, SECOND
from lab.tests.objects import BOUND, event_object, node_object, pod_object
from lab.tests.recorded import empty_store
from lab.tests.told import Story, Thing, stories
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import pulled_label
from roost_core.release.reader import SettingsError
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.changes import records_of
from roost_lab.recorder.recording.reading import MICRO_US, read_event, read_node, read_pod
from roost_lab.recorder.recording.settings import RecorderSettings, parse_settings
from roost_lab.recorder.recording.streams import How, Observation
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import (
    NODES,
    ImageRecord,
    NodeChangeRecord,
    NodeRecord,
    StoredState,
)

IMAGES = ("me/first:1", "me/second:1")
LABELS = [pulled_label("hub", "jhub", image) for image in IMAGES]
NAMED = dict(zip(("FIRST", "SECOND"), LABELS, strict=True))


def gated_settings(**gate: Any) -> RecorderSettings:
    pullers = [
        {"name": "all", "nodeSelector": {}, "images": [IMAGES[0]]},
        {"name": "large", "nodeSelector": {"pool": "large"}, "images": [IMAGES[1]]},
    ]
    document = {
        "version": 1,
        "release": "hub",
        "namespace": "jhub",
        "podClasses": {},
        "recorder": {"retentionDays": 0},
    }
    usual = {"mode": "requireLabel", "pullDeadlineSeconds": 600, "pullers": pullers}
    return parse_settings({**document, "imageGate": {**usual, **gate}})


def no_class(_labels: Mapping[str, str], _namespace: str) -> str:
    return ""


class Recorder:
    """One recorder after the other on a store, and what lines tell them of the node; each is stored
    at once.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.versions = itertools.count(5)
        self.begin()

    def begin(self) -> None:
        self.assembler = Assembler(no_class, self.store.read_state(), gated_settings().gate_labels)

    def tell(self, thing: Thing) -> None:
        (at_us, *flags), how = thing.plain, dict(thing.named)
        seen = Observation(at_us, how.pop("late", MICRO_US))
        if thing.kind == "sees":
            records = records_of(self.assembler.node("n", read_node(self._node(**how)), seen))
            assert bool(records) == ("nothing" not in flags)
            self.store.write(records, {})
            return
        if "again" in flags or thing.kind == "gone":
            self.begin()
        if "lost" in flags:
            self.assembler.streams.mark_lost(NODES, "forgotten")
        self.assembler.streams.begin_list(NODES)
        if thing.kind == "lists":
            seen = self.assembler.streams.observe(NODES, at_us, is_listed=True)
            changes = self.assembler.node("n", read_node(self._node(**how)), seen)
            self.store.write(records_of(changes), {})
        ended = self.assembler.list_ended(NODES, at_us)
        self.store.write(records_of(ended), {NODES: ("1", at_us)})
        self.assembler.streams.mark_current(NODES, at_us)

    def _node(self, labels: str = "", cpu: int = 4, room: int = 8, **how: Any) -> JSONObject:
        said = dict(word.split("=") for word in labels.split() if "=" in word)
        said |= {label: "true" for name, label in NAMED.items() if name in labels}
        return node_object(
            "n", next(self.versions), labels=said, cpu=str(cpu), room=str(room), **how
        )


def stored(store: Store) -> Iterator[str]:
    """The node's row, and its changes."""
    node = store_rows(store, schema.node)[0]
    labels = (
        name_of(key, "" if text == "true" else f"={text}")
        for key, text in json.loads(node["labels"]).items()
    )
    states = {
        "not ready": not node["is_ready"],
        "cordoned": node["is_unschedulable"],
        node["taints"]: node["taints"],
        f"all images at {seconds(node['images_ready_us'])}": node["images_ready_us"],
        f"gone at {seconds(node['gone_us'])}": node["gone_us"],
    }
    holding = [state for state, holds in states.items() if holds]
    yield f"node {', '.join([' '.join(sorted(labels)), *holding])}"
    for row in sorted(
        store_rows(store, schema.node_change), key=lambda row: (row["field"], row["at_us"])
    ):
        what, old, new = name_of(row["field"]), row["old"], row["new"]
        if what in ("allocatable", "capacity"):
            what, old, new = f"{what} cpu", *(json.loads(row[key])["cpu"] for key in ("old", "new"))
        when = f"at {seconds(row['at_us'])}, up to {seconds(BEGIN + row['resolution_us'])} earlier"
        yield " ".join(f"change {what}: {old} -> {new} {when}".split())


def name_of(label: str, more: str = "") -> str:
    for name, one in NAMED.items():
        label = label.replace(one, name)
    return f"{label}{more}"


def seconds(at_us: int | None) -> str:
    return "" if at_us is None else f"{(at_us - BEGIN) / SECOND:g} s"


@stories("nodes", "lists sees gone")
def test_changes_of_a_node_are_told_once_and_since_when_it_has_all_images(
    tmp_path: Path, story: Story
) -> None:
    store = empty_store(tmp_path)
    recorder = Recorder(store)
    for thing in story.things:
        recorder.tell(thing)
    story.check_drawn(stored(store))
    store.close()


def test_a_gate_that_is_off_labels_no_nodes() -> None:
    assert gated_settings(mode="off").gate_labels({"pool": "large"}) == frozenset()
    assert gated_settings().gate_labels({"pool": "large"}) == frozenset(LABELS)


def test_faults_of_the_gate_are_told_with_their_keys() -> None:
    with pytest.raises(SettingsError) as caught:
        gated_settings(mode="sometimes", pullers=[{"nodeSelector": {"pool": 5}, "images": [7]}])
    expected = [
        "imageGate.mode",
        "imageGate.pullers[0].images[0]",
        "imageGate.pullers[0].nodeSelector.pool",
    ]
    assert [fault.key for fault in caught.value.faults] == expected


def test_records_of_a_node_are_told_with_the_row_before_its_changes() -> None:
    assembler = Assembler(no_class, StoredState())
    assembler.node("n", read_node(node_object("n", 1)), Observation(1))
    cordoned = read_node(node_object("n", 2, unschedulable=True))
    told = records_of(assembler.node("n", cordoned, Observation(2)))
    assert [type(one) for one in told] == [NodeRecord, NodeChangeRecord]


POD = pod_object(on="n", conditions=[BOUND])
EVENT = event_object("Scheduled", "Successfully assigned hub/p to n")


def told(folder: Path, order: tuple[str, ...], created: str) -> tuple[set[str], set[bool]]:
    """Uids of nodes that bindings name, and whether starts know their node's age."""
    store = empty_store(folder)
    assembler = Assembler(lambda _labels, _namespace: "user", StoredState())
    seen = Observation(1, how=How.FOUND)
    for one in order:
        if one == "node":
            node = read_node(node_object(created=created))
            store.write(records_of(assembler.node("n", node, seen)), {})
        elif one == "pod":
            store.write(records_of(assembler.pod("hub/p", read_pod(POD, (), {}), seen)), {})
        else:
            store.write(assembler.event(read_event(EVENT)), {})
    with store.reading() as connection:
        uids = set(connection.scalars(sa.select(schema.decision.c.node_uid)))
        ages = {
            age is not None for age in connection.scalars(sa.select(schema.start.c.node_created_us))
        }
    store.close()
    return uids, ages


@pytest.mark.parametrize("order", list(permutations(("node", "pod", "event"))))
def test_whoever_tells_first_the_binding_has_its_node_and_the_start_its_nodes_age(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    assert told(tmp_path, order, "2027-01-15T07:00:00Z") == ({"uid-n"}, {True})


def test_a_machine_that_came_later_under_the_same_name_is_not_the_bindings(tmp_path: Path) -> None:
    assert told(tmp_path, ("pod", "event", "node"), "2027-01-15T09:00:00Z") == ({""}, {False})


def test_a_name_that_a_kubelet_may_have_cut_is_not_taken_for_gone() -> None:
    assembler = Assembler(lambda _labels, _namespace: "", StoredState())

    def gone(names: list[str], version: int) -> list[str]:
        body = node_object(version=version)
        body["status"]["images"] = [{"names": names, "sizeBytes": 5}]
        changes = assembler.node("n", read_node(body), Observation(version))
        records = records_of(changes)
        return [
            record.image for record in records if isinstance(record, ImageRecord) and record.gone_us
        ]

    tags = [f"me/lab:{number}" for number in range(6)]
    assert gone(tags[1:], 1) == []
    # Its sixth name is new, and the list names five.
    assert gone(tags[:5], 2) == []
    assert gone(tags[:2], 3) == ["me/lab:2", "me/lab:3", "me/lab:4", "me/lab:5"]
