"""Each form of a cluster's history, by a small sample of lab/tests/data/history: the same three starts."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lab.tests.history import (
    BEGIN,
    as_lines,
    contents,
    import_texts,
    listed,
    micros_of,
    morning,
    rows,
    seconds_text,
    uid_of,
)
from lab.tests.recorded import SECOND, empty_store
from roost_lab.recorder.importing.history import ImportedHistory
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import Phase, PodSource

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
    return {
        "starts": found["starts"],
        "phase": found["phase"],
        "decision": found["decision"],
        "pull": found["pull"],
        "pods": [{**pod, "hub": ""} for pod in found["pod"]],
    }


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_three_starts(tmp_path: Path, form: str) -> None:
    store = empty_store(tmp_path)
    assert import_sample(store, "kubectl-list.json").counts.used == {"Events": 17}
    expected = told(store)
    store.close()
    store = empty_store(tmp_path)
    history = import_sample(store, form)
    assert (history.counts.used, history.counts.skipped) == ({"Events": 17}, {})
    assert told(store) == expected
    assert [start["ready_us"] - start["created_us"] for start in expected["starts"]] == [
        SECOND,
        136 * SECOND,
        13 * SECOND,
    ]


@pytest.mark.parametrize(("seconds", "told"), [(-30, {"node-1": 30_000_000}), (45, {"node-1": -45_000_000}), (1, {})])
def test_a_node_with_a_wrong_clock_costs_no_figure(tmp_path: Path, seconds: int, told: dict[str, int]) -> None:
    """Kubelets date their Events by the node's clock, the API server the objects by its own."""
    events = morning(2).items
    moved = json.loads(json.dumps(events))
    for event in (event for event in moved if event["source"]):
        for key in ("firstTimestamp", "lastTimestamp"):
            event[key] = seconds_text(datetime.fromisoformat(event[key]) + timedelta(seconds=seconds))
    found = []
    for name, items in (("right", events), ("wrong", moved)):
        (tmp_path / name).mkdir()
        store = empty_store(tmp_path / name)
        clocks = import_texts(store, tmp_path, listed(items)).counts.clocks
        found.append((clocks, contents(store)))
    assert found[0][0] == {}
    assert found[1][0] == told
    assert (found[0][1] == found[1][1]) == bool(told)


def test_one_event_that_comes_late_says_nothing_of_a_clock(tmp_path: Path) -> None:
    events = morning(1).items
    events[-1]["metadata"]["creationTimestamp"] = seconds_text(BEGIN + timedelta(hours=9))
    assert import_texts(empty_store(tmp_path), tmp_path, listed(events)).counts.clocks == {}


def test_exporters_that_know_labels_tell_class_and_hub(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    import_sample(store, "loki-logcli.jsonl")
    assert {(pod["pod_class"], pod["hub"]) for pod in rows(store, schema.pod)} == {("user", "our-hub.hub")}


def test_an_audit_log_tells_creation_binding_readiness_and_end(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    history = import_sample(store, AUDIT)
    assert history.counts.used == {"audit log entries": 11}
    assert history.counts.skipped == {
        "an audit log entry of an earlier stage": 3,
        "an audit log entry that changes nothing": 3,
    }
    ada, bob, _ = rows(store, schema.pod)
    assert (ada["name"], ada["pod_class"]) == ("jupyter-ada", "user")
    assert (ada["hub"], ada["cpu_millicores"]) == ("our-hub.hub", 500)
    assert (ada["source"], ada["deleted_us"]) == (PodSource.POD, micros_of(BEGIN + timedelta(minutes=30)))
    assert (bob["created_us"], bob["deleted_us"]) == (micros_of(BEGIN + timedelta(minutes=1)), None)
    start = next(one for one in contents(store)["starts"] if one["pod_uid"] == uid_of("jupyter-bob"))
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
    entry = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "verb": "create",
        "objectRef": {"resource": "pods", "namespace": "hub", "name": "jupyter-ada"},
        "responseStatus": {"code": 201},
        "stageTimestamp": "2026-10-05T08:00:00.000000Z",
    }
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
        "msg": "Started container",
    }
    as_text = {"labels": {}, "line": "name=jupyter-ada kind=Pod objectAPIversion=v1 reason=Started", "timestamp": ""}
    history = import_texts(empty_store(tmp_path), tmp_path, as_lines([as_json, as_text, *morning(1).items]))
    assert history.counts.skipped == {
        "a line of Grafana Alloy's kubernetes_events, which don't have the uids of pods": 2
    }
