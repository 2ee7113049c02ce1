"""How long a plan of each controller takes, at 5,000 nodes and 100,000 pods.

`python -m benchmarks.controllers`: the first plan, which has no memory yet, and later ones, in
processor time. The snapshot is what the watches would have read of the scene (`scene.py`).
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import yaml

from benchmarks.figures import figure, machine, say, spread, table
from benchmarks.policy import RELEASE
from benchmarks.scene import (
    NAMESPACE,
    OWNER_UID,
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
from roost_core.placement.labels import attract_label
from roost_core.scheduler.plugins import NEWEST_MINOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roost.controllers.contract.planner import Planner

# When the newest node of the plans joined.
LATER: Final = "2026-11-21T08:00:00Z"
GOAL_PLAN_SECONDS: Final = 0.5


def make_planners(hub: Sequence[JSONObject]) -> tuple[Planner[Any], ...]:
    """Every controller, with the settings that the chart renders."""
    return parse_settings(*_documents(hub), NEWEST_MINOR).planners


def _documents(hub: Sequence[JSONObject]) -> tuple[JSONObject, JSONObject]:
    data = {
        key: text
        for manifest in hub
        if manifest["kind"] == "ConfigMap"
        for key, text in manifest["data"].items()
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
    newest["metadata"]["labels"][attract_label(RELEASE, NAMESPACE, "default")] = "true"
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
    return Snapshot(RELEASE, NAMESPACE, nodes, pods, stateful_sets)


def time_plans(size: Size, rounds: int) -> str:
    """The first plan of each controller, which has no memory yet, and later ones; processor
    time.
    """
    hub = manifests(size)
    snapshot = make_snapshot(hub, size)
    # As the program does once the cluster is listed.
    gc.collect()
    gc.freeze()
    say(f"  snapshot of {len(snapshot.nodes)} nodes and {len(snapshot.pods)} pods")
    wall = (read_moment(LATER) or 0.0) + 3600.0
    rows = []
    for planner in make_planners(hub):
        found = []
        for number in range(rounds + 1):
            began_at = time.thread_time()
            planned = planner.plan(snapshot, Moment(wall + 30.0 * number, 30.0 * number))
            found.append(time.thread_time() - began_at)
        later = found[1:]
        goal = "reached" if max(found[0], median(later)) < GOAL_PLAN_SECONDS else "MISSED"
        rows.append(
            [planner.name, figure(found[0]), spread(later), str(len(planned.actions)), goal]
        )
        say(f"  {planner.name}: {found[0]:.3f} s, then {median(later):.3f} s")
    head = [
        "controller",
        "first plan, s",
        "later plans, s",
        "actions of the last",
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
