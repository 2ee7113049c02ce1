"""Each query of the dashboard for Grafana's PostgreSQL source runs on a real one, and shows what was recorded."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from lab.tests.recorded import BEGIN, HOUR, SECOND, pod_record, story_records
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import NODES, PODS, PodRecord
from tests.harness.postgres import Postgres

Object = dict[str, Any]
DASHBOARD: Object = json.loads((Path(__file__).parents[4] / "chart" / "grafana-record.json").read_text())
PANELS: list[Object] = DASHBOARD["panels"]
FROM, UNTIL = (datetime.fromtimestamp(BEGIN // SECOND + offset, UTC) for offset in (-3600, 6 * 3600))


def expanded(query: str, hubs: str = "'hub'") -> str:
    """A query as Grafana sends it: its macros of PostgreSQL, and the variable of hubs."""
    query = query.replace("$__interval", "1h").replace("${hub:sqlstring}", hubs)
    between = f"BETWEEN '{FROM:%Y-%m-%dT%H:%M:%SZ}' AND '{UNTIL:%Y-%m-%dT%H:%M:%SZ}'"
    query = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 {between}", query)

    def group(found: re.Match[str]) -> str:
        seconds = {"h": 3600, "d": 86_400}[found[3]] * int(found[2])
        return f"floor(extract(epoch from {found[1]})/{seconds})*{seconds}"

    query = re.sub(r"\$__timeGroup\((\w+),\s*'?(\d+)([hd])'?\)", group, query)
    assert "$" not in query, query
    return query


@pytest.fixture(scope="module")
def store(server: Postgres) -> Iterator[Store]:
    store = Store.open(server.create("dashboard"))
    store.migrate()
    given_up = pod_record("gone", created_us=BEGIN + HOUR, deleted_us=BEGIN + HOUR + 300 * SECOND)
    records = [*story_records(), given_up]
    records = [replace(one, hub="hub") if isinstance(one, PodRecord) else one for one in records]
    store.write(records, dict.fromkeys((NODES, PODS), ("1", BEGIN + 3 * HOUR)))
    yield store
    store.close()


def rows(store: Store, query: str) -> list[Object]:
    with store.reading() as connection:
        found = connection.execute(sa.text(expanded(query).replace(":", "\\:"))).mappings()
        return [dict(row) for row in found]


def query_of(title: str) -> str:
    (panel,) = [one for one in PANELS if one["title"] == title]
    (target,) = panel["targets"]
    return str(target["rawSql"])


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_each_panel_shows_something_in_the_shape_that_its_kind_needs(store: Store, panel: Object) -> None:
    (target,) = panel["targets"]
    found = rows(store, target["rawSql"])
    assert found
    if panel["type"] == "stat":
        ((value,),) = [tuple(row.values()) for row in found]
        assert value is not None
    elif panel["type"] == "timeseries":
        assert target["format"] == "time_series"
        for row in found:
            time, *values = row.items()
            assert time[0] == "time"
            assert all(value is None or float(value) >= 0 for _, value in values)
    else:
        columns = set(found[0])
        named = {one["matcher"]["options"] for one in panel["fieldConfig"]["overrides"]}
        assert named <= columns, "a column is styled that isn't there"


def test_figures_are_those_of_the_record(store: Store) -> None:
    values = {
        panel["title"]: rows(store, panel["targets"][0]["rawSql"])[0] for panel in PANELS if panel["type"] == "stat"
    }
    assert {title: float(next(iter(row.values()))) for title, row in values.items()} == {
        "Users": 2,
        "Starts": 2,
        "Nine of ten start within": 3,
        "Warm starts": 0,
        "Never ready": 1,
        "Node-hours": 3,
    }
    (slowest,) = rows(store, query_of("The slowest starts"))
    assert (slowest["Pod"], slowest["Node"], slowest["Ready after"]) == ("hub/p", "n", 3.0)
    (failure,) = rows(store, query_of("Why pods found no node"))
    assert (failure["Reason"], failure["Pods"]) == ("Insufficient cpu", 1)


def test_the_choice_of_hubs_lists_those_of_the_time_that_is_shown(store: Store) -> None:
    (variable,) = [one for one in DASHBOARD["templating"]["list"] if one["type"] == "query"]
    assert [row["hub"] for row in rows(store, variable["query"])] == ["hub"]


def test_an_account_that_may_read_the_views_alone_needs_no_more(store: Store) -> None:
    page = (Path(__file__).parents[4] / "docs" / "monitoring.md").read_text()
    (statements,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    with store.engine.connect() as connection:
        # As the page says; nothing of it is kept.
        connection.exec_driver_sql(statements.replace("…", "made-up"))
        connection.exec_driver_sql("SET LOCAL ROLE grafana")
        for panel in PANELS:
            connection.exec_driver_sql(expanded(panel["targets"][0]["rawSql"]))
        with pytest.raises(sa.exc.ProgrammingError, match="permission denied for table pod"):
            connection.exec_driver_sql("SELECT * FROM pod")
