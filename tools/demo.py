"""Show Roost at work, with Python alone: render, admit, place, record, and two pages to open.

The programs are the real ones: `roost render`, `roost webhook` behind HTTPS, `roost record`, `roost
report`, `roost simulate`. Made up is the cluster: an API server's stand-in in this process, whose
pods the scheduler's model places.
"""

from __future__ import annotations

import base64
import collections
import contextlib
import copy
import json
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import jsonpatch
import yaml

from benchmarks.recorded_story import Story, write_story
from generator.faults import ValuesError
from roost_core.kube.pki import make_authority, sign_leaf
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import read_node
from roost_core.objects.pod_reader import read_pod
from roost_core.placement.labels import attract_label, base_name, object_name, pulled_label
from roost_core.scheduler.cycle import schedule
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import read_profiles
from roost_core.scheduler.state import ClusterState
from roost_lab.recorder.store.database import Store
from roost_lab.simulator.setup.checks import AssumptionsError
from tools.demo_hub import Hub, play_hub, read_hub
from tools.demo_screen import colour, heading, say, show_diff, show_scores
from tools.root import ROOT
from tools.stand_in_api import LOOPBACK, StandInApi
from webhook.rendezvous import best_nodes, encode_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from roost_core.scheduler.cycle import SchedulingDecision

DATA: Final = ROOT / "tools" / "demo_data"
PAGES: Final = ROOT / "build" / "demo"
ROOST: Final = (sys.executable, "-m", "roost")
RELEASE = "roost"
NAMESPACE = "jhub"
NODES: Final = ("node-1", "node-2", "node-3")
USER_NODE = "node-2"
PLACEHOLDER_NODE = "node-3"
PODS = "/api/v1/pods"
EVENTS = "/apis/events.k8s.io/v1/events"
LEASES: Final = "/apis/coordination.k8s.io/v1/leases"
CLASSES: Final = ("user", "build", "placeholder")
WAIT_SECONDS: Final = 60.0


class DemoError(Exception):
    """The demo can't go on; the message says why."""


def main(hub_file: str = "") -> int:
    """Run the demo. 0: all pods landed as promised. hub_file: a hub's values, to end with what it
    would gain; "": none.
    """
    started = time.monotonic()
    hub = None
    if hub_file:
        try:
            hub = read_hub(Path(hub_file))
        except (OSError, ValuesError, AssumptionsError) as error:
            print(f"demo: HUB={hub_file}: {error}", file=sys.stderr)
            return 1
    PAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        page = PAGES / "replay.html"
        replay = stack.enter_context(
            _background(Path(folder), "replay", f"{folder}/replays", str(page))
        )
        try:
            good = _show(Path(folder), stack)
            show_pages(Path(folder), replay)
            if hub is not None:
                show_hub(hub, Path(folder))
        except DemoError as error:
            print(f"demo: {error}", file=sys.stderr)
            return 1
    heading(
        f"{'Done' if good else 'Something is wrong'}, {time.monotonic() - started:.0f} s. Next:"
    )
    if hub is None:
        say("make demo HUB=hub.yaml                         what your hub would gain on this day")
    say(
        ".venv/bin/python -m roost import hub.yaml      values for your hub, from"
        " zero-to-jupyterhub's or BinderHub's"
    )
    say(".venv/bin/python -m roost simulate --help      its launches under these and other values")
    return 0 if good else 1


def _show(folder: Path, stack: contextlib.ExitStack) -> bool:
    objects = render()
    api = stack.enter_context(StandInApi(folder))
    cluster = Cluster(api, objects)
    webhook = stack.enter_context(Webhook(folder, api, objects))
    database = PAGES / "demo.db"
    database.unlink(missing_ok=True)
    recorder = stack.enter_context(record(folder, api, objects, database))
    heading(
        "2. Three nodes, Roost's webhook over HTTPS, and its recorder; all watch an API server's"
        " stand-in"
    )
    say(
        f"{USER_NODE} holds the users' image, the others are pulling it. A builder runs on each"
        " node."
    )
    webhook.wait_for_builders()
    landed = [show_pod(number, kind, webhook, cluster) for number, kind in enumerate(CLASSES, 3)]
    show_record(folder, database, recorder)
    return all(landed)


# 1. Render


def render() -> list[JSONObject]:
    """Render the demo's values with `roost render`, and count what came out."""
    heading("1. One values file becomes these objects: roost render")
    command = [
        *ROOST,
        "render",
        "-f",
        str(DATA / "values.yaml"),
        "--release",
        RELEASE,
        "--namespace",
        NAMESPACE,
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    objects = [item for item in yaml.load_all(text, Loader=yaml.CSafeLoader) if item]
    kinds = collections.Counter(item["kind"] for item in objects)
    words = [f"{count} {kind}" if count > 1 else kind for kind, count in sorted(kinds.items())]
    say(
        f"{len(objects)} objects from {len((DATA / 'values.yaml').read_text().splitlines())} lines"
        " of values:"
    )
    for start in range(0, len(words), 6):
        say(f"  {', '.join(words[start : start + 6])}")
    return objects


def _data(objects: list[JSONObject], file: str) -> str:
    """A file out of the rendered ConfigMaps."""
    return str(
        next(
            item["data"][file]
            for item in objects
            if item["kind"] == "ConfigMap" and file in item["data"]
        )
    )


# 2. The cluster that is made up


class Cluster:
    """Nodes and pods, in the stand-in and in the scheduler model."""

    def __init__(self, api: StandInApi, objects: list[JSONObject]) -> None:
        self._api = api
        self._profiles = read_profiles(yaml.safe_load(_data(objects, "config.yaml")), NEWEST_MINOR)
        self._state = ClusterState()
        self._number = 0
        set_of_placeholders = next(item for item in objects if item["kind"] == "StatefulSet")
        self.placeholder: JSONObject = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{set_of_placeholders['metadata']['name']}-0"},
            **copy.deepcopy(set_of_placeholders["spec"]["template"]),
        }
        self.placeholder["metadata"]["name"] = f"{set_of_placeholders['metadata']['name']}-0"
        classes = [item for item in objects if item["kind"] == "PriorityClass"]
        self._priorities = {item["metadata"]["name"]: item["value"] for item in classes}
        for part in ("scheduler", "controllers"):
            # Hold the Leases: otherwise the webhook doesn't rely on scheduler and controllers.
            lease = {
                "holderIdentity": part,
                "leaseDurationSeconds": 3600,
                "renewTime": _now(micro=True),
            }
            metadata = {
                "name": object_name(base_name(RELEASE), part),
                "namespace": NAMESPACE,
                "uid": part,
            }
            api.put(LEASES, {"metadata": metadata, "spec": lease})
        api.put("/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "uid": NAMESPACE}})
        image = yaml.safe_load((DATA / "values.yaml").read_text())["singleuser"]["image"]
        label = pulled_label(RELEASE, NAMESPACE, f"{image['name']}:{image['tag']}")
        for name in NODES:
            self._add_node(
                name,
                {label: "true" if name == USER_NODE else "pulling"},
                f"{image['name']}:{image['tag']}",
            )
            self._add_builder(name)

    def _add_node(self, name: str, labels: Mapping[str, str], image: str) -> None:
        # What the controllers write: the newest node draws the placeholders.
        mark = (
            {attract_label(RELEASE, NAMESPACE, "default"): "true"}
            if name == PLACEHOLDER_NODE
            else {}
        )
        purpose = {
            "kubernetes.io/os": "linux",
            "kubernetes.io/hostname": name,
            "hub.jupyter.org/node-purpose": "user",
        }
        node = {
            "metadata": {
                "name": name,
                "uid": name,
                "creationTimestamp": _now(),
                "labels": {**purpose, **labels, **mark},
            },
            "spec": {},
            "status": {
                "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                "images": [{"names": [image], "sizeBytes": 1_500_000_000}]
                if name == USER_NODE
                else [],
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": _now()}],
            },
        }
        self._api.put("/api/v1/nodes", node)
        self._state.set_node(read_node(node))

    def _add_builder(self, node: str) -> None:
        pod = yaml.safe_load((DATA / "builder.yaml").read_text())
        pod["metadata"]["name"] = f"{pod['metadata'].pop('generateName')}{node}"
        self.create(pod)
        self._start(pod, node)

    def create(self, pod: JSONObject) -> None:
        """Store a pod that was admitted."""
        self._number += 1
        identity = {
            "namespace": NAMESPACE,
            "uid": f"uid-{self._number}",
            "creationTimestamp": _now(),
        }
        pod["metadata"].update(identity)
        pod["spec"]["priority"] = self._priorities.get(pod["spec"].get("priorityClassName", ""), 0)
        pod.setdefault("status", {"phase": "Pending"})
        self._api.put(PODS, pod)

    def place(self, pod: JSONObject) -> SchedulingDecision:
        """Bind the pod where kube-scheduler would, by the model and the rendered profile that the
        pod names.
        """
        profile = self._profiles[pod["spec"]["schedulerName"]]
        decision = schedule(read_pod(pod), self._state, profile)
        if decision.node is None:
            raise DemoError(f"{pod['metadata']['name']} fits nowhere: {decision.message}")
        self._start(pod, decision.node)
        name = pod["metadata"]["name"]
        image = pod["spec"]["containers"][0]["image"]
        scheduler = pod["spec"]["schedulerName"]
        note = f"Successfully assigned {NAMESPACE}/{name} to {decision.node}"
        self._tell(pod, scheduler, "", "Scheduled", note)
        self._tell(
            pod,
            "kubelet",
            decision.node,
            "Pulled",
            f'Container image "{image}" already present on machine',
        )
        return decision

    def _start(self, pod: JSONObject, node: str) -> None:
        pod["spec"]["nodeName"] = node
        container = pod["spec"]["containers"][0]["name"]
        conditions = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        pod["status"] = {
            "phase": "Running",
            "startTime": _now(),
            "conditions": [
                {"type": name, "status": "True", "lastTransitionTime": _now()}
                for name in conditions
            ],
            "containerStatuses": [
                {"name": container, "ready": True, "state": {"running": {"startedAt": _now()}}}
            ],
        }
        self._api.put(PODS, pod)
        self._state.add_pod(read_pod(pod))

    def _tell(self, pod: JSONObject, controller: str, host: str, reason: str, note: str) -> None:
        self._number += 1
        name = f"{pod['metadata']['name']}.{self._number}"
        about = {"kind": "Pod"} | {
            key: pod["metadata"][key] for key in ("namespace", "name", "uid")
        }
        event = {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": name,
                "creationTimestamp": _now(),
            },
            "eventTime": _now(micro=True),
            "regarding": about,
            "reason": reason,
            "note": note,
            "type": "Normal",
            "reportingController": controller,
            "reportingInstance": host,
            "deprecatedSource": {"host": host},
        }
        self._api.put(EVENTS, event)


def _now(*, micro: bool = False) -> str:
    text = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f" if micro else "%Y-%m-%dT%H:%M:%S")
    return f"{text}Z"


# 3. to 5. One pod of each class


@dataclass
class Webhook:
    """`roost webhook` with a certificate of its own."""

    folder: Path
    api: StandInApi
    objects: list[JSONObject]
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Webhook:
        authority = make_authority("demo", time.time(), 3600)
        leaf = sign_leaf(authority, [LOOPBACK], time.time(), 3600)
        (self.folder / "tls.crt").write_bytes(leaf.certificate_pem + leaf.authority_pem)
        (self.folder / "tls.key").write_bytes(leaf.key_pem)
        (self.folder / "release.json").write_text(_data(self.objects, "release.json"))
        self._trust = ssl.create_default_context(cadata=authority.certificate_pem.decode())
        self._port, self._metrics_port = _free_ports(2)
        options = (
            f"--settings={self.folder / 'release.json'}",
            f"--release={RELEASE}",
            f"--namespace={NAMESPACE}",
            f"--kubeconfig={self.api.kubeconfig}",
            f"--certificate-folder={self.folder}",
            "--drain-seconds=0",
            f"--bind-address={LOOPBACK}",
            f"--port={self._port}",
            f"--metrics-port={self._metrics_port}",
        )
        self._stack.enter_context(_background(self.folder, "webhook", *options))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def wait_for_builders(self) -> None:
        """Wait until the webhook is ready, and its ring has every node with a builder."""
        full = f'roost_webhook_ring_nodes{{class="build"}} {len(NODES)}.0'
        url = f"http://{LOOPBACK}:{self._metrics_port}"
        _wait(
            self.folder,
            "webhook",
            lambda: full in _get(f"{url}/metrics") and bool(_get(f"{url}/readyz")),
        )

    def admit(self, pod: JSONObject) -> JSONObject:
        """Send a review of the pod's creation, as an API server does; returns the patched pod."""
        pod = copy.deepcopy(pod)
        pod["metadata"]["namespace"] = NAMESPACE
        pod["spec"].setdefault("schedulerName", "default-scheduler")
        request = {
            "uid": "demo",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "name": pod["metadata"]["name"],
            "namespace": NAMESPACE,
            "operation": "CREATE",
            "object": pod,
        }
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": request,
        }
        call = urllib.request.Request(
            f"https://{LOOPBACK}:{self._port}/mutate",
            json.dumps(review).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(call, timeout=10, context=self._trust) as answer:
            response = json.load(answer)["response"]
        patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
        admitted: JSONObject = jsonpatch.apply_patch(pod, patch)
        return admitted


def show_pod(number: int, kind: str, webhook: Webhook, cluster: Cluster) -> bool:
    """Admit and place one pod; False when it went elsewhere than promised."""
    heading(f"{number}. A {kind} pod: what the webhook made of it, and where it went")
    sent = (
        cluster.placeholder
        if kind == "placeholder"
        else yaml.safe_load((DATA / f"{kind}.yaml").read_text())
    )
    if kind == "user":
        promised = USER_NODE
        reasons = [
            (
                "the pod keeps off nodes that are still pulling its image,"
                f" and {USER_NODE} holds it: no wait for a pull."
            )
        ]
    elif kind == "build":
        repository = sent["metadata"]["annotations"]["binder-repo"]
        ring = best_nodes(repository, map(encode_name, NODES), len(NODES))
        promised = ring[0]
        reasons = [
            (
                f"the repository's ring is {' > '.join(ring)}; the first holds its layers, so its"
                " builds meet there."
            ),
            (
                "BinderHub's own term, which drives builds apart, was replaced. Requests were"
                " added, so that builds count."
            ),
        ]
    else:
        promised = PLACEHOLDER_NODE
        reasons = [
            (
                f"{PLACEHOLDER_NODE} is marked for placeholders, as the newest node of a pool will"
                " be. Their StatefulSet"
            ),
            (
                "says so itself, webhook or not. A user takes a placeholder's room at once: its"
                " priority is higher."
            ),
        ]
    admitted = webhook.admit(sent)
    show_diff(_as_rendered(sent) if kind == "placeholder" else _as_sent(sent), admitted)
    cluster.create(admitted)
    decision = cluster.place(admitted)
    say(f"It landed on {colour(str(decision.node), '1;32')}.")
    if decision.node != promised:
        say(colour(f"That is wrong: it should be on {promised}.", "31"))
    else:
        say(f"Why: {reasons[0]}")
        for reason in reasons[1:]:
            say(reason)
    if decision.table is not None:
        show_scores({node: points for node, points, _ in decision.table.rows()})
    return decision.node == promised


def _as_sent(pod: JSONObject) -> JSONObject:
    return {**pod, "spec": {"schedulerName": "default-scheduler", **pod["spec"]}}


def _as_rendered(pod: JSONObject) -> JSONObject:
    """A placeholder as it would be without what Roost renders into it."""
    return {
        **pod,
        "spec": {"schedulerName": "default-scheduler", "containers": pod["spec"]["containers"]},
    }


# 6. The record


@contextlib.contextmanager
def record(
    folder: Path, api: StandInApi, objects: list[JSONObject], database: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """`roost record` into an SQLite file, until the block ends."""
    (folder / "release.json").write_text(_data(objects, "release.json"))
    (folder / "scheduler.yaml").write_text(_data(objects, "config.yaml"))
    (port,) = _free_ports(1)
    options = (
        f"--settings={folder / 'release.json'}",
        f"--scheduler-config={folder / 'scheduler.yaml'}",
        f"--database={database}",
        f"--kubeconfig={api.kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--port={port}",
    )
    with _background(folder, "record", *options) as process:
        _wait(folder, "record", lambda: bool(_get(f"http://{LOOPBACK}:{port}/readyz")))
        yield process


def show_record(folder: Path, database: Path, recorder: subprocess.Popen[bytes]) -> None:
    """Stop the recorder, and print what it stored."""
    heading("6. What the recorder stored of it: roost why jupyter-ada")
    command = [*ROOST, "why", "jupyter-ada", "--database", str(database)]
    deadline = time.monotonic() + WAIT_SECONDS
    while not (
        story := subprocess.run(command, capture_output=True, text=True, check=False)
    ).stdout:
        if time.monotonic() > deadline:
            raise DemoError(f"the recorder stored nothing: {story.stderr}{_log(folder, 'record')}")
    # When it ends it stores what it still has in memory.
    recorder.terminate()
    recorder.wait(WAIT_SECONDS)
    for line in subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.splitlines():
        say(line)


# 7. The pages


def show_pages(folder: Path, replay: subprocess.Popen[bytes]) -> None:
    """The report of a made-up hub's day, and the page of the replay that ran meanwhile."""
    heading("7. A day of classes without Roost and with it, and two pages to open in a browser")
    day = folder / "day.db"
    store = Store.open(str(day))
    write_story(store, Story(days=1.0, users_a_day=400.0))
    store.close()
    report = PAGES / "report.html"
    options = (
        "--database",
        str(day),
        "--since",
        "2026-11-02",
        "--until",
        "2026-11-03",
        "--output",
        str(report),
    )
    subprocess.run([*ROOST, "report", *options], check=True)
    if replay.wait(WAIT_SECONDS * 2):
        raise DemoError(
            f"the replay ended with status {replay.returncode}: {_log(folder, 'replay')}"
        )
    # The replay's last words are what came of it.
    say(colour(_log(folder, "replay").strip().rpartition("\n")[2], "1"))
    say()
    page = colour(str(PAGES / "replay.html"), "1")
    say(f"{page}: that day, side by side, to play and to share")
    say("(a day of a hub as in the first row of README's table; roost view --output)")
    say(f"{colour(str(report), '1')}: how a made-up hub's pods started in a day (roost report)")


# 8. A hub of its own values


def show_hub(hub: Hub, folder: Path) -> None:
    """What a hub would gain on the replay's day."""
    heading("8. Your hub on the same day of classes")
    say(f"From your values: {hub.about}. The people, the nodes and their times are made up.")
    page = PAGES / "hub.html"
    sentence, *crowds = play_hub(hub, folder / "hub", page)
    say(colour(sentence, "1"))
    for line in crowds:
        say(line)
    say()
    say(f"{colour(str(page), '1')}: both days side by side")
    say("By your hub's real past: roost rehearse --past http://localhost:9090 -n jhub")


# Programs


@contextlib.contextmanager
def _background(folder: Path, command: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of Roost, or the replay, until the block ends; its output goes to a log in the
    folder.
    """
    program = (
        (sys.executable, "-m", "tools.demo_replay") if command == "replay" else (*ROOST, command)
    )
    with (folder / f"{command}.log").open("ab") as log:
        process = subprocess.Popen([*program, *options], stdout=log, stderr=log, cwd=ROOT)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(WAIT_SECONDS)


def _log(folder: Path, command: str) -> str:
    return (folder / f"{command}.log").read_text()


def _wait(folder: Path, command: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise DemoError(
                f"roost {command} isn't ready after {WAIT_SECONDS:.0f} s: {_log(folder, command)}"
            )
        time.sleep(0.05)


def _get(url: str) -> str:
    """A page's text; "" while there is none."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return str(answer.read(), "utf-8") or "ok"
    except (urllib.error.URLError, OSError):
        return ""


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind((LOOPBACK, 0))
        return [int(listener.getsockname()[1]) for listener in sockets]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
