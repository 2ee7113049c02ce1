"""The recorded cluster at a moment: from rows to what the page draws."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import view_record
from lab.tests.moments import BEGIN, HOUR, MINUTE, SECOND
from lab.tests.recorded import bind_record, empty_store, phase_record, pod_record, record_of
from lab.tests.told import Story, stories
from roost_core.objects.node import LISTED_IMAGES
from roost_core.placement.labels import attract_label, pulled_label
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import (
    DecisionKind,
    GapRecord,
    ImageRecord,
    NodeChangeRecord,
    NodeRecord,
    Phase,
    PreemptionRecord,
    Record,
)
from roost_lab.view import moment as view
from roost_lab.view.moment import ClusterMoment, as_json, tell_moment
from roost_lab.view.reading import LIVE_US, read_moment
from tests.harness.postgres import Postgres

NOW = BEGIN + HOUR
IMAGE = "registry.example.org/image:1"
PULLED = pulled_label("hub", "jhub", IMAGE)
ATTRACTS = attract_label("hub", "jhub", "large")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return empty_store(tmp_path)


def node_record(name: str, **changes: Any) -> NodeRecord:
    base = NodeRecord(
        uid=f"uid-{name}",
        name=name,
        created_us=BEGIN,
        allocatable=json.dumps({"cpu": 4000, "memory": 16 << 30}),
        labels="{}",
        taints="",
        is_ready=True,
        is_unschedulable=False,
    )
    return replace(base, **changes)


def change_record(name: str, field: str, at_us: int, old: str, new: str) -> NodeChangeRecord:
    return NodeChangeRecord(
        node_uid=f"uid-{name}",
        resource_version=str(at_us),
        field=field,
        at_us=at_us,
        resolution_us=1,
        old=old,
        new=new,
    )


def on_node(uid: str, node: str = "n", at_us: int = BEGIN + MINUTE, **changes: Any) -> list[Record]:
    """A pod that was created and bound then."""
    return [
        pod_record(uid, created_us=at_us, image=IMAGE, **changes),
        bind_record(uid, at_us, node),
    ]


def look(
    store: Store, *records: Record, at_us: Any = NOW, now_us: int = NOW + HOUR, log_us: Any = ""
) -> ClusterMoment:
    store.write(list(records), {"pods": ("1", NOW + HOUR), "log:hub": (str(log_us), NOW)})
    found = read_moment(store, at_us, now_us)
    assert found is not None
    return found


# Of a story's line, beside those of every story.
MADE: dict[str, Callable[..., Record]] = {
    "node": lambda name, created_us=BEGIN: node_record(name, created_us=created_us),
    "change": change_record,
    "image": lambda node, image: ImageRecord(
        node_uid=f"uid-{node}", image=image, first_us=BEGIN, image_bytes=1
    ),
    "evicted": lambda uid, at_us, node: PreemptionRecord(
        victim_uid=uid, node_name=node, at_us=at_us, kind="evicted"
    ),
}


@stories("moments")
def test_a_moment_is_drawn_as_it_was_recorded(store: Store, story: Story) -> None:
    times, records = dict[str, Any](at=NOW, log=""), list[Record]()
    for thing in story.things:
        if thing.kind in times:
            times[thing.kind] = thing.plain[0]
        elif thing.kind == "on":
            records += on_node(*thing.plain, **thing.named)
        else:
            records.append(record_of(thing, MADE))
    story.check_drawn(
        drawn(look(store, *records, at_us=times["at"], now_us=times["at"], log_us=times["log"]))
    )


def drawn(moment: ClusterMoment) -> Iterator[str]:
    """A line for each thing of a moment, in the order of the page."""
    for node in moment.nodes:
        told = [
            str(node.state),
            *(f"attracts {name}" for name in node.attracts),
            *(
                f"{verb} {one.rpartition('/')[2]}"
                for verb, some in (("holds", node.held), ("pulls", node.pulling))
                for one in some
            ),
            *([f"lacks {len(node.missing)}"] if node.missing else []),
            *([f"warm for {node.warm}"] if node.warm else []),
            *([f"{node.others} other"] if node.others else []),
            *(
                ["of unknown size and images"]
                if (node.images, node.cpu_millicores[1]) == (None, None)
                else []
            ),
        ]
        yield f"node {node.name}: {', '.join(told)}"
    for node in moment.nodes:
        yield from (f"pod {pod.name} on {node.name}: {pod.state}" for pod in node.pods)
    yield from (f"pending {pod.name}: {pod.reason}".strip() for pod in moment.pending)
    for change in moment.changes:
        way = f"{change.from_node or 'nowhere'} to {change.to_node or 'nowhere'}"
        after = f" for {change.by_name}" if change.by_name else ""
        yield f"change {change.kind} {change.name}: {way}{after}"
    yield from (f"notice {text}" for text in moment.notices)
    yield f"sentence {tell_moment(moment)}"


def test_images_of_most_users_get_chips_and_nodes_that_had_them_then_hold_them(
    store: Store,
) -> None:
    def held(
        name: str, first_us: int, image: str = "ubuntu:latest", gone_us: int | None = None
    ) -> ImageRecord:
        return ImageRecord(
            node_uid=f"uid-{name}", image=image, first_us=first_us, image_bytes=1, gone_us=gone_us
        )

    records: list[Record] = []
    for name in ("has", "had", "gets", "full", "runs"):
        records += [node_record(name), held(name, BEGIN, "other")]
    # A kubelet's list that may be cut says nothing of other images; a running pod has its own.
    for name in ("full", "runs"):
        records += [held(name, BEGIN, f"other-{number}") for number in range(1, LISTED_IMAGES)]
    popular = "docker.io/library/ubuntu:latest"
    for number, image in enumerate(
        [popular, popular, *(f"rare-{index}" for index in range(view.MAX_CHIPS))]
    ):
        records += [pod_record(f"p{number}", image=image), bind_record(f"p{number}", BEGIN, "has")]
    records += [pod_record("r", image=popular, pod_class="build"), bind_record("r", BEGIN, "runs")]
    records += [phase_record("r", Phase.STARTED, BEGIN)]
    records += [
        held("has", BEGIN),
        held("had", BEGIN, gone_us=NOW - SECOND),
        held("gets", NOW + SECOND),
    ]
    moment = look(store, *records)
    assert (len(moment.chips), next(iter(moment.chips.items()))) == (view.MAX_CHIPS, (popular, 2))
    assert {
        node.name: (len(node.held), len(node.missing), node.images) for node in moment.nodes
    } == {
        "has": (1, 5, 2),
        "had": (0, 6, 1),
        "gets": (0, 6, 1),
        "full": (0, 0, 50),
        "runs": (1, 0, 50),
    }


def test_the_latest_state_is_of_now_while_the_record_goes_on_and_of_its_end_afterwards(
    store: Store,
) -> None:
    end_us = NOW + HOUR
    for now_us, at_us in (
        (end_us + LIVE_US - SECOND, end_us + LIVE_US - SECOND),
        (end_us - SECOND, end_us + 1),
        (end_us + LIVE_US + SECOND, end_us + 1),
    ):
        assert look(store, pod_record("p"), at_us=None, now_us=now_us).at_us == at_us


def test_the_json_refers_to_images_by_index_and_names_nodes_in_short(store: Store) -> None:
    long = "gke-cluster-name-default-pool-with-a-long-name-0001"
    document = as_json(
        look(store, node_record(long), *on_node("p", long), *on_node("q", long, pod_class="gpu"))
    )
    (node,) = document["nodes"]
    assert document["images"][node["pods"][0]["image"]] == IMAGE
    assert (node["name"], len(node["short"]) <= view.NODE_LENGTH) == (long, True)
    assert document["counts"] == {"user": 1, "gpu": 1}
    assert DecisionKind.BIND not in json.dumps(document)


def test_sqlite_and_postgresql_give_the_same_moments(store: Store, server: Postgres) -> None:
    other = Store.open(server.create("view"))
    other.migrate()
    changes: list[Record] = [
        change_record("0", f"label:{ATTRACTS}", NOW - SECOND, "true", ""),
        change_record("0", "unschedulable", NOW - SECOND, "True", "False"),
        change_record("0", "unschedulable", NOW, "False", "True"),
        GapRecord(kind="pods", from_us=NOW - MINUTE, to_us=NOW + MINUTE, why="forgotten"),
        pod_record("gated"),
        phase_record("gated", Phase.GATED, BEGIN, "example.org/quota"),
    ]
    for target in (store, other):
        target.write([*view_record.records(NOW, 4, 300), *changes], {"pods": ("1", NOW)})
    for at_us in (None, NOW - 2 * SECOND, NOW - 30 * MINUTE, BEGIN):
        ours, theirs = (read_moment(target, at_us, NOW) for target in (store, other))
        assert ours is not None
        assert ours == theirs
    other.close()
