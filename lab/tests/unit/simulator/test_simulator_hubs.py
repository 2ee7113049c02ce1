"""Several hubs on the same nodes in one replay: a release each, which sees the others' pods only
where told to.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.tests.small_worlds import (
    BEGIN,
    WatchedWorld,
    attempt,
    comparable,
    in_order,
    play,
    policy,
    small,
    with_placeholders,
    without_pullers,
)
from lab.tests.trace_lines import recorded, write
from roost_core.placement.labels import startup_taint
from roost_lab.simulator.engine.pods import PLACEHOLDER
from roost_lab.simulator.reporting.context import ReportContext
from roost_lab.simulator.reporting.formats import to_json
from roost_lab.simulator.reporting.page import make_page
from roost_lab.simulator.reporting.terminal import to_text
from roost_lab.simulator.setup.assumptions import Assumptions, Autoscaler
from roost_lab.simulator.sweep.replay import replay
from roost_lab.simulator.sweep.summary import WorldSetting, summarise
from roost_lab.simulator.sweep.survey import MOST_HUBS, Survey, survey, trace_of
from roost_lab.traces.attempt import Attempt
from roost_lab.traces.counts import TraceError

HUBS = ("hub-a", "hub-b")
SHARED = {"sharedPools": {"namespaceSelector": {"matchLabels": {"hub.jupyter.org/pool": "users"}}}}


def of_hubs(attempts: list[Attempt]) -> list[Attempt]:
    """Each image's launches are of one hub, as where each hub has its own repositories."""
    place = {
        image: number for number, image in enumerate(dict.fromkeys(one.image for one in attempts))
    }
    return [one._replace(hub=HUBS[place[one.image] % len(HUBS)]) for one in attempts]


def in_hubs(hubs: tuple[str, ...] = HUBS) -> Any:
    return partial(WatchedWorld, hubs=hubs)


def busy(number: int = 300, images: int = 16) -> list[Attempt]:
    return [
        attempt(
            index, 90.0 * index, f"image-{index * index % images}", stays=2000.0 + 17 * index % 1500
        )
        for index in range(number)
    ]


def growing() -> Assumptions:
    """Nodes come and go as they are needed."""
    return small(6, 1, max_nodes=20, autoscaler=Autoscaler.CLUSTER_AUTOSCALER)


def test_each_hub_has_its_namespace_its_scheduler_and_its_placeholders() -> None:
    placed = with_placeholders("roost", 2)
    _, world = play(of_hubs(in_order((0, "a"), (1, "b"))), placed, small(8), make=in_hubs())
    pods = {pod.key: pod for pod in world.sim_pods.values()}
    assert sorted(key for key, pod in pods.items() if pod.kind == PLACEHOLDER) == [
        f"{hub}/hub-roost-placeholder-default-{number}" for hub in HUBS for number in range(2)
    ]
    users = {pod.state.namespace: pod.state for pod in pods.values() if pod.launch is not None}
    assert {hub: state.scheduler_name for hub, state in users.items()} == {
        hub: f"hub.{hub}.user" for hub in HUBS
    }
    # Each names a profile that somebody runs.
    assert {state.scheduler_name for state in users.values()} <= world.policy.profiles.keys()


def test_a_placeholder_of_one_hub_gives_way_to_a_user_of_another_and_comes_back_as_its_own() -> (
    None
):
    # Two nodes of two; both hubs' placeholders fill them.
    _, world = play(
        [attempt(0, 10, "a", hub="hub-a")], with_placeholders("roost", 2), small(2), make=in_hubs()
    )
    assert len(world.preempted) == 1
    waiting = [pod for pod in world.sim_pods.values() if pod.kind == PLACEHOLDER]
    assert sorted(pod.state.namespace for pod in waiting) == ["hub-a", "hub-a", "hub-b", "hub-b"]


def test_new_nodes_have_each_releases_startup_taint_and_lose_it() -> None:
    tainted = policy(
        "roost", json.dumps({"imageGate": {"mode": "startupTaint"}, "placeholders": []})
    )
    _, world = play(of_hubs(in_order((600, "a"), (601, "b"))), tainted, small(8), make=in_hubs())
    keys = {taint.key for taint in world.template("new").taints}
    assert keys >= {startup_taint("hub", hub) for hub in HUBS}
    assert all(not node.state.taints for node in world.nodes.values())


@pytest.mark.parametrize("name", ["warm-alone", "z2jh"])
def test_one_hub_is_the_policys_own_whatever_it_is_called(name: str) -> None:
    launches = busy(60)
    usual, _ = play(launches, policy(name), growing())
    named = replay(
        [launch._replace(hub="jhub") for launch in launches],
        policy(name),
        growing(),
        1,
        hubs=("jhub",),
    )
    assert comparable(named) == comparable(usual)
    assert named.hubs == {}


def test_hubs_that_count_each_others_pods_are_placed_like_one_hub() -> None:
    launches = busy()
    one_hub, _ = play(launches, without_pullers("warm-alone"), growing())
    shared = policy("warm-alone", json.dumps({"prePuller": {"enabled": False}, **SHARED}))
    together, _ = play(of_hubs(launches), shared, growing(), make=in_hubs())
    assert {**comparable(together), "hubs": {}} == comparable(one_hub)
    alone, _ = play(of_hubs(launches), without_pullers("warm-alone"), growing(), make=in_hubs())
    assert alone.cold > together.cold


@pytest.mark.parametrize(("values", "seen"), [({}, ["user-1"]), (SHARED, ["user-1", "user-2"])])
def test_a_webhook_counts_other_hubs_pods_only_where_told_and_once_they_have_a_node(
    values: dict[str, Any], seen: list[str]
) -> None:
    # Two nodes of one: the third user finds no room.
    launches = [
        attempt(number, number, "a", hub=hub)
        for number, hub in enumerate(("hub-a", "hub-b", "hub-b"))
    ]
    told = policy("warm-alone", json.dumps({"prePuller": {"enabled": False}, **values}))
    world = WatchedWorld(told, small(1), hubs=HUBS)
    found: list[str] = []

    def look(_: object) -> None:
        found.extend(
            key.partition("/")[2] for key in world.releases[0].facts.current().warm["user"].pods
        )
        assert len([pod for pod in world.sim_pods.values() if pod.launch is not None]) == 3

    world.at(BEGIN + 60, look)
    world.play(launches)
    assert sorted(found) == seen


def test_what_each_hub_had_adds_up_to_the_whole() -> None:
    result, _ = play(of_hubs(busy(120)), without_pullers("warm-alone"), growing(), make=in_hubs())
    assert list(result.hubs) == list(HUBS)
    hubs = result.hubs.values()
    assert sum(hub.started for hub in hubs) == result.started
    assert sum(hub.placed for hub in hubs) == result.placed
    assert 0 < sum(hub.cold for hub in hubs) == result.cold
    assert sum(hub.waits.count for hub in hubs) == result.waits["total"].count


def test_reports_have_a_row_for_each_hub_where_there_are_several() -> None:
    launches = of_hubs(busy(60))
    assumed = growing()
    worlds = [WorldSetting({}, assumed)]
    context = ReportContext({"warm-alone": "a policy"}, "launches", Survey(), "0.1")
    several = summarise([replay(launches, policy("warm-alone"), assumed, 1, hubs=HUBS)], worlds)
    one = summarise([replay(launches, policy("warm-alone"), assumed, 1)], worlds)
    rows = json.loads(to_json(several, context))["tables"]["hubs"]
    run = several.runs[0, "warm-alone"][0]
    assert [(row["hub"], row["starts"], row["cold"]) for row in rows] == [
        (name, hub.started, hub.cold) for name, hub in run.hubs.items()
    ]
    assert rows[0]["wait_p95_seconds"] == pytest.approx(run.hubs["hub-a"].waits.quantile(0.95))
    text = to_text(several, context, 120)
    assert all(
        any(line.split()[:2] == ["warm-alone", hub] for line in text.splitlines()) for hub in HUBS
    )
    assert "By hub" in make_page(several, context)
    assert "hubs" not in json.loads(to_json(one, context))["tables"]
    assert "hub-a" not in to_text(one, context, 120)
    assert "By hub" not in make_page(one, context)


def test_a_traces_hubs_are_surveyed_and_not_too_many(tmp_path: Path) -> None:
    some = write(
        tmp_path, *(recorded(number, hub=hub) for number, hub in enumerate(("b", "", "a", "b")))
    )
    assert survey(trace_of((str(some),))).hubs == ("", "a", "b")
    many = write(
        tmp_path,
        *(recorded(number, hub=f"hub-{number}") for number in range(MOST_HUBS + 1)),
        name="many",
    )
    with pytest.raises(
        TraceError,
        match=rf"found launches of {MOST_HUBS + 1} hubs, accepted are of at most {MOST_HUBS}\.",
    ):
        survey(trace_of((str(many),)))


def test_a_launch_without_a_hub_is_of_the_usual_one_which_may_be_named_too() -> None:
    own = policy("z2jh").namespace
    launches = [
        attempt(0, 0, "a", hub=""),
        attempt(1, 1, "a", hub=own),
        attempt(2, 2, "a", hub="other"),
    ]
    result, _ = play(launches, policy("z2jh"), small(8), make=in_hubs(("", own, "other")))
    assert {name: hub.started for name, hub in result.hubs.items()} == {own: 2, "other": 1}
