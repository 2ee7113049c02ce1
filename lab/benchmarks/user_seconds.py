"""People's own seconds through a real JupyterHub and KubeSpawner: from the click to the server's
first answer.

`python -m benchmarks.user_seconds pairs`: 30 at once, by a hub alone and by one with Roost in
turns, every image on its node. `python -m benchmarks.user_seconds storm`: 320 people in two
minutes, for whom nodes must come: a hub alone, with Roost, with the lecture booked; and what the
simulator says of that storm. `python -m benchmarks.user_seconds polling`: starts by
zero-to-jupyterhub's pinned hub, and by one with docs/upstream/faster_polling.py, in turns; people
come a second apart, and servers answer `--answer-seconds` after their container runs.

Servers are processes on loopback, nodes are made up, and a stand-in for an autoscaler adds them.
All share one machine: what Roost's programs cost in processor time is in the figures.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any, Final

from benchmarks.figures import say, table
from benchmarks.root import ROOT
from benchmarks.servers import cpu_seconds
from roost_core.objects.fields import JSONObject
from tests.harness.controlplane import ControlPlane
from tests.harness.hub.hub import RealHub, ensure_pinned_hub
from tests.harness.hub.people import Visit, start
from tests.harness.hub.stage import USER_NODE, hub_stage
from tests.harness.hub.user_pods import PORT
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


IMAGE = "quay.io/hub/light:1"
OTHER = "quay.io/hub/other:1"
SPAWNER: Final[dict[str, Any]] = {
    "image": IMAGE,
    "mem_guarantee": "1G",
    "port": PORT,
    "start_timeout": 300,
}
PROFILES: Final = [
    {"display_name": "Light", "slug": "light", "default": True},
    {"display_name": "Other", "slug": "other", "kubespawner_override": {"image": OTHER}},
]
VALUES: Final[dict[str, Any]] = {
    "singleuser": {
        "image": {"name": IMAGE.partition(":")[0], "tag": "1"},
        "memory": {"guarantee": "1G"},
    },
    "placeholders": [
        {"name": "default", "replicas": 2, "resources": {"requests": {"memory": "1G"}}}
    ],
    "prePuller": {"enabled": False},
    "imageGate": {"mode": "off"},
}
# Of a node.
CPU, MEMORY = "32", "41Gi"
# Users that fit such a node.
PER_NODE: Final = 40
# The same world in the simulator's words.
REHEARSED: Final = {
    "concurrent_spawn_limit": 64,
    "user_memory_bytes": "1G",
    "node_memory_bytes": MEMORY,
    "min_nodes": 2,
    "boot_sigma": 0.01,
    "image_median_bytes": "1M",
    "image_sigma": 0.01,
    "autoscaler_loop_seconds": 1,
    "pull_overhead_seconds": 0,
    "answer_seconds": 0.7,
}
FASTER_POLLING: Final = ROOT / "docs/upstream/faster_polling.py"


class NewNodes:
    """Add a node for as many unschedulable pods as fit one, `boot_seconds` after they were seen."""

    def __init__(self, cluster: ControlPlane, nodes: FakeNodes, boot_seconds: float) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._boot_seconds = boot_seconds
        self._over = threading.Event()
        self._due: list[float] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No more nodes come."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(1):
            now = time.time()
            for _ in [at for at in self._due if at <= now]:
                name = f"new-{len(self._nodes.names)}"
                self._nodes.create(name, cpu=CPU, memory=MEMORY, labels=USER_NODE)
            self._due = [at for at in self._due if at > now]
            pods = self._cluster.api.list("/api/v1/pods", fieldSelector="spec.nodeName=")
            refused = sum(
                condition.get("reason") == "Unschedulable"
                for pod in pods
                for condition in pod.get("status", {}).get("conditions", ())
            )
            self._due += [now + self._boot_seconds] * (
                math.ceil(refused / PER_NODE) - len(self._due)
            )


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that so many are no greater than."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else math.nan


@contextmanager
def world(values: Mapping[str, Any]) -> Iterator[tuple[ControlPlane, FakeNodes, Stack]]:
    """A control plane with two nodes, kube-scheduler and Roost in a namespace of its own."""
    with hub_stage(["user-a", "user-b"], {}, cpu=CPU, memory=MEMORY) as (cluster, nodes, _):
        namespace = cluster.create_namespace("with-roost")
        with Stack(cluster, namespace, values, controllers=True) as roost:
            yield cluster, nodes, roost


def pairs(people: int, rounds: int) -> None:
    """Both hubs in turns, the order changing from round to round."""
    traits = {**SPAWNER, "profile_list": PROFILES}
    with world(VALUES) as (cluster, _, roost), ExitStack() as stack:
        alone = stack.enter_context(RealHub(cluster, cluster.create_namespace("alone"), **traits))
        steered = stack.enter_context(RealHub(cluster, roost.namespace, **traits))
        hubs = {"alone": alone, "with Roost": steered}
        took: dict[str, list[float]] = {name: [] for name in hubs}
        for number in range(-1, rounds):
            for name in list(hubs) if number % 2 else list(hubs)[::-1]:
                hub = hubs[name]
                visits = start(
                    hub.url,
                    [f"u{number + 1}x{person}" for person in range(people)],
                    ["light", "other"],
                )
                if failed := [visit for visit in visits if not visit.answered_at]:
                    raise ValueError(f"{name}: {failed[0]}")
                say(
                    f"round {number + 1}, {name}: {median(visit.seconds for visit in visits):.2f} s"
                    " at the median"
                )
                if number >= 0:  # the first round is for what is only slow once
                    took[name].append(median(visit.seconds for visit in visits))
                hub.stop_servers()
    ratios = [ours / theirs for theirs, ours in zip(*took.values(), strict=True)]
    say(
        f"{people} at once, {rounds} rounds in turns; the median person's seconds from click to"
        " HTTP 200:"
    )
    rows = [
        [name, *(f"{seconds:.2f}" for seconds in row), f"{median(row):.2f}"]
        for name, row in took.items()
    ]
    say(
        table(
            ["", *(f"round {round_number + 1}" for round_number in range(rounds)), "median"], rows
        )
    )
    say(f"With Roost, {median(ratios):.2f} of the time ({min(ratios):.2f} to {max(ratios):.2f}).")


def polling(people: int, rounds: int, answer_seconds: float) -> None:
    """Both hubs in turns: what each person waits, and what the hub's process takes of a core."""
    traits = {
        **SPAWNER,
        "profile_list": PROFILES,
        "environment": {"ANSWERS_AFTER": str(answer_seconds)},
    }
    with world(VALUES) as (cluster, _, _), ExitStack() as stack:
        packages = ensure_pinned_hub()
        hubs = {
            name: stack.enter_context(
                RealHub(
                    cluster,
                    cluster.create_namespace(name.replace(" ", "-")),
                    packages=packages,
                    extra_config=files,
                    **traits,
                )
            )
            for name, files in (("as it is", ()), ("faster polling", (FASTER_POLLING,)))
        }
        waits: dict[str, list[float]] = {name: [] for name in hubs}
        rounds_of: dict[str, list[float]] = {name: [] for name in hubs}
        cores: dict[str, list[float]] = {name: [] for name in hubs}
        for number in range(-1, rounds):
            for name in list(hubs) if number % 2 else list(hubs)[::-1]:
                hub = hubs[name]
                users = [f"u{number + 1}x{person}" for person in range(people)]
                before = cpu_seconds(hub.hub)
                visits = start(hub.url, users, ["light"], gap=1.0)
                took = cpu_seconds(hub.hub) - before
                if failed := [visit for visit in visits if not visit.answered_at]:
                    raise ValueError(f"{name}: {failed[0]}")
                if number >= 0:  # the first round is for what is only slow once
                    seconds = [visit.seconds for visit in visits]
                    waits[name] += seconds
                    rounds_of[name].append(mean(seconds))
                    cores[name].append(1000 * took / people)
                    say(f"round {number + 1}, {name}: {mean(seconds):.2f} s in the mean")
                hub.stop_servers()
    print(
        f"{people} people a second apart, {rounds} rounds in turns, an answer {answer_seconds:g} s"
        " after the container runs; seconds from click to HTTP 200:"
    )
    rows = [
        [
            name,
            f"{mean(found):.2f}",
            *(f"{percentile(found, share):.2f}" for share in (0.5, 0.95)),
            f"{median(cores[name]):.0f}",
        ]
        for name, found in waits.items()
    ]
    print(table(["", "mean", "median", "p95", "hub's CPU, ms a start"], rows))
    saved = [before - after for before, after in zip(*rounds_of.values(), strict=True)]
    print(f"Saved: {median(saved):.2f} s ({min(saved):.2f} to {max(saved):.2f}), means of rounds.")


def storm(people: int, seconds: float, boot_seconds: float) -> None:
    """Each arm has a control plane of its own, with as many nodes at the beginning."""
    rows = []
    for arm in ("the hub alone", "with Roost", "booked"):
        values = (
            {**VALUES, "events": {"enabled": True, "maxPeople": 1000}}
            if arm == "booked"
            else VALUES
        )
        with world(values) as (cluster, nodes, roost), ExitStack() as stack:
            growth = NewNodes(cluster, nodes, boot_seconds)
            stack.callback(growth.stop)
            namespace = (
                cluster.create_namespace("alone") if arm == "the hub alone" else roost.namespace
            )
            hub = stack.enter_context(
                RealHub(cluster, namespace, **SPAWNER, profile_list=PROFILES[:1])
            )
            if arm == "booked":
                book(cluster, namespace, people)
            visits = start(
                hub.url, [f"u{number}" for number in range(people)], ["light"], gap=seconds / people
            )
            rows.append([arm, *cells_of(visits), str(len(nodes.names))])
            ends = Counter((visit.failure or visit.fault or "answered")[:60] for visit in visits)
            say(f"{arm}: " + ", ".join(f"{count} {end}" for end, count in ends.most_common(4)))
            hub.stop_servers()
    rows.append(["rehearsed, alone", *rehearsed(people, seconds, boot_seconds)])
    say(f"{people} people in {seconds:g} s; nodes of {PER_NODE} users boot in {boot_seconds:g} s:")
    say(table(["", "p50", "p95", "p99", "refused", "without an answer", "nodes"], rows))


def rehearsed(people: int, seconds: float, boot_seconds: float) -> list[str]:
    """What `roost simulate` says of the hub alone: the median of ten seeds."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "storm.jsonl")
        trace.write_text(
            "".join(
                f"{json.dumps(launch(seconds * number / people))}\n" for number in range(people)
            )
        )
        assumed = {**REHEARSED, "boot_median_seconds": boot_seconds}
        options = [text for name, value in assumed.items() for text in ("--set", f"{name}={value}")]
        command = [
            "roost",
            "simulate",
            "--trace",
            str(trace),
            "--policy",
            "z2jh",
            "--format",
            "json",
            *options,
        ]
        report = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
        )
    (figures,) = report["worlds"][0]["policies"].values()
    waits = [f"{figures[name]['median']:.1f}" for name in ("wait_p50", "wait_p95", "wait_p99")]
    return [
        *waits,
        "",
        f"{figures['given_up']['median']:.0f}",
        f"{figures['peak_nodes']['median']:.0f}",
    ]


def launch(after_seconds: float) -> dict[str, Any]:
    """A line of a launch trace, so many seconds after nine."""
    at = datetime(2026, 11, 24, 9, tzinfo=UTC) + timedelta(seconds=after_seconds)
    unknown = dict.fromkeys(("repository", "seconds", "ready_seconds"))
    named = {
        "schema": "roost.hub.jupyter.org/launch",
        "version": 3,
        "class": "user",
        "image": IMAGE,
        "hub": "hub",
    }
    return {**named, **unknown, "timestamp": at.isoformat(timespec="microseconds"), "size": 1000}


def cells_of(visits: Sequence[Visit]) -> list[str]:
    """Seconds from click to answer, who was told to come again, and who got none."""
    took = [visit.seconds for visit in visits if visit.answered_at]
    refused = sum(any(" 429 " in answer for answer in visit.broken) for visit in visits)
    without = sum(not visit.answered_at for visit in visits)
    return [
        *(f"{percentile(took, share):.1f}" for share in (0.5, 0.95, 0.99)),
        str(refused),
        str(without),
    ]


def book(cluster: ControlPlane, namespace: str, people: int) -> None:
    """Book a lecture that begins in four minutes; returns when its placeholders run."""
    begin = datetime.now(UTC) + timedelta(minutes=4)
    event = (
        f'- {{name: lecture, people: {people}, start: "{begin:%Y-%m-%dT%H:%M}", timeZone: UTC}}\n'
    )
    meta: JSONObject = {"name": "lecture", "labels": {"roost.hub.jupyter.org/events": "hub"}}
    cluster.api.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"events.yaml": event}},
        namespace,
    )

    def are_there() -> bool:
        path = f"/api/v1/namespaces/{namespace}/pods"
        pods = cluster.api.list(
            path, labelSelector="component=user-placeholder", fieldSelector="status.phase=Running"
        )
        return len(pods) >= people

    wait_until(are_there, 235, "the placeholders", interval_seconds=2)


def main() -> None:
    """Play what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", default="pairs", choices=("pairs", "storm", "polling"))
    parser.add_argument("--people", type=int, help="default: 30, of a storm 320")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="from a storm's first click to its last"
    )
    parser.add_argument("--boot-seconds", type=float, default=60.0)
    parser.add_argument(
        "--answer-seconds", type=float, default=2.2, help="of polling: as JupyterLab takes"
    )
    given = parser.parse_args()
    if given.what == "polling":
        polling(given.people or 20, given.rounds, given.answer_seconds)
    elif given.what == "pairs":
        pairs(given.people or 30, given.rounds)
    else:
        storm(given.people or 320, given.seconds, given.boot_seconds)


if __name__ == "__main__":
    main()
