"""The live cluster as a moment, and its face in a terminal of any size."""

import io
import json
import re
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lab.tests.objects import CREATED, node_object, node_reading, pod_object
from lab.tests.told import Story, stories
from roost_core.kube.client import ApiError
from roost_core.objects.fields import JSONObject
from roost_core.release.reader import SettingsError
from roost_lab.commands import top, view
from roost_lab.recorder.recording.hub_log import USER_ANNOTATION, read_hub_line
from roost_lab.recorder.recording.hub_log_followers import LogNotice
from roost_lab.recorder.recording.reading import NodeReading, PodReading, read_pod
from roost_lab.recorder.recording.scheduler_model import BUILD, PLACEHOLDER, USER
from roost_lab.units import US
from roost_lab.view.live import find_classes, rows_of, why_of
from roost_lab.view.moment import OTHER, ClusterMoment, as_json, moment_of, tell_moment
from roost_lab.view.terminal import MARKS, bar, in_order, show, watch
from roost_lab.view.unanswered_servers import Answers

# 90 s after that.
NOW_US = 1_800_000_090 * US
LETTERS = {kind: letter for kind, letter, _ in MARKS}


def node(
    name: str, *images: str, ready: str = "True", cordoned: bool = False, **metadata: Any
) -> NodeReading:
    item = node_object(name, images=images, ready=ready, unschedulable=cordoned)
    item["metadata"] |= metadata
    return node_reading(item)


def waiting(reason: str = "ContainerCreating", name: str = "main") -> JSONObject:
    return {"name": name, "state": {"waiting": {"reason": reason}}}


RUNNING: JSONObject = {
    "name": "main",
    "imageID": "i",
    "ready": True,
    "state": {"running": {"startedAt": CREATED}},
}


def pod(
    kind: str,
    on: str = "",
    image: str = "me/image:1",
    *statuses: JSONObject,
    name: str = "p",
    cpu: str = "1",
    **more: Any,
) -> PodReading:
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "initContainers": more.get("init", [])}
    if "gates" in more:
        spec["schedulingGates"] = [{"name": gate} for gate in more["gates"]]
    status = {"phase": more.get("phase", "Pending"), "containerStatuses": list(statuses)}
    status["initContainerStatuses"] = more.get("init_statuses", [])
    conditions = more.get("conditions")
    item = pod_object(
        name, on=on, labels={"kind": kind}, conditions=conditions, status=status, **spec
    )
    item["metadata"] |= {"uid": name, "annotations": {USER_ANNOTATION: more.get("user", "")}}
    found = read_pod(item, (), {}, keep_containers=True)
    assert found is not None
    return found


def condition(
    kind: str, status: str, reason: str = "", message: str = "", seconds: int = 30
) -> JSONObject:
    since = f"2027-01-15T08:{seconds // 60:02d}:{seconds % 60:02d}Z"
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


def moment(nodes: list[NodeReading], pods: list[PodReading], *notices: LogNotice) -> ClusterMoment:
    answers = Answers()
    for notice in notices:
        answers.hear(notice)
    return moment_of(
        rows_of(nodes, pods, lambda labels, _: labels.get("kind", ""), NOW_US, answers)
    )


def hub_notice(said: str = "", at: int = 30, begin: int = -60, *, read: bool = True) -> LogNotice:
    """at, begin: seconds after the pods' creation."""
    when = datetime(2027, 1, 15, 8, tzinfo=UTC) + timedelta(seconds=at)
    news = read_hub_line(f"[I {when:%Y-%m-%d %H:%M:%S}.000 JupyterHub base:1192] {said}")
    return LogNotice(pod("", "a", name="hub"), news, read, NOW_US + (begin - 90) * US)


def drawn(seen: ClusterMoment, columns: int = 120, lines: int | None = None) -> str:
    console = Console(width=columns, force_terminal=False)
    with console.capture() as capture:
        console.print(show(seen, columns, lines))
    return capture.get()


CONDITIONS = {
    "bound": ("PodScheduled", "True", ""),
    "preempted": ("DisruptionTarget", "True", "PreemptionByScheduler"),
}


def told_pod(
    kind: str, name: str, on: str = "", image: str = "me/image:1", state: str = "", **how: Any
) -> PodReading:
    """The pod of a story's line."""
    states = {"": [], "up": [RUNNING], "pulls": [waiting()]}
    conditions = [
        condition(*said, seconds=how.pop(key)) for key, said in CONDITIONS.items() if key in how
    ]
    if "unfit" in how:
        conditions.append(condition("PodScheduled", "False", "Unschedulable", how.pop("unfit")))
    how["cpu"] = str(how.get("cpu", 1))
    return pod(
        kind,
        on,
        image,
        *states.get(state, [waiting(state)]),
        name=name,
        conditions=conditions,
        **how,
    )


@stories("live-moments", "columns lines node pod hub states in-order why")
def test_what_stands_in_the_cluster_is_shown(story: Story) -> None:
    nodes, pods, notices, size, whys = [], [], [], {}, []
    for kind, plain, named in story.things:
        if kind == "node":
            nodes.append(node(*plain, **named))
        elif kind == "pod":
            pods.append(told_pod(*plain, **named))
        elif kind == "hub":
            notices.append(hub_notice(*plain, **named))
            pods += [notices[0].hub] if len(notices) == 1 else []
        elif kind in ("columns", "lines"):
            size[kind] = plain[0]
    seen = moment(nodes, pods, *notices)
    for thing in story.things:
        if thing.kind == "states":
            assert {
                each.uid: each.state for found in seen.nodes for each in found.pods
            } == thing.named
        elif thing.kind == "in-order":
            assert tuple(each.name for each in in_order(seen.nodes)) == thing.plain
        elif thing.kind == "why":
            whys.append(why_of(seen, *thing.plain) or "nobody\n")
    # The page takes it as it takes a moment of a record.
    assert json.loads(json.dumps(as_json(seen)))
    text = "\n".join(" ".join(line.split()) for line in drawn(seen, **size).splitlines())
    text = f"{text}\n{tell_moment(seen)}\n{''.join(whys)}"
    story.check(text)
    assert "\n".join(story.said[">"]) in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("namespaces", "with_log", "until"),
    [
        ("", "", "until its containers run"),
        ("", "a", "until it answers"),
        ("a b", "c", "until its containers run"),
        ("a b", "a b c", "until it answers"),
        ("a b", "a", "until it answers, where its hub's log can be read"),
    ],
)
def test_servers_start_until_they_answer_where_a_log_tells_when(
    namespaces: str, with_log: str, until: str
) -> None:
    assert Answers().until(namespaces.split(), dict.fromkeys(with_log.split(), 0)) == until


@given(
    st.dictionaries(st.sampled_from([USER, BUILD, PLACEHOLDER, OTHER]), st.integers(0, 500)),
    st.integers(min_value=8, max_value=80),
)
def test_a_bar_is_never_longer_than_its_room_and_drops_no_kind(
    counts: dict[str, int], width: int
) -> None:
    letters, _, numbers = bar(counts, width).plain.partition(" ")
    there = {kind: count for kind, count in counts.items() if count}
    assert len(letters) <= width
    assert set(letters) - {"-"} == {LETTERS[kind] for kind in there}
    if sum(there.values()) <= width:
        assert {kind: letters.count(LETTERS[kind]) for kind in there} == there
    assert sorted(filter(None, numbers.split(" "))) == sorted(
        f"{there[kind]}{LETTERS[kind]}" for kind in there
    )


LONG = "gke-a-rather-long-cluster-name-default-pool-04539314-"


def busy() -> ClusterMoment:
    nodes = [node(f"{LONG}{number:04d}") for number in range(12)]
    image = "registry.example.org/a/rather/long/path/of/images/scipy-notebook:2027.01.15"
    pods = [
        pod(USER, each.state.name, image, waiting(), cpu="0.1") for each in nodes for _ in range(30)
    ]
    placed = [condition("PodScheduled", "True", seconds=60)]
    pods += [
        pod(PLACEHOLDER, nodes[3].state.name, cpu="0.9", conditions=placed, name="placeholder-1")
    ]
    return moment(nodes, pods)


@pytest.mark.parametrize("columns", [20, 30, 59, 60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal_and_names_keep_what_tells_them_apart(
    columns: int,
) -> None:
    lines = drawn(busy(), columns).splitlines()
    assert max(map(len, lines)) <= columns
    for number in range(12):
        # A node is one line, however narrow the terminal; and its bar has all kinds.
        (line,) = [line for line in lines if f"{number:04d} " in line and "ready" in line]
        if columns >= 60:
            assert ("Up " in line) == (number == 3)
            assert f" {'30U 1p' if number == 3 else '30U'} " in line
            assert line.rstrip().endswith(" 0")
    if columns >= 60:
        assert lines[0] == "360 of 360 users wait: 360 for an image."
        assert any(re.search(r"placeholder-1 +\S*-0003 +08:01:00  placed$", line) for line in lines)


@pytest.mark.parametrize("height", [14, 24, 30])
def test_no_more_lines_than_the_terminal_has_and_what_is_left_out_is_said(height: int) -> None:
    lines = drawn(busy(), 100, height).splitlines()
    assert len(lines) <= height
    shown = [line for line in lines if "30U" in line]
    assert (f"and {12 - len(shown)} more nodes" in lines) == (len(shown) < 12)


class Cluster(NamedTuple):
    """Answers to the one question that the classes need."""

    documents: Sequence[str]
    status: int

    def get(self, path: str) -> JSONObject:
        assert path.startswith("/api/v1/configmaps?labelSelector=")
        if self.status != 200:
            raise ApiError(self.status, "no")
        found = enumerate(self.documents)
        return {
            "items": [
                {"metadata": {"namespace": f"ns-{n}"}, "data": {"release.json": one}}
                for n, one in found
            ]
        }


class UnreachedCluster:
    """Ends the command once it knows its classes."""

    def __init__(self, *_: object) -> None: ...

    def start(self, _: threading.Event) -> str:
        return "not reached"


OF_THIS_VERSION = json.dumps(
    {"version": 1, "namespace": "jhub", "podClasses": {"pupil": {"match": {"labels": {"a": "b"}}}}}
)
OF_ANOTHER_VERSION = json.dumps({"version": 9, "namespace": "jhub", "podClasses": {}})


def test_classes_are_those_of_the_release_that_is_installed_else_the_default_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = {
        "version": 1,
        "namespace": "jhub",
        "podClasses": {"pupil": {"match": {"labels": {"a": "b"}}}},
    }

    def class_of(labels: Mapping[str, str], *documents: str, status: int = 200) -> str | None:
        cluster: Any = Cluster(documents, status)
        found = find_classes(cluster).classes.classify(labels, "jhub", {})
        return found.name if found is not None else None

    odd = ({"version": 1, "podClasses": 1, "namespace": ""}, {**listed, "version": 9})
    faulty = ("{", "[]", *map(json.dumps, odd))
    assert class_of({"a": "b"}, *faulty, json.dumps(listed)) == "pupil"
    for documents, status in (((), 200), (faulty, 200), ((), 403)):
        assert class_of({"component": "singleuser-server"}, *documents, status=status) == USER
    path = tmp_path / "release.json"
    path.write_text(json.dumps(listed))
    anywhere: Any = None
    assert find_classes(anywhere, str(path)).classes.classify({"a": "b"}, "jhub", {}) is not None
    path.write_text(faulty[2])
    with pytest.raises(SettingsError, match="podClasses: found 1"):
        find_classes(anywhere, str(path))

    values = tmp_path / "values.yaml"
    values.write_text("podClasses: {pupil: {match: {labels: {a: b}}, profile: user}}")
    drawn: list[Any] = []
    monkeypatch.setattr(top, "connect_as_user", lambda *_: None)
    monkeypatch.setattr(top, "LiveCluster", lambda _, classes: classes)
    monkeypatch.setattr(top, "watch", lambda classes, *_, **__: drawn.append(classes))
    given = ["-f", str(values), "-n", "jhub", "--once"]
    assert CliRunner().invoke(top.command, given, standalone_mode=False).return_value == 0
    assert [drawn[0].classify({"a": "b"}, name, {}) is not None for name in ("jhub", "other")] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("documents", "status", "warning"),
    [
        # Another ConfigMap of the release.
        (("", OF_THIS_VERSION), 200, ""),
        (("",), 200, ""),
        ((), 200, ""),
        # The second release can be read.
        ((OF_ANOTHER_VERSION, OF_THIS_VERSION), 200, ""),
        (("", OF_ANOTHER_VERSION), 200, "the release in namespace ns-1 can't be read, perhaps"),
        ((OF_THIS_VERSION,), 403, "ConfigMaps can't be listed"),
    ],
)
def test_default_classes_in_place_of_the_releases_are_said(
    documents: Sequence[str], status: int, warning: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in (top, view):
        monkeypatch.setattr(command, "connect_as_user", lambda *_: Cluster(documents, status))
        monkeypatch.setattr(command, "LiveCluster", UnreachedCluster)
    runs = {
        "top": CliRunner().invoke(top.command, ["--once"], standalone_mode=False),
        "view": CliRunner().invoke(view.command, ["--live", "--port=0"], standalone_mode=False),
    }
    for name, run in runs.items():
        lines = [line for line in run.stderr.splitlines() if "default values' classes" in line]
        assert len(lines) == (1 if warning else 0), run.stderr
        assert all(line.startswith(f"roost {name}: {warning}") for line in lines)


class GrowingCluster:
    """A cluster that gets a node each time one looks, until Ctrl-C at the third look."""

    def __init__(self) -> None:
        self.looks = 0

    def start(self, _stop: threading.Event) -> str:
        return ""

    def moment(self) -> ClusterMoment:
        self.looks += 1
        if self.looks == 3:
            raise KeyboardInterrupt
        return moment([node(f"node-{number}") for number in range(self.looks)], [])


def test_the_live_view_draws_again_until_ctrl_c_and_leaves_the_screen_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("roost_lab.view.terminal.REFRESH_SECONDS", 0.0)
    cluster: Any = GrowingCluster()
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=24)
    assert watch(cluster, console, once=False) == ""
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "node-0" in text
    assert "node-1" in text
    assert text.rstrip("\n").endswith(("\x1b[?1049l", "\x1b[?25h"))
    assert text.count("\x1b[?1049h") == text.count("\x1b[?1049l") == 1
