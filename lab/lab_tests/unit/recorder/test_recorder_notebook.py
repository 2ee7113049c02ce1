"""What analysts do in a notebook: pandas reads the views of both databases."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING, TypeVar

import pandas as pd
import pytest

from lab_tests.recorded import empty_store
from roost_lab.recorder.store.database import POSTGRESQL, SQLITE, Store
from roost_lab.recorder.store.records import (
    DecisionKind,
    DecisionRecord,
    NodeRecord,
    Phase,
    PhaseRecord,
    PodRecord,
    PullRecord,
)
from tools.recorded_story import Story, records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from roost_lab.recorder.store.records import Record
    from tests.harness.postgres import Postgres

HOUR_US = 3600 * 1_000_000
STORY = Story(days=1, users_a_day=400, placeholders=5, images=6, nodes_at_least=1)
R = TypeVar("R")


@pytest.fixture(scope="module")
def told() -> list[Record]:
    return list(records(STORY))


@pytest.fixture(params=[SQLITE, POSTGRESQL])
def store(request: pytest.FixtureRequest, tmp_path: Path, told: list[Record]) -> Iterator[Store]:
    if request.param == SQLITE:
        store = empty_store(tmp_path)
    else:
        server: Postgres = request.getfixturevalue("server")
        store = Store.open(server.create(f"notebook_{request.node.name.partition('[')[0]}"[:60]))
        store.migrate()
    store.write(told, {})
    yield store
    store.close()


def of(told: list[Record], kind: type[R]) -> list[R]:
    return [record for record in told if isinstance(record, kind)]


def is_file(store: Store) -> bool:
    return store.engine.dialect.name == SQLITE


def frame(store: Store, view: str, *times: str) -> pd.DataFrame:
    """A view, as lab/docs/record.md reads it."""
    query = f"SELECT * FROM {view}"  # noqa: S608 - ours
    if is_file(store):
        with contextlib.closing(sqlite3.connect(str(store.engine.url.database))) as connection:
            return pd.read_sql(query, connection, parse_dates=list(times))
    with store.engine.connect() as connected:
        return pd.read_sql(query, connected)


def test_starts_are_a_frame_of_times_and_seconds(store: Store, told: list[Record]) -> None:
    starts = frame(store, "v_start", "created", "ready")
    pods = {pod.uid: pod for pod in of(told, PodRecord)}
    assert len(starts) == len(pods) > 300
    expected = [
        (step.at_us - pods[step.pod_uid].created_us) / 1e6
        for step in of(told, PhaseRecord)
        if step.phase is Phase.READY and pods[step.pod_uid].pod_class == "user"
    ]
    users = starts[starts.pod_class == "user"].ready_seconds.dropna()
    assert sorted(users) == pytest.approx(sorted(expected))
    # The times say the same.
    spans = (starts.ready - starts.created).dt.total_seconds().dropna()
    assert list(spans) == pytest.approx(list(starts.ready_seconds.dropna()))


def test_pulls_and_failures_are_frames_that_add_up(store: Store, told: list[Record]) -> None:
    pulls = frame(store, "v_pull", "finished")
    warm = [pull.warm for pull in of(told, PullRecord)]
    assert pulls.is_warm.astype(bool).mean() == pytest.approx(sum(warm) / len(warm))
    failures = frame(store, "v_failure", "first", "last")
    tries = [decision.tries for decision in of(told, DecisionRecord) if decision.kind is DecisionKind.FAIL]
    assert failures.drop_duplicates(["pod_uid", "first"]).tries.sum() == sum(tries) > 0


def test_node_hours_are_the_lives_of_nodes(store: Store, told: list[Record]) -> None:
    rows = frame(store, "v_node_hours", "hour")
    assert rows.hours.between(0, 1).all()
    assert (rows.hour.dt.minute == 0).all()
    hours = rows.groupby("node_uid").hours.sum()
    begin_us = min(pod.created_us for pod in of(told, PodRecord))
    created_us: dict[str, int] = {}
    gone_us: dict[str, int] = {}
    for node in of(told, NodeRecord):
        created_us.setdefault(node.uid, node.created_us)
        if node.gone_us is not None:
            gone_us[node.uid] = node.gone_us
    assert gone_us
    for uid, at_us in gone_us.items():
        assert hours[uid] == pytest.approx((at_us - max(created_us[uid], begin_us)) / HOUR_US)
