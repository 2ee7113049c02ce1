"""Peaks against capacity, and costs, as brute force finds them, in both databases."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, NamedTuple

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from lab_tests.recorded import BEGIN, HOUR, MINUTE, SECOND, bind_record, empty_store, phase_record, pod_record
from roost.__main__ import main
from roost_lab.recorder.store import records, schema
from roost_lab.recorder.store.database import POSTGRESQL, SQLITE, Store
from roost_lab.recorder.store.records import NODES, NodeRecord, PreemptionRecord, Record
from roost_lab.report.capacity import Capacity
from roost_lab.report.costs import Costs
from roost_lab.report.formats import to_csv, to_json
from roost_lab.report.gather import gather
from roost_lab.report.page import make_page
from roost_lab.report.prices import Price, PriceError, parse_price, price_of
from roost_lab.report.scope import Scope
from roost_lab.report.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.harness.postgres import Postgres

END = BEGIN + 2 * HOUR
POOL = "pool"
PRICES = (Price(POOL, "big", 2.0), Price("spot", "true", 0.25), Price(POOL, "small", 1.0))


class MadePod(NamedTuple):
    bound_us: int
    # None: it is still there.
    gone_us: int | None
    cpu: int
    memory: int
    pod_class: str


class MadeNode(NamedTuple):
    came_us: int
    gone_us: int | None
    cpu: int
    labels: dict[str, str]


# Few moments, so that many coincide; some lie before and after the window, or within a step.
moments = st.builds(
    lambda number, within: BEGIN + number * 5 * MINUTE + within, st.integers(-6, 30), st.sampled_from([0, 15 * SECOND])
)
made_pods = st.builds(
    lambda at, lasts, *rest: MadePod(at, None if lasts is None else at + lasts * 5 * MINUTE, *rest),
    moments,
    st.one_of(st.none(), st.integers(0, 12)),
    st.integers(0, 4000),
    st.integers(0, 1 << 34),
    st.sampled_from(["user", "build", "placeholder", ""]),
)
made_nodes = st.builds(
    lambda at, lasts, *rest: MadeNode(at, None if lasts is None else at + lasts * 5 * MINUTE + SECOND, *rest),
    moments,
    st.one_of(st.none(), st.integers(0, 20)),
    st.integers(0, 16000),
    st.sampled_from([{}, {POOL: "big"}, {POOL: "big", "spot": "true"}, {"spot": "true"}, {POOL: "small"}, {POOL: "?"}]),
)


def written(store: Store, pods: list[MadePod], nodes: list[MadeNode]) -> None:
    rows: list[Record] = []
    for number, pod in enumerate(pods):
        uid = f"p{number}"
        rows.append(
            pod_record(
                uid,
                pod_class=pod.pod_class,
                created_us=pod.bound_us - SECOND,
                deleted_us=pod.gone_us,
                cpu_millicores=pod.cpu,
                memory_bytes=pod.memory,
            )
        )
        rows.append(bind_record(uid, pod.bound_us, "n0"))
    rows += [
        NodeRecord(
            uid=f"uid-n{number}",
            name=f"n{number}",
            created_us=node.came_us,
            gone_us=node.gone_us,
            allocatable=json.dumps({"cpu": node.cpu, "memory": node.cpu << 20}),
            labels=json.dumps(node.labels),
        )
        for number, node in enumerate(nodes)
    ]
    run = sa.insert(schema.run).values(cluster="c", version="v", settings_hash="h", started_us=BEGIN - HOUR)
    with store.engine.begin() as connection:
        connection.execute(run)
    store.write(rows, dict.fromkeys((NODES, "pods", "events"), ("1", END + HOUR)))


@pytest.fixture(scope="module", params=[SQLITE, POSTGRESQL])
def fresh_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Store]]:
    stores: list[Store] = []
    numbers = itertools.count()

    def make() -> Store:
        if request.param == SQLITE:
            store = empty_store(tmp_path_factory.mktemp("capacity"))
        else:
            server: Postgres = request.getfixturevalue("server")
            store = Store.open(server.create(f"capacity_{next(numbers)}"))
            store.migrate()
        stores.append(store)
        return store

    yield make
    for store in stores:
        store.close()


# Around the moments above, within a step of them: steps are rounded outward.
edges = st.builds(lambda number, seconds: (number * 5 * 60 + seconds) * SECOND, st.integers(0, 8), st.integers(-40, 40))


@given(st.lists(made_pods, max_size=8), st.lists(made_nodes, min_size=1, max_size=5), edges, edges)
# A pod that goes in the first step but before the window, and one that comes in the last, after it.
@example([MadePod(BEGIN, BEGIN + 5 * SECOND, 9, 9, "user")], [MadeNode(BEGIN, None, 9, {})], 8 * SECOND, 0)
@example([MadePod(END - 5 * SECOND, None, 9, 9, "user")], [MadeNode(BEGIN, None, 9, {})], 0, 8 * SECOND)
@settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@pytest.mark.slow
def test_peaks_and_costs_are_those_that_brute_force_finds(
    fresh_store: Callable[[], Store], pods: list[MadePod], nodes: list[MadeNode], late_us: int, early_us: int
) -> None:
    store = fresh_store()
    written(store, pods, nodes)
    since_us, until_us = BEGIN + late_us, END - early_us
    report = gather(store, since_us, until_us, prices=PRICES)
    there = [
        node
        for node in nodes
        if node.came_us < until_us and (node.gone_us is None or node.gone_us > max(since_us, node.came_us))
    ]
    found, steps = report[Capacity], report.steps
    if not there:
        assert (found.peaks, found.room) == ([], [])
    for start_us, peak, room in zip(steps.starts(), found.peaks, found.room, strict=bool(there)):
        # Nothing happens between these.
        changes = {at for pod in pods for at in (pod.bound_us, pod.gone_us) if at is not None}
        changes |= {at for node in nodes for at in (node.came_us, node.gone_us) if at is not None}
        # What is outside the window counts for neither, also in the first and the last step.
        first_us, end_us = max(start_us, since_us), min(start_us + steps.step_us, until_us)
        inside = [first_us, *(at for at in changes if first_us < at < end_us)]

        def running(at: int) -> list[MadePod]:
            return [
                pod
                for pod in pods
                if pod.bound_us <= at and (pod.gone_us is None or at < pod.gone_us) and pod.pod_class != "placeholder"
            ]

        assert peak.users == max(sum(pod.pod_class == "user" for pod in running(at)) for at in inside)
        assert peak.cpu_millicores == max(sum(pod.cpu for pod in running(at)) for at in inside)
        assert peak.memory_bytes == max(sum(pod.memory for pod in running(at)) for at in inside)
        room_of = [sum(node.cpu for node in there if node.came_us <= at < (node.gone_us or until_us)) for at in inside]
        assert (room.cpu_millicores, room.memory_bytes) == (max(room_of), max(room_of) << 20)
    hours = [(min(until_us, node.gone_us or until_us) - max(since_us, node.came_us)) / HOUR for node in there]
    rates = [
        next((price.per_hour for price in PRICES if node.labels.get(price.label) == price.value), None)
        for node in there
    ]
    costs = report[Costs]
    expected = sum(of_node * rate for of_node, rate in zip(hours, rates, strict=True) if rate is not None)
    assert costs.total == pytest.approx(expected)
    # Parts make up the whole: over time, and of node-hours with and without a price.
    assert sum(costs.by_step) == pytest.approx(expected)
    assert len(costs.unpriced) == rates.count(None)
    whole = sum(row.hours for row in costs.by_price) + sum(node.hours for node in costs.unpriced)
    assert whole == pytest.approx(report[Usage].node_hours or 0)


@pytest.mark.parametrize(("began_to_go_us", "users"), [(None, 0), (HOUR, 0), (SECOND, 1)])
def test_a_pod_that_the_kubelet_evicted_counts_no_more(
    fresh_store: Callable[[], Store], began_to_go_us: int | None, users: int
) -> None:
    store = fresh_store()
    at_us = BEGIN + 30 * MINUTE
    written(store, [MadePod(BEGIN, END, 1000, 1, "user")], [MadeNode(BEGIN, None, 4000, {})])
    rows: list[Record] = [PreemptionRecord(victim_uid="p0", node_name="n0", at_us=at_us, kind="evicted")]
    if began_to_go_us is not None:
        # Through the API, a pod is deleted at once, and holds its requests until it is gone.
        rows.append(phase_record("p0", records.Phase.TERMINATING, at_us + began_to_go_us))
    store.write(rows, {})
    report = gather(store, BEGIN, END)
    peaks = dict(zip(report.steps.starts(), report[Capacity].peaks, strict=True))
    assert peaks[at_us - MINUTE].users == 1
    assert (peaks[at_us].users, peaks[at_us].cpu_millicores) == (users, users * 1000)


def test_a_step_in_a_gap_has_no_cost_but_the_total_has_it(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    written(store, [MadePod(BEGIN + MINUTE, None, 1, 1, "user")], [MadeNode(BEGIN, None, 4000, {POOL: "big"})])
    with store.engine.begin() as connection:
        gap = {"kind": NODES, "from_us": BEGIN, "to_us": BEGIN + HOUR, "why": "watch"}
        connection.execute(sa.insert(schema.gap).values(gap))
    report = gather(store, BEGIN, END, prices=PRICES)
    known = [row["cost"] for row in json.loads(to_json(report))["tables"]["costs_over_time"]]
    assert None in known
    assert sum(cost for cost in known if cost is not None) == pytest.approx(2.0, abs=0.001)
    assert report[Costs].total == pytest.approx(4.0)


def test_a_price_that_no_node_has_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = empty_store(tmp_path)
    written(store, [MadePod(BEGIN + MINUTE, None, 1, 1, "user")], [MadeNode(BEGIN, None, 4000, {POOL: "big"})])
    command = ["report", "--database", str(tmp_path / "roost.db"), "--price", "pool=big:1"]
    assert main(command) == 0
    found = capsys.readouterr()
    assert found.err == ""
    assert "fits no node" not in found.out
    assert main([*command, "--price", "pool=bgi:1"]) == 0
    found = capsys.readouterr()
    assert found.err.startswith("roost report: --price pool=bgi: fits no node of this period; expected")
    assert "--price pool=bgi: fits no node of this period" in found.out


def test_costs_of_one_hub_are_said_to_be_of_the_whole_cluster(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    written(store, [MadePod(BEGIN + MINUTE, None, 1, 1, "user")], [MadeNode(BEGIN, None, 4000, {POOL: "big"})])
    prices = [parse_price("pool=big:1")]
    everything = make_page(gather(store, BEGIN, END, prices=prices), "")
    assert "by the prices given" in everything
    assert "whole cluster" not in everything
    page = make_page(gather(store, BEGIN, END, prices=prices, scope=Scope(pod_class="user")), "")
    assert "of the whole cluster; by the prices given" in page
    assert "node-hours, capacity and costs are of the whole cluster" in page


def test_without_prices_nothing_is_said_of_costs(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    written(store, [], [MadeNode(BEGIN, None, 4000, {POOL: "big"})])
    report = gather(store, BEGIN, END)
    document = json.loads(to_json(report))["tables"]
    assert (document["costs"], document["costs_over_time"], document["nodes_without_price"]) == ([], [], [])
    assert "cost" not in {row["figure"] for row in document["key_figures"]}
    assert "Cost of nodes" not in make_page(report, "")


def test_nodes_without_a_price_are_named_and_left_out(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    nodes = [MadeNode(BEGIN, None, 4000, {POOL: "big"}), MadeNode(BEGIN, END - HOUR, 4000, {POOL: "?"})]
    written(store, [MadePod(BEGIN + MINUTE, None, 1, 1, "user")], nodes)
    report = gather(store, BEGIN, END, prices=PRICES)
    sheets = to_csv(report)
    assert sheets["costs"].splitlines()[:2] == [
        "nodes_with,nodes,node_hours,price_per_hour,cost",
        "pool=big,1,2.0,2.0,4.0",
    ]
    assert sheets["nodes_without_price"] == "node,node_hours\nn1,1.0\n"
    page = make_page(report, "")
    assert "Cost of nodes" in page
    assert "1 node has no price" in page


def test_nodes_of_unknown_size_are_counted(tmp_path: Path) -> None:
    store = empty_store(tmp_path)
    store.write(
        [NodeRecord(uid="u", name="n", created_us=BEGIN), pod_record("p"), bind_record("p", BEGIN + 1, "n")], {}
    )
    found = gather(store, BEGIN, END)[Capacity]
    assert found.unknown_nodes == 1
    assert {room.cpu_millicores for room in found.room} == {0}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pool=big",
        "pool=big:",
        "pool:1",
        "=big:1",
        "pool=:1",
        "pool=big:-1",
        "pool=big:nan",
        "pool=big:inf",
        "a=b:1€",
        "a = b:0.2",
        "a=b: 0.2",
        " a=b:0.2",
        "a=b:1_000",
        "a=b:\u0661",
    ],
)
def test_a_price_that_can_not_be_read_is_wrong_usage(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(PriceError):
        parse_price(text)
    assert main(["report", "--database", str(tmp_path / "roost.db"), "--price", text]) == 2
    assert "expected LABEL=VALUE:PRICE" in capsys.readouterr().err


def test_a_price_is_that_of_the_first_label_that_fits() -> None:
    price = parse_price("node.kubernetes.io/instance-type=e2-highmem-8:0.21")
    assert price == Price("node.kubernetes.io/instance-type", "e2-highmem-8", 0.21)
    assert price_of('{"node.kubernetes.io/instance-type": "e2-highmem-8", "pool": "x"}', [price]) is price
    assert price_of(None, [price]) is None
