"""What people exported of their cluster becomes a record: each start once, in any order, and no
more than is told.
"""

import gzip
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.tests.history import (
    BEGIN,
    IMAGE,
    Events,
    as_lines,
    contents,
    import_texts,
    listed,
    micros_of,
    morning,
    rows,
    seconds_text,
    uid_of,
    user_pod,
)
from lab.tests.moments import SECOND
from lab.tests.recorded import empty_store
from lab.tests.told import cases
from roost.cli import run
from roost_core.objects.fields import JSONObject
from roost_core.release.pod_classes import KeySource
from roost_lab.recorder.importing.history import ImportedHistory
from roost_lab.recorder.importing.objects import CLASS_OF_COMPONENT, KEY_SOURCES
from roost_lab.recorder.recording.settings import BINDER_REPOSITORY
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import Phase, PodSource
from roost_lab.report.gather import gather
from roost_lab.report.start_phases import WindowStarts
from tests.recorded_data import object_of
from tools.root import ROOT


def test_events_of_one_start_become_one_start(tmp_path: Path) -> None:
    store, events = empty_store(tmp_path), Events()
    events.start("jupyter-ada", BEGIN + timedelta(milliseconds=250), wait=95, pull=40, end=1800)
    history = import_texts(store, tmp_path, listed(events.items))
    assert (history.counts.used, history.counts.skipped) == ({"Events": 7}, {})
    (pod,) = rows(store, schema.pod)
    names = (uid_of("jupyter-ada"), "hub", "jupyter-ada", "user")
    assert (pod["uid"], pod["namespace"], pod["name"], pod["pod_class"]) == names
    assert (pod["image"], pod["scheduler"], pod["source"]) == (
        IMAGE,
        "hub-user-scheduler",
        PodSource.EVENT,
    )
    assert pod["created_us"] == micros_of(BEGIN)
    assert (pod["deleted_us"], pod["end_reason"]) == (
        micros_of(BEGIN + timedelta(minutes=30)),
        "deleted",
    )
    (pull,) = rows(store, schema.pull)
    assert (pull["warm"], pull["image_bytes"], pull["node_name"]) == (False, 1203405607, "node-1")
    assert (pull["pull_us"], pull["pull_and_wait_us"]) == (39_500_000, 40 * SECOND)
    (start,) = contents(store)["starts"]
    assert start["bound_us"] - start["created_us"] == 95_250_000
    assert start["started_us"] == start["ready_us"] == micros_of(BEGIN + timedelta(seconds=136))


def test_the_report_says_what_users_waited_for_and_what_events_cannot_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, database, page = (
        tmp_path / "events.json",
        str(tmp_path / "h.db"),
        tmp_path / "report.html",
    )
    events = morning(6)
    for event in events.items:
        event["message"] = event["message"].partition(" Image size")[0]
    file.write_text(listed(events.items))
    assert run(["records", "import", str(file), "--database", database]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{len(events.items)} Events read: 6 pods (6 user)",
        (
            "Users waited until containers run and are ready, in 6 starts: median 41 s, 95 % within"
            " 2 min 16 s"
        ),
        "  until it has a node: median at most 250 ms, 95 % within 1 min 35 s",
        "  until its containers run: median 40.8 s to 41.8 s, 95 % within 41.8 s",
        "  4 of 6 pulls were cold: median 40 s, 95 % within 40 s",
    ]
    assert run(["report", "--database", database, "--output", str(page)]) == 0
    text = page.read_text()
    assert "6 pods of this period are known from imported Events alone." in text
    assert "of 3 pods no end (in the plots they stay); of 4 of 4 cold pulls no size." in text
    assert run(["why", "jupyter-user-2", "--database", database]) == 0
    said = capsys.readouterr().out
    assert "First Event 2026-10-05 08:02:00 UTC, its containers ran 2 min 16 s later." in said
    assert "1 min 35 s for a node, after at least 1 failed attempt" in said
    assert "40 s for image" in said
    assert "Note: known from imported Events alone." in said


@given(st.data())
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_overlapping_files_in_any_order_are_as_one(tmp_path: Path, data: st.DataObject) -> None:
    items: list[JSONObject] = [
        *morning(6).items,
        user_pod("jupyter-user-1", BEGIN + timedelta(seconds=59)),
    ]
    items += [
        user_pod("jupyter-user-2", BEGIN + timedelta(seconds=118), component="binderhub-build")
    ]
    whole = empty_store(tmp_path)
    import_texts(whole, tmp_path, listed(items))
    expected = contents(whole)
    whole.close()
    parts = data.draw(st.lists(st.sets(st.integers(0, len(items) - 1)), max_size=4))
    missing = set(range(len(items))) - set().union(*parts)
    split = empty_store(tmp_path)
    for part in data.draw(st.permutations([*parts, missing])):
        import_texts(
            split,
            tmp_path,
            listed(items[number] for number in data.draw(st.permutations(sorted(part)))),
        )
    assert contents(split) == expected
    split.close()


def test_a_pods_object_knows_more_than_its_events_whichever_comes_first(tmp_path: Path) -> None:
    events = Events()
    # The scheduler took two seconds: its Event is not the creation.
    events.start("jupyter-ada", BEGIN + timedelta(seconds=2), end=600)
    texts = [listed(events.items), listed([user_pod("jupyter-ada", BEGIN)])]
    found = []
    for order in (texts, texts[::-1]):
        store = empty_store(tmp_path)
        for text in order:
            import_texts(store, tmp_path, text)
        found.append(contents(store))
        store.close()
    assert found[0] == found[1]
    (pod,), (start,) = found[0]["pod"], found[0]["starts"]
    assert (pod["source"], pod["hub"], pod["cpu_millicores"]) == (PodSource.POD, "our-hub.hub", 500)
    assert start["created_us"] == micros_of(BEGIN)
    assert start["ready_us"] == micros_of(BEGIN + timedelta(seconds=6))
    assert pod["deleted_us"] == micros_of(BEGIN + timedelta(seconds=602))


def test_classes_are_recognised_as_the_chart_recognises_them() -> None:
    classes = yaml.safe_load((ROOT / "chart" / "values.yaml").read_text())["podClasses"]
    assert {
        one["match"]["labels"]["component"]: name for name, one in classes.items()
    } == CLASS_OF_COMPONENT


def test_a_repository_is_read_where_the_charts_classes_read_it() -> None:
    classes = yaml.safe_load((ROOT / "chart" / "values.yaml").read_text())["podClasses"]
    homes = [pod_class["home"] for pod_class in classes.values() if "home" in pod_class]
    places = [
        KeySource(kind, name) for home in homes for key in home["key"] for kind, name in key.items()
    ]
    assert (*places, BINDER_REPOSITORY) == KEY_SOURCES


@pytest.mark.parametrize(("name", "namespace", "pod_class"), cases("importing", "names"))
def test_without_labels_names_tell_the_class(
    tmp_path: Path, name: str, namespace: str, pod_class: str
) -> None:
    store, events = empty_store(tmp_path), Events()
    event = events.add(name, "Created", "Created container: notebook", BEGIN)
    event["involvedObject"]["namespace"] = namespace
    import_texts(store, tmp_path, listed(events.items))
    assert [row["pod_class"] for row in rows(store, schema.pod)] == [pod_class]


def test_a_pod_whose_start_no_event_tells_is_no_launch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, events = empty_store(tmp_path), Events()
    events.add("jupyter-old", "Killing", "Stopping container notebook", BEGIN)
    events.start("jupyter-new", BEGIN, pull=40)
    import_texts(store, tmp_path, listed(events.items))
    assert (
        run(["records", "export", "--database", str(tmp_path / "roost.db"), "--format", "launches"])
        == 0
    )
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["name"], line["image_bytes"], line["ready_seconds"]) == (
        "hub/jupyter-new",
        1203405607,
        41.0,
    )
    assert gather(store)[WindowStarts].whole.count == 1


def test_what_ends_a_container_that_starts_again_ends_no_pod(tmp_path: Path) -> None:
    store, events = empty_store(tmp_path), Events()
    events.start("jupyter-ada", BEGIN)
    later = BEGIN + timedelta(hours=1)
    events.add(
        "jupyter-ada",
        "Killing",
        "Container notebook failed liveness probe, will be restarted",
        later,
    )
    events.add("jupyter-ada", "Started", "Started container notebook", later)
    import_texts(store, tmp_path, listed(reversed(events.items)))
    (start,) = contents(store)["starts"]
    assert start["deleted_us"] is None
    assert start["started_us"] == micros_of(BEGIN + timedelta(seconds=1))


def test_repeats_that_an_event_counts_are_tries(tmp_path: Path) -> None:
    store, events = empty_store(tmp_path), Events()
    failed = events.schedule(
        "jupyter-ada", "FailedScheduling", "0/4 nodes are available: 4 Insufficient cpu.", BEGIN
    )
    failed["series"] = {"count": 7, "lastObservedTime": seconds_text(BEGIN + timedelta(minutes=3))}
    import_texts(store, tmp_path, listed(events.items))
    (decision,) = rows(store, schema.decision)
    assert (decision["tries"], decision["last_us"] - decision["at_us"]) == (7, 180 * SECOND)


def forms(items: list[JSONObject]) -> dict[str, bytes]:
    """The same Events in every form that kubectl, gzip and shells give them."""
    indented = listed(items).encode()
    return {
        "list": indented,
        "list in a line": json.dumps(json.loads(indented)).encode(),
        "lines": as_lines(items).encode(),
        "watch": "\n".join(json.dumps(item, indent=4) for item in items).encode(),
        "watch events": as_lines({"type": "ADDED", "object": item} for item in items).encode(),
        "array": json.dumps(items, indent=2).encode(),
        "yaml": yaml.safe_dump(json.loads(indented)).encode(),
        "yaml documents": yaml.safe_dump_all(items, explicit_start=True).encode(),
        "gzip": gzip.compress(indented),
        "gzip in parts": gzip.compress(indented[:500]) + gzip.compress(indented[500:]),
        "PowerShell": indented.decode().replace("\n", "\r\n").encode("utf-16"),
        "byte order mark": b"\xef\xbb\xbf" + as_lines(items).encode(),
    }


def test_damage_costs_what_is_damaged(tmp_path: Path) -> None:
    items = morning(3).items
    lines = as_lines(items).encode().splitlines(keepends=True)
    lines[2] = lines[2][:80] + b"\n"
    lines.insert(5, b"\xff\xfe\x00 binary\n")
    lines.insert(6, b"2026-10-05 08:00:00 an ordinary log line\n")
    history = import_texts(empty_store(tmp_path), tmp_path, b"".join(lines))
    assert history.counts.used == {"Events": len(items) - 1}
    assert history.counts.skipped == {"not valid JSON": 3}
    assert str(history.counts.first["not valid JSON"]) == f"{tmp_path}/file-0.json:3"


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_list_that_breaks_off_gives_its_whole_items(tmp_path: Path, share: float) -> None:
    items = morning(3).items
    text = listed(items)
    cut = text[: int(len(text) * share)]
    whole = cut.count("\n        }")
    history = import_texts(empty_store(tmp_path), tmp_path, cut)
    assert 0 < whole < len(items)
    assert history.counts.used == {"Events": whole}
    assert history.counts.skipped == {"not valid JSON": 1}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_gzip_that_breaks_off_gives_what_is_there(tmp_path: Path, encoding: str) -> None:
    packed = gzip.compress(as_lines(morning(60).items).encode(encoding))
    history = import_texts(empty_store(tmp_path), tmp_path, packed[: len(packed) // 2])
    assert history.counts.used["Events"] > 50
    assert "the compressed data breaks off or is damaged from here on" in history.counts.skipped


@pytest.mark.parametrize(("key", "value", "reason"), cases("importing", "odd"))
def test_an_odd_event_is_counted_and_the_others_are_stored(
    tmp_path: Path, key: str, value: object, reason: str
) -> None:
    events = morning(2)
    odd = events.add("jupyter-odd", "Started", "Started container notebook", BEGIN)
    outer, _, inner = key.rpartition(".")
    (odd[outer] if outer else odd)[inner] = value
    history = import_texts(empty_store(tmp_path), tmp_path, listed(events.items))
    assert dict(history.counts.skipped) == ({reason: 1} if reason else {})
    assert history.counts.used["Events"] == len(events.items) - bool(reason)


@pytest.mark.parametrize(("content", "said"), cases("importing", "no_history"))
def test_a_file_without_history_says_what_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, said: str
) -> None:
    file = tmp_path / "odd.json"
    file.write_text(content)
    assert run(["records", "import", str(file), "--database", str(tmp_path / "h.db")]) == 2
    error = capsys.readouterr().err
    assert f"roost records: {file}: {said}" in error
    assert "Traceback" not in error


def test_a_file_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(
            ["records", "import", str(tmp_path / "none.json"), "--database", str(tmp_path / "h.db")]
        )
        == 2
    )
    assert (
        f"roost records: {tmp_path}/none.json: No such file or directory\n"
        in capsys.readouterr().err
    )


def test_a_row_that_the_database_refuses_costs_no_other(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    with store.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER picky BEFORE INSERT ON phase WHEN NEW.detail = 'picky' BEGIN SELECT"
            " RAISE(ABORT, 'no'); END"
        )
    events = morning(2)
    odd = events.add("jupyter-user-0", "Started", "Started container picky", BEGIN)
    odd["involvedObject"]["fieldPath"] = "spec.containers{picky}"
    history = import_texts(store, tmp_path, listed(events.items))
    assert history.counts.skipped == {"a row that the database refuses": 1}
    assert len(contents(store)["starts"]) == 2


SAMPLES = Path(__file__).parents[2] / "data" / "history"
AUDIT = "audit.jsonl"
FORMS = sorted(path.name for path in SAMPLES.iterdir() if path.name != AUDIT)


def import_sample(store: Store, name: str) -> ImportedHistory:
    history = ImportedHistory(store)
    history.read([str(SAMPLES / name)])
    return history


def told(store: Store) -> dict[str, Any]:
    """What all forms have; some have pods' labels, too."""
    found = contents(store)
    same = {table: found[table] for table in ("starts", "phase", "decision", "pull")}
    return {**same, "pods": [{**pod, "hub": ""} for pod in found["pod"]]}


@pytest.mark.parametrize("form", [*FORMS, *forms([])])
def test_every_form_gives_the_same_three_starts(tmp_path: Path, form: str) -> None:
    store = empty_store(tmp_path)
    assert import_sample(store, "kubectl-list.json").counts.used == {"Events": 17}
    expected = told(store)
    store.close()
    store = empty_store(tmp_path)
    if form in FORMS:
        history = import_sample(store, form)
    else:
        items = json.loads((SAMPLES / "kubectl-list.json").read_text())["items"]
        history = import_texts(store, tmp_path, forms(items)[form])
    assert (history.counts.used, history.counts.skipped) == ({"Events": 17}, {})
    assert told(store) == expected
    took = [start["ready_us"] - start["created_us"] for start in expected["starts"]]
    assert took == [SECOND, 136 * SECOND, 13 * SECOND]


def by_a_wrong_clock(item: Any, seconds: int) -> Any:
    """What kubelets date is so many seconds later: their Events, and pods' status but for the
    scheduler's condition.
    """
    if isinstance(item, list):
        return [by_a_wrong_clock(one, seconds) for one in item]
    if not isinstance(item, dict) or item.get("type") == "PodScheduled" or item.get("source") == {}:
        return item
    dated = {
        "firstTimestamp",
        "lastTimestamp",
        "startTime",
        "lastTransitionTime",
        "startedAt",
    } & item.keys()
    later = {
        key: datetime.fromisoformat(item[key]) + timedelta(seconds=seconds)
        for key in dated
        if item[key]
    }
    return {
        key: seconds_text(later[key]) if key in later else by_a_wrong_clock(item[key], seconds)
        for key in item
    }


@pytest.mark.parametrize(
    ("seconds", "told"), [(-30, {"node-1": 30_000_000}), (45, {"node-1": -45_000_000}), (1, {})]
)
@pytest.mark.parametrize("from_audit", [False, True])
def test_a_node_with_a_wrong_clock_costs_no_figure(
    tmp_path: Path, seconds: int, told: dict[str, int], from_audit: bool
) -> None:
    """Kubelets date their Events and pods' status by the node's clock, the API server the objects
    by its own.
    """
    # The second pod is older than any Event that tells of the clock.
    items = [user_pod(f"jupyter-user-{hours}", BEGIN - timedelta(hours=hours)) for hours in (0, 3)]
    if from_audit:
        items = [json.loads(line) for line in (SAMPLES / AUDIT).read_text().splitlines()]
        items = [item | {"user": {"username": "system:node:node-1"}} for item in items]
    items += json.loads((SAMPLES / "kubectl-list.json").read_text())["items"]
    found = []
    for name, some in (("right", items), ("wrong", by_a_wrong_clock(items, seconds))):
        (tmp_path / name).mkdir()
        store = empty_store(tmp_path / name)
        found.append((import_texts(store, tmp_path, as_lines(some)).counts.clocks, contents(store)))
    assert found[0][0] == {}
    assert (found[1][0], found[0][1] == found[1][1]) == (told, bool(told))


def test_one_event_that_comes_late_says_nothing_of_a_clock(tmp_path: Path) -> None:
    events = morning(1).items
    events[-1]["metadata"]["creationTimestamp"] = seconds_text(BEGIN + timedelta(hours=9))
    assert import_texts(empty_store(tmp_path), tmp_path, listed(events)).counts.clocks == {}


def test_exporters_that_know_labels_tell_class_and_hub(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    import_sample(store, "loki-logcli.jsonl")
    assert {(pod["pod_class"], pod["hub"]) for pod in rows(store, schema.pod)} == {
        ("user", "our-hub.hub")
    }


def test_an_audit_log_tells_creation_binding_readiness_and_end(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    history = import_sample(store, AUDIT)
    assert history.counts.used == {"audit log entries": 11}
    expected = {
        "an audit log entry of an earlier stage": 3,
        "an audit log entry that changes nothing": 3,
    }
    assert history.counts.skipped == expected
    ada, bob, _ = rows(store, schema.pod)
    assert (ada["name"], ada["pod_class"]) == ("jupyter-ada", "user")
    assert (ada["hub"], ada["cpu_millicores"]) == ("our-hub.hub", 500)
    assert (ada["source"], ada["deleted_us"]) == (
        PodSource.POD,
        micros_of(BEGIN + timedelta(minutes=30)),
    )
    assert (bob["created_us"], bob["deleted_us"]) == (micros_of(BEGIN + timedelta(minutes=1)), None)
    start = next(
        one for one in contents(store)["starts"] if one["pod_uid"] == uid_of("jupyter-bob")
    )
    assert start["bound_us"] - start["created_us"] == 95_250_000
    assert start["ready_us"] - start["created_us"] == 136 * SECOND
    gone = {row["pod_uid"] for row in rows(store, schema.phase) if row["phase"] == Phase.GONE}
    assert gone == {uid_of("jupyter-ada"), uid_of("jupyter-cyd")}


def test_an_audit_log_in_pieces_and_backwards_gives_the_same(tmp_path: Path) -> None:
    lines = (SAMPLES / AUDIT).read_text().splitlines(keepends=True)
    whole = empty_store(tmp_path)
    import_texts(whole, tmp_path, "".join(lines))
    expected = contents(whole)
    whole.close()
    pieces = empty_store(tmp_path)
    for line in reversed(lines):
        import_texts(pieces, tmp_path, line)
    assert contents(pieces) == expected


def test_an_audit_log_without_objects_says_which_level_it_has(tmp_path: Path) -> None:
    entry = object_of("audit-entry")
    refused = {**entry, "responseStatus": {"code": 403}}
    other = {**entry, "objectRef": {"resource": "secrets"}}
    history = import_texts(empty_store(tmp_path), tmp_path, as_lines([entry, refused, other]))
    assert history.counts.skipped == {
        "an audit log entry without its pod's object (level Metadata)": 1,
        "an audit log entry of a refused request": 1,
        "an audit log entry about something else than pods": 1,
    }


def test_lines_of_grafana_alloy_are_named(tmp_path: Path) -> None:
    as_json = {
        "name": "jupyter-ada",
        "kind": "Pod",
        "objectAPIversion": "v1",
        "reason": "Started",
        "msg": "Started",
    }
    as_text = {
        "labels": {},
        "line": "name=jupyter-ada kind=Pod objectAPIversion=v1 reason=Started",
        "timestamp": "",
    }
    history = import_texts(
        empty_store(tmp_path), tmp_path, as_lines([as_json, as_text, *morning(1).items])
    )
    assert history.counts.skipped == {
        "a line of Grafana Alloy's kubernetes_events, which don't have the uids of pods": 2
    }
