"""A binding has its node whichever of the streams, of nodes, pods and Events, tells first."""

from itertools import permutations
from pathlib import Path

import pytest
import sqlalchemy as sa

from lab.tests.objects import BOUND, event_object, node_object, pod_object
from lab.tests.recorded import empty_store
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.reading import read_event, read_node, read_pod
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.records import StoredState

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
