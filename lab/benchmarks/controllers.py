"""How long a plan of each controller takes, at 5,000 nodes and 100,000 pods.

`python -m benchmarks.controllers`: the first plan, which has no memory yet, later ones, and the one
after 500 people came at once, in processor time. The snapshot is what the watches would have read
of the scene (`scene.py`). The placeholder set has learned for eight weeks.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from array import array
from dataclasses import replace
from math import cos, pi
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import yaml

from benchmarks.figures import figure, machine, say, spread, table
from benchmarks.policy import RELEASE
from benchmarks.scene import (
    NAMESPACE,
    OWNER_UID,
    SET_NAME,
    Size,
    all_nodes,
    all_pods,
    make_shapes,
    manifests,
    one_node,
)
from roost.controllers.contract.snapshot import Moment, Snapshot, StatefulSetState
from roost.controllers.controllers_settings import parse_settings
from roost.controllers.runtime.watching.pods import PodReader
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import read_node
from roost_core.objects.timestamps import read_moment
from roost_core.placement.headroom_history import DAY_MINUTES, KEPT_MINUTES, MINUTE_SECONDS, History
from roost_core.placement.labels import attract_label
from roost_core.scheduler.plugins import NEWEST_MINOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost.controllers.contract.planner import Planner

# When the newest node of the plans joined.
LATER: Final = "2026-11-21T08:00:00Z"
# Unix time of the first plan.
NOW: Final = (read_moment(LATER) or 0.0) + 3600.0
LEARN: Final[JSONObject] = {"min": 0, "max": 200, "timeZone": "UTC"}
CROWD: Final = 500
GOAL_PLAN_SECONDS: Final = 0.5


def make_planners(hub: Sequence[JSONObject]) -> tuple[Planner[Any], ...]:
    """Every controller, with the settings that the chart renders."""
    return parse_settings(*_documents(hub), NEWEST_MINOR).planners


def _documents(hub: Sequence[JSONObject]) -> tuple[JSONObject, JSONObject]:
    data = {
        key: text
        for manifest in hub
        if manifest["kind"] == "ConfigMap"
        for key, text in manifest.get("data", {}).items()
    }
    settings: JSONObject = json.loads(data["release.json"])
    scheduler: JSONObject = yaml.load(data["config.yaml"], Loader=yaml.CSafeLoader)
    return settings, scheduler


def make_snapshot(hub: Sequence[JSONObject], size: Size) -> Snapshot:
    """The scene as the watches would have read it."""
    shapes = make_shapes(hub)
    settings, scheduler = _documents(hub)
    read = PodReader(parse_settings(settings, scheduler, NEWEST_MINOR).shared).read
    pods = {}
    for body in all_pods(shapes, size):
        pod = read(body)
        if pod is not None:
            pods[pod.key] = pod
    nodes = {body["metadata"]["name"]: read_node(body) for body in all_nodes(shapes, size)}
    # The newest node, marked and empty: the mover has to judge whether placeholders would now go
    # there.
    newest = one_node(shapes["node"], size.nodes)
    newest["metadata"]["labels"][attract_label(RELEASE, NAMESPACE, SET_NAME)] = "true"
    newest["metadata"]["creationTimestamp"] = LATER
    for condition in newest["status"]["conditions"]:
        condition["lastTransitionTime"] = LATER
    nodes[newest["metadata"]["name"]] = read_node(newest)
    sets = [manifest["metadata"] for manifest in hub if manifest["kind"] == "StatefulSet"]
    stateful_sets = {
        placeholder_set["name"]: StatefulSetState(
            placeholder_set["name"], OWNER_UID, size.placeholders
        )
        for placeholder_set in sets
    }
    return Snapshot(
        RELEASE, NAMESPACE, nodes, pods, stateful_sets, histories={SET_NAME: history()}, quotas={}
    )


def history() -> str:
    """Eight weeks, until the plans, with more people by day than by night."""
    end = int(NOW // MINUTE_SECONDS)
    levels = array("i")
    for minute in range(end - KEPT_MINUTES, end):
        share_of_day = minute % DAY_MINUTES / DAY_MINUTES
        levels.append(round(200 - 150 * cos(2 * pi * share_of_day)) + minute * 7 % 19)
    return History(end - KEPT_MINUTES, levels).as_text(SET_NAME)


def with_crowd(snapshot: Snapshot) -> Snapshot:
    """The snapshot once so many people came who have no node yet."""
    user = next(pod for pod in snapshot.pods.values() if pod.name.startswith("jupyter-user-"))
    crowd = [
        replace(user, name=f"jupyter-crowd-{number}", node_name="", phase="Pending", created=NOW)
        for number in range(CROWD)
    ]
    return replace(snapshot, pods={**snapshot.pods, **{pod.key: pod for pod in crowd}})


def time_plan(planner: Planner[Any], snapshot: Snapshot, turn: int) -> float:
    """Processor time of one plan, in seconds. turn: plans follow each other after 30 s."""
    began_at = time.thread_time()
    planner.plan(snapshot, Moment(NOW + 30.0 * turn, 30.0 * turn))
    return time.thread_time() - began_at


def time_plans(size: Size, rounds: int) -> str:
    """Processor time of each controller's plans."""
    hub = manifests(size, learn=LEARN)
    snapshot = make_snapshot(hub, size)
    # As the program does once the cluster is listed.
    gc.collect()
    gc.freeze()
    say(f"  snapshot of {len(snapshot.nodes)} nodes and {len(snapshot.pods)} pods")
    rows = []
    crowded = with_crowd(snapshot)
    for planner in make_planners(hub):
        first, *later = (time_plan(planner, snapshot, turn) for turn in range(rounds + 1))
        crowd = time_plan(planner, crowded, rounds + 1)
        goal = "reached" if max(first, median(later), crowd) < GOAL_PLAN_SECONDS else "MISSED"
        rows.append([planner.name, figure(first), spread(later), figure(crowd), goal])
        say(f"  {planner.name}: {first:.3f} s, then {median(later):.3f} s, {crowd:.3f} s")
    head = [
        "controller",
        "first plan, s",
        "later plans, s",
        f"after {CROWD} people came, s",
        f"goal < {GOAL_PLAN_SECONDS:g} s",
    ]
    return table(head, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.controllers", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5, help="of later plans")
    given = parser.parse_args(argv)
    size = Size(nodes=given.nodes, pods=given.pods)
    print(f"controllers: {machine()}; {size.nodes} nodes, {size.pods} pods, {given.rounds} rounds")
    print(time_plans(size, given.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
