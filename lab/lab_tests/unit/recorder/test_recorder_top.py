"""The live picture: what it is made of, and how it looks on terminals of any width."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from roost_lab.recorder.answers.live_keys import SORTS, View
from roost_lab.recorder.answers.live_view import (
    BUILD,
    MARKS,
    OTHER,
    PLACEHOLDER,
    USER,
    NodeLine,
    Picture,
    Pulling,
    bar,
    choose,
    read_picture,
    show,
)
from roost_lab.recorder.recording.reading import NodeReading, PodReading, read_event, read_node, read_pod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_lab.recorder.recording.reading import EventReading

Object = dict[str, Any]
CREATED = "2027-01-15T08:00:00Z"
# 90 s after that.
NOW = 1_800_000_090.0
LETTERS = {kind: letter for kind, letter, _ in MARKS}


def node(name: str, *images: str, **more: Any) -> NodeReading:
    found = read_node(
        {
            "metadata": {"name": name, "uid": name, **more.get("metadata", {})},
            "spec": {"unschedulable": more.get("cordoned", False)},
            "status": {
                "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "10"},
                "conditions": [{"type": "Ready", "status": more.get("ready", "True")}],
                "images": [{"names": [image], "sizeBytes": 1} for image in images],
            },
        }
    )
    assert found is not None
    return found


def waiting(reason: str = "ContainerCreating", name: str = "main") -> Object:
    return {"name": name, "state": {"waiting": {"reason": reason}}}


def pod(kind: str, on: str = "", image: str = "me/image:1", *statuses: Object, **more: Any) -> PodReading:
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": more.get("cpu", "1")}}}
    found = read_pod(
        {
            "metadata": {
                "name": "p",
                "namespace": more.get("namespace", "hub"),
                "labels": {"kind": kind},
                "creationTimestamp": CREATED,
            },
            "spec": {
                "containers": [container],
                "initContainers": more.get("init", []),
                **({"nodeName": on} if on else {}),
            },
            "status": {
                "phase": more.get("phase", "Pending"),
                "containerStatuses": list(statuses),
                "initContainerStatuses": more.get("init_statuses", []),
            },
        },
        (),
        {},
        keep_containers=True,
    )
    assert found is not None
    return found


def kind_of(labels: Mapping[str, str], _namespace: str) -> str:
    return labels.get("kind", "")


def decision(number: int, note: str, reason: str = "Scheduled", namespace: str = "hub") -> EventReading:
    return read_event(
        {
            "metadata": {"uid": f"e{number}"},
            "eventTime": f"2027-01-15T08:00:{number:02d}.000000Z",
            "reason": reason,
            "note": note,
            "regarding": {"kind": "Pod", "namespace": namespace, "name": f"jupyter-{number}", "uid": f"u{number}"},
        }
    )


def picture(
    nodes: list[NodeReading], pods: list[PodReading] | None = None, events: list[EventReading] | None = None
) -> Picture:
    return read_picture(
        {one.state.name: one for one in nodes},
        {f"hub/p{number}": one for number, one in enumerate(pods or [])},
        {one.uid: one for one in events or []},
        kind_of,
        NOW,
        namespace="hub",
    )


def drawn(seen: Picture, columns: int = 100, lines: int | None = None, view: View | None = None) -> str:
    console = Console(width=columns, force_terminal=False)
    with console.capture() as capture:
        console.print(show(seen, columns, lines, view))
    return capture.get()


def line_of(text: str, word: str) -> str:
    (found,) = [line for line in text.splitlines() if word in line]
    return found


def test_each_node_is_a_bar_of_its_pods_by_kind_with_their_numbers() -> None:
    pods = [pod(kind, "a-1") for kind in (USER, USER, BUILD, PLACEHOLDER)] + [pod("dask", "a-1", cpu="0")]
    line = line_of(drawn(picture([node("a-1", "docker.io/me/image:1")], pods)), "a-1")
    assert " UUBp. 2U 1B 1p 1. " in line
    assert "100%" in line


def test_finished_pods_take_no_room() -> None:
    (line,) = picture([node("a")], [pod(USER, "a", phase="Succeeded"), pod(USER, "a")]).nodes
    assert line.counts == {USER: 1}
    assert line.fullness == 0.25


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, "Ready"),
        ({"ready": "False"}, "NotReady"),
        ({"cordoned": True}, "cordoned"),
        ({"cordoned": True, "metadata": {"deletionTimestamp": CREATED}}, "leaving"),
    ],
)
def test_what_is_the_matter_with_a_node_is_said(more: Object, state: str) -> None:
    seen = picture([node("a-1", **more)])
    assert seen.nodes[0].state == state
    assert state in line_of(drawn(seen), "a-1")


@given(
    st.dictionaries(st.sampled_from([USER, BUILD, PLACEHOLDER, OTHER]), st.integers(0, 500)),
    st.integers(min_value=8, max_value=80),
)
def test_a_bar_is_never_longer_than_its_room_and_drops_no_kind(counts: dict[str, int], width: int) -> None:
    letters, _, numbers = bar(counts, width).plain.partition(" ")
    there = {kind: count for kind, count in counts.items() if count}
    assert len(letters) <= width
    assert set(letters) - {"-"} == {LETTERS[kind] for kind in there}
    if sum(there.values()) <= width:
        assert {kind: letters.count(LETTERS[kind]) for kind in there} == there
    assert sorted(filter(None, numbers.split(" "))) == sorted(f"{there[kind]}{LETTERS[kind]}" for kind in there)


def test_images_that_pods_wait_for_are_told_by_name_with_how_many_wait_for_how_long() -> None:
    pods = [pod(USER, "a", "me/scipy:1", waiting()), pod(USER, "a", "docker.io/me/scipy:1", waiting())]
    pods.append(pod(USER, "b", "me/typo:1", waiting("ImagePullBackOff")))
    seen = picture([node("a"), node("b")], pods)
    assert seen.nodes[0].pulling == [Pulling("me/scipy:1", 2, 90.0, is_failing=False)]
    text = drawn(seen)
    lines = text.splitlines()
    assert lines[lines.index("images awaited") + 1 :] == [
        "me/typo:1   1 min 30 s  1 pod on b, fails",
        "me/scipy:1  1 min 30 s  2 pods on a",
    ]


def test_an_image_is_shown_once_with_the_number_of_its_nodes() -> None:
    pods = [pod(USER, name, "me/scipy:1", waiting()) for name in "abbc"]
    text = drawn(picture([node("a"), node("b"), node("c")], pods))
    assert line_of(text, "me/scipy:1") == "me/scipy:1  1 min 30 s  4 pods on 3 nodes"


def test_a_container_whose_image_is_on_the_node_waits_for_something_else() -> None:
    (line,) = picture([node("a", "docker.io/me/image:1")], [pod(USER, "a", "me/image:1", waiting())]).nodes
    assert line.pulling == []


def test_the_image_of_a_container_is_awaited_only_when_it_is_its_turn() -> None:
    init = [{"name": "first", "image": "me/first:1"}, {"name": "second", "image": "me/second:1"}]
    statuses = [waiting("PodInitializing", "first"), waiting("PodInitializing", "second")]

    def awaited(*init_statuses: Object) -> list[str]:
        one = pod(USER, "a", "me/main:1", waiting("PodInitializing"), init=init, init_statuses=list(init_statuses))
        return [pulling.image for pulling in picture([node("a")], [one]).nodes[0].pulling]

    done = [{"name": name, "imageID": "i", "state": {"terminated": {"exitCode": 0}}} for name in ("first", "second")]
    assert awaited(*statuses) == ["me/first:1"]
    assert awaited(done[0], statuses[1]) == ["me/second:1"]
    assert awaited(*done) == ["me/main:1"]


def test_pods_without_a_node_are_counted_by_kind_with_the_age_of_the_oldest() -> None:
    text = drawn(picture([node("a")], [pod(USER), pod(USER), pod(PLACEHOLDER)]))
    assert "pending: 1 placeholder, oldest 1 min 30 s; 2 users, oldest 1 min 30 s\n" in text


def test_the_last_decisions_are_shown_newest_first_one_a_line() -> None:
    events = [decision(number, f"Successfully assigned hub/jupyter-{number} to node-{number}") for number in range(20)]
    message = "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are"
    events.append(decision(30, message + " available: 3 No preemption victims found.", "FailedScheduling"))
    lines = drawn(picture([node("a")], [], events)).splitlines()
    shown = lines[lines.index("last decisions (UTC)") + 1 :]
    assert [line.split()[0] for line in shown] == ["08:00:30", *(f"08:00:{number}" for number in range(19, 12, -1))]
    assert "FailedScheduling" in shown[0]
    assert "3 Insufficient cpu" in shown[0]
    assert shown[0].rstrip().endswith("…")
    assert shown[1].split() == ["08:00:19", "hub/jupyter-19", "->", "node-19"]


LONG = "gke-a-rather-long-cluster-name-default-pool-04539314-"


def busy() -> Picture:
    nodes = [node(f"{LONG}{number:04d}") for number in range(12)]
    image = "registry.example.org/a/rather/long/path/of/images/scipy-notebook:2027.01.15"
    pods = [pod(USER, one.state.name, image, waiting(), cpu="0.1") for one in nodes for _ in range(30)]
    pods += [pod(PLACEHOLDER, nodes[3].state.name, cpu="0.9")]
    return picture(nodes, pods, [decision(1, f"Successfully assigned hub/jupyter-1 to {LONG}0001")])


@pytest.mark.parametrize("columns", [20, 30, 40, 59, 60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal_and_names_keep_what_tells_them_apart(columns: int) -> None:
    lines = drawn(busy(), columns).splitlines()
    assert max(map(len, lines)) <= columns
    for number in range(12):
        # A node is one line, however narrow the terminal; and its bar has all kinds.
        (line,) = [line for line in lines if f"{number:04d} " in line and " U" in line]
        assert ("Up " in line) == (number == 3)
        if columns >= 30:
            assert f" {'30U 1p' if number == 3 else '30U'} " in line
            assert line.rstrip().endswith("%" if columns < 60 else " 0")
    if columns >= 60:
        assert "1 min 30 s  360 pods on 12 nodes" in lines[lines.index("images awaited") + 1]
    if columns >= 40:
        assert any(re.search(r"^08:00:01  \S*jupyter-1 +->  \S*-0001$", line) for line in lines)


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_names_that_end_alike_are_told_apart_by_what_comes_before(columns: int) -> None:
    ends = ("1-17", "1-203", "33-4")
    names = [f"ip-10-0-{end}.eu-west-1.compute.internal" for end in ends]
    events = [decision(at, f"Successfully assigned hub/jupyter-{at} to {name}") for at, name in enumerate(names)]
    lines = drawn(picture([node(name) for name in names], [], events), columns).splitlines()
    for end in ends:
        assert [bool(re.search(rf"\b{end}\S*", line)) for line in lines].count(True) == 2, lines
    assert max(map(len, lines)) <= columns


@pytest.mark.parametrize("height", [14, 24, 30])
@pytest.mark.parametrize("view", [None, View(), View(filter="0004", typing=True)])
def test_no_more_lines_than_the_terminal_has_and_what_is_left_out_is_said(height: int, view: View | None) -> None:
    events = [decision(number, f"Successfully assigned hub/jupyter-{number} to n") for number in range(20)]
    elsewhere = [decision(number, f"Successfully assigned db/db-{number} to n", namespace="db") for number in range(20)]
    seen = replace(busy(), decisions=events, decisions_elsewhere=elsewhere, pending_elsewhere=(1, 7.0))
    lines = drawn(seen, 100, height, view).splitlines()
    assert len(lines) <= height
    shown = [line for line in lines if "30U" in line]
    if view is not None and view.filter:
        assert lines[-1].startswith("filter: 0004_")
        assert len(shown) == 1
    elif view is not None:
        assert lines[-1].startswith(f"nodes 1 to {len(shown)} of 12   s: by trouble   /: filter ")
    else:
        assert (f"and {12 - len(shown)} more nodes" in lines) == (len(shown) < 12)
    assert len(lines) >= height - 3 or len(shown) in {1, 12}


def test_trouble_comes_first_and_other_orders_are_there() -> None:
    nodes = [node("a"), node("b", ready="False"), node("c", cordoned=True), node("d"), node("e")]
    pods = [pod(USER, "d", "me/typo:1", waiting("ErrImagePull"), cpu="0"), pod(USER, "e"), pod("dask", "a", cpu="3")]
    seen = picture(nodes, pods)

    def order(sort: str) -> str:
        return "".join(line.name for line in choose(seen, View(sort)).nodes)

    assert {sort: order(sort) for sort in SORTS} == {
        "trouble": "bcdae",
        "name": "abcde",
        "full": "aedbc",
        "users": "deabc",
    }
    lines = drawn(seen).splitlines()
    # What waits is said before the nodes.
    assert [line.split()[0] for line in lines[1:]][:4] == ["pending:", "node", "b", "c"]


def test_a_filter_keeps_nodes_and_decisions_that_hold_it() -> None:
    events = [decision(1, "Successfully assigned hub/jupyter-1 to gpu-1"), decision(2, "assigned to cpu-1")]
    seen = choose(picture([node("gpu-1"), node("cpu-1")], [], events), View(filter="GPU"))
    assert [line.name for line in seen.nodes] == ["gpu-1"]
    assert [event.about[2] for event in seen.decisions] == ["jupyter-1"]
    assert [
        line.name for line in choose(picture([node("a", ready="False"), node("b")]), View(filter="notr")).nodes
    ] == ["a"]


def test_what_other_namespaces_do_is_apart() -> None:
    pods = [
        pod(USER),
        pod("dask"),
        pod(USER, "a", namespace="second-hub"),
        pod("dask", namespace="second-hub"),
        pod("db", namespace="db"),
        pod("db", namespace="db"),
    ]
    spaces = ("hub", "second-hub", "db", "db", "db")
    events = [decision(number, f"assigned {name}/x to a", namespace=name) for number, name in enumerate(spaces)]
    lines = drawn(picture([node("a")], pods, events)).splitlines()
    assert "pending: 2 others, oldest 1 min 30 s; 1 user, oldest 1 min 30 s" in lines
    assert "in other namespaces: 2 pods, oldest 1 min 30 s" in lines
    at, apart = lines.index("last decisions (UTC)"), lines.index("in other namespaces")
    assert [line.split()[1] for line in lines[at + 1 : apart]] == ["second-hub/jupyter-1", "hub/jupyter-0"]
    assert [line.split()[1] for line in lines[apart + 1 :]] == ["db/jupyter-4", "db/jupyter-3"]


def test_an_empty_cluster_is_said_to_be_empty() -> None:
    lines = [line for line in drawn(picture([])).splitlines() if line.strip()]
    assert lines[1:] == ["pending: none", "no nodes"]


def test_a_node_without_pods_is_an_empty_bar() -> None:
    assert " - " in line_of(drawn(picture([node("a-1")])), "a-1")


def test_nothing_is_awaited_where_no_line_says_so() -> None:
    line = NodeLine("a", "Ready", {}, 0.0, 0, [])
    assert "images awaited" not in drawn(Picture([line], {}, []))
