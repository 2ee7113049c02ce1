"""How many changes per second the recorder stores without loss, and its memory; beside it, writing
JSON lines.

python -m benchmarks.recorder [--changes 28000] [--nodes 50]

Streams of a made-up hub (user pods of 10 kB, each created, bound, pulled, started, asked to go,
gone, with its Events) are read as fast as they are taken, through the recorder as it runs: watch,
reading, model, database. A process a run.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import orjson
import sqlalchemy as sa
import yaml

from benchmarks.figures import machine, say, table
from benchmarks.root import ROOT
from roost_core.objects.fields import JSONObject
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import default_profile
from roost_lab.recorder.recording.metrics import RecorderMetrics
from roost_lab.recorder.recording.recorder import PATHS, Recording
from roost_lab.recorder.recording.scheduler_model import Model
from roost_lab.recorder.recording.settings import parse_settings
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import EVENTS, NODES, PODS
from tests.harness.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roost_core.kube.client import Client

# Pods that are there at a time, on each node.
PODS_A_NODE: Final = 8
# Of one pod's life: changes of the pod, and Events.
POD_CHANGES: Final = 5
EVENT_CHANGES: Final = 2
LIFE: Final = POD_CHANGES + EVENT_CHANGES
MOMENT: Final = "2026-11-21T10:00:00Z"
IMAGE: Final = "quay.io/jupyter/scipy-notebook:2026-11-03"
PLAIN: Final = "JSON lines"
POSITION_SECONDS: Final = 0.2
# A line on stderr each time so many more have been told.
TELL_CHANGES: Final = 50_000


class Hub:
    """Stands in for cluster.client.Client: lists and watches of a hub that never was."""

    def __init__(self, lives: int, nodes: int) -> None:
        self.lives = lives
        self.nodes = nodes
        self.told = 0
        # Path -> version that was told last.
        self._versions: dict[str, int] = {}
        self.stop = threading.Event()
        self._pod_lines = [line.replace(b"@", b"\0") for line in _pod_lines()]
        self._event_lines = [line.replace(b"@", b"\0") for line in _event_lines()]

    def get(self, path: str, _query: Mapping[str, object] | None = None, **_: object) -> JSONObject:
        """A list: of nodes, or of nothing; its version is the one told last."""
        items = [_node(number) for number in range(self.nodes)] if path == PATHS[NODES] else []
        return {"metadata": {"resourceVersion": str(self._versions.get(path, 1))}, "items": items}

    def lines(
        self, path: str, _query: Mapping[str, object], _silence_seconds: float
    ) -> Iterator[bytes]:
        """A watch: all changes at once, then silence until `stop`."""
        if path == PATHS[PODS]:
            yield from self.pods()
        elif path == PATHS[EVENTS]:
            yield from self.events()
        self.stop.wait()

    def pods(self) -> Iterator[bytes]:
        """Each tick one pod comes and starts, and the oldest goes once the nodes are full."""
        room = self.nodes * PODS_A_NODE
        come = self._pod_lines[:3]
        go = self._pod_lines[3:]
        version = 2
        for number in range(self.lives + room):
            for lines, pod_number in ((come, number), (go, number - room)):
                if 0 <= pod_number < self.lives:
                    for line in lines:
                        version += 1
                        self.told += 1
                        self._versions[PATHS[PODS]] = version
                        yield self._fill(line, pod_number, version)

    def events(self) -> Iterator[bytes]:
        """Each pod's, in the same order."""
        version = 2
        for number in range(self.lives):
            for line in self._event_lines:
                version += 1
                self.told += 1
                self._versions[PATHS[EVENTS]] = version
                yield self._fill(line, number, version)

    def last_versions(self) -> dict[str, str]:
        """The positions at which all is stored."""
        return {
            PODS: str(2 + self.lives * POD_CHANGES),
            EVENTS: str(2 + self.lives * EVENT_CHANGES),
        }

    def _fill(self, line: bytes, number: int, version: int) -> bytes:
        line = line.replace(b"\0UID\0", b"%032x" % number).replace(b"\0VERSION\0", b"%d" % version)
        return line.replace(b"\0NUMBER\0", b"%d" % number).replace(
            b"\0NODE\0", b"node-%d" % (number % self.nodes)
        )


def _pod_lines() -> list[bytes]:
    """Watch events of one pod's life, with marks to be filled in."""
    pod: JSONObject = json.loads((ROOT / "lab" / "benchmarks" / "pods" / "user.json").read_text())
    metadata = pod["metadata"]
    metadata |= {
        "name": "jupyter-@NUMBER@",
        "namespace": "hub",
        "uid": "@UID@",
        "resourceVersion": "@VERSION@",
        "creationTimestamp": MOMENT,
    }
    metadata.setdefault("labels", {})["component"] = "singleuser-server"
    pod["spec"].pop("nodeName", None)
    pod["spec"]["schedulerName"] = "default-scheduler"
    pod["spec"].pop("nodeSelector", None)
    pod["spec"].pop("affinity", None)
    for container in pod["spec"]["containers"]:
        container["image"] = IMAGE
        container["resources"] = {"requests": {"cpu": "100m", "memory": "1Gi"}}
    names = [container["name"] for container in pod["spec"]["containers"]]

    def true(kind: str) -> JSONObject:
        return {"type": kind, "status": "True", "lastTransitionTime": MOMENT}

    # Not the last of its object, as the API server has it.
    bound = {
        **pod,
        "spec": {"nodeName": "@NODE@", **pod["spec"]},
        "status": {"conditions": [true("PodScheduled")]},
    }
    running = {
        **bound,
        "status": {
            "phase": "Running",
            "startTime": MOMENT,
            "conditions": [
                true(kind) for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "containerStatuses": [
                {
                    "name": name,
                    "image": IMAGE,
                    "imageID": f"q@sha256:{'0' * 64}".replace("@", "/x"),
                    "ready": True,
                }
                | {"state": {"running": {"startedAt": MOMENT}}}
                for name in names
            ],
        },
    }
    leaving = {
        **running,
        "metadata": {**metadata, "deletionTimestamp": MOMENT, "deletionGracePeriodSeconds": 1},
    }
    # As long as those of a pod that hub, scheduler and kubelet wrote, and last, where the API
    # server has them.
    fields = [
        {"manager": "kubelet", "fieldsV1": {f"f:field-{number}": {} for number in range(220)}}
    ]
    steps = [
        ("ADDED", {**pod, "status": {"phase": "Pending"}}),
        ("MODIFIED", bound),
        ("MODIFIED", running),
    ]
    steps += [("MODIFIED", leaving), ("DELETED", leaving)]
    return [
        orjson.dumps(
            {
                "type": kind,
                "object": {**item, "metadata": {**item["metadata"], "managedFields": fields}},
            }
        )
        for kind, item in steps
    ]


def _event_lines() -> list[bytes]:
    def event(reason: str, note: str, controller: str) -> bytes:
        item = {
            "metadata": {
                "name": "e-@NUMBER@",
                "namespace": "hub",
                "uid": "e@UID@",
                "resourceVersion": "@VERSION@",
            },
            "eventTime": "2026-11-21T10:00:01.123456Z",
            "reason": reason,
            "note": note,
            "type": "Normal",
            "regarding": {
                "kind": "Pod",
                "namespace": "hub",
                "name": "jupyter-@NUMBER@",
                "uid": "@UID@",
            },
            "reportingController": controller,
            "reportingInstance": "@NODE@",
        }
        return orjson.dumps({"type": "ADDED", "object": item})

    pulled = (
        f'Successfully pulled image "{IMAGE}" in 2.5s (3.1s including waiting). Image size:'
        " 1500000000 bytes."
    )
    return [
        event(
            "Scheduled", "Successfully assigned hub/jupyter-@NUMBER@ to @NODE@", "default-scheduler"
        ),
        event("Pulled", pulled, "kubelet"),
    ]


def _node(number: int) -> JSONObject:
    resources = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return {
        "metadata": {"name": f"node-{number}", "uid": f"node-uid-{number}", "resourceVersion": "1"},
        "status": {
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": MOMENT}],
            "images": [{"names": [IMAGE], "sizeBytes": 1_500_000_000}],
        },
    }


def record(hub: Hub, url: str) -> JSONObject:
    """One run of the recorder over the whole stream; figures as `run` prints them."""
    settings = parse_settings(
        {
            "version": 1,
            "release": "hub",
            "namespace": "hub",
            "podClasses": yaml.safe_load((ROOT / "chart" / "values.yaml").read_text())[
                "podClasses"
            ],
            "recorder": {"retentionDays": 0},
            "imageGate": {"mode": "off", "pullDeadlineSeconds": 600},
        }
    )
    store = Store.open(url)
    store.migrate()
    model = Model({"default-scheduler": default_profile(NEWEST_MINOR)})
    recording = Recording(
        cast("Client", hub), settings, store, RecorderMetrics("benchmark"), model=model
    )
    thread = threading.Thread(target=recording.run, args=(hub.stop,))
    peak = 0.0
    said = 0
    thread.start()
    last = hub.last_versions()
    while True:
        peak = max(peak, memory_mib())
        if hub.told >= said + TELL_CHANGES:
            said = hub.told
            say(f"{hub.told:,} changes told, {peak:.1f} MiB")
        positions = store.positions()
        if all(positions.get(kind, ("",))[0] == version for kind, version in last.items()):
            break
        time.sleep(POSITION_SECONDS)
    hub.stop.set()
    thread.join()
    rows = {}
    with store.reading() as connection:
        for name in ("pod", "phase", "decision", "candidates", "pull"):
            found = connection.execute(
                sa.select(sa.func.count()).select_from(schema.metadata.tables[name])
            )
            rows[name] = int(found.scalar_one())
        ended = sa.select(sa.func.count()).where(schema.pod.c.deleted_us.is_not(None))
        is_whole = (
            rows["pod"]
            == rows["decision"]
            == rows["pull"]
            == connection.execute(ended).scalar_one()
        )
    store.close()
    if not is_whole or rows["pod"] != hub.lives:
        raise SystemExit(f"something was lost: {hub.lives} pods, but {rows}")
    return {"rows": sum(rows.values()), "peak_mib": peak}


def write_lines(hub: Hub, path: Path) -> JSONObject:
    """Parse each change, and write it down as it came."""
    with path.open("wb") as file:
        for line in itertools.chain(hub.pods(), hub.events()):
            orjson.loads(line)
            file.write(line + b"\n")
    return {"rows": hub.told, "peak_mib": memory_mib()}


def memory_mib() -> float:
    """Of this process, now."""
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024


def run(kind: str, target: str, lives: int, nodes: int) -> None:
    """One run, in this process; prints its figures as JSON."""
    hub = Hub(lives, nodes)
    began_at = time.perf_counter()
    began_cpu = time.process_time()
    figures = record(hub, target) if kind == "record" else write_lines(hub, Path(target))
    figures |= {
        "seconds": time.perf_counter() - began_at,
        "cpu": time.process_time() - began_cpu,
        "told": hub.told,
    }
    json.dump(figures, sys.stdout)


def measure(kind: str, target: str, lives: int, nodes: int) -> JSONObject:
    """One run, in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.recorder",
        "--run",
        kind,
        target,
        str(lives),
        str(nodes),
    ]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return cast("JSONObject", json.loads(done.stdout))


def row(name: str, found: JSONObject) -> list[str]:
    """A line of the table."""
    changes = found["told"]
    seconds = found["seconds"]
    return [
        name,
        f"{changes:,}",
        f"{seconds:.1f}",
        f"{changes / seconds:,.0f}",
        f"{found['cpu'] / changes * 1e6:.0f}",
        f"{found['rows']:,}",
        f"{found['peak_mib']:.0f}",
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures as Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--changes", type=int, default=28_000)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument(
        "--run", nargs=4, metavar=("KIND", "TARGET", "LIVES", "NODES"), help=argparse.SUPPRESS
    )
    arguments = parser.parse_args(argv)
    if arguments.run:
        kind, target, lives, nodes = arguments.run
        run(kind, target, int(lives), int(nodes))
        return
    lives = arguments.changes // LIFE
    nodes = arguments.nodes
    print(f"{machine()}; {nodes} nodes\n")
    rows = []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        rows.append(row(PLAIN, measure(PLAIN, str(folder / "lines"), lives, nodes)))
        say("  ".join(rows[-1]))
        rows.append(
            row("recorder, SQLite", measure("record", str(folder / "roost.db"), lives, nodes))
        )
        say("  ".join(rows[-1]))
        server = stack.enter_context(Postgres(durable=True))
        rows.append(
            row("recorder, PostgreSQL", measure("record", server.create("roost"), lives, nodes))
        )
        say("  ".join(rows[-1]))
    head = ["", "changes", "seconds", "changes/s", "CPU µs a change", "rows", "peak MiB"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
