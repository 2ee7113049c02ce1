"""Show Roost at work on a real control plane: render the defaults, place one pod of each class, and
say why.

Needs Go, which builds etcd, kube-apiserver and kube-scheduler once; `python -m tools.demo` does
without.
"""

from __future__ import annotations

import collections
import copy
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from roost_core.placement.labels import HOME_TARGET_ANNOTATION, attract_label, pulled_label
from roost_core.placement.rendezvous import rank_nodes
from tests.harness.binaries import HarnessUnavailableError
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.waiting import wait_until
from tests.stack import ROOST, Stack
from tools.demo_screen import colour, heading, say, show_diff, show_scores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DATA = Path(__file__).parent / "demo_data"
RELEASE, NAMESPACE = "roost", "jhub"
NODES = ("node-1", "node-2", "node-3")
# What the controllers will write: the newest node draws the placeholders.
MARKS = {"node-3": {attract_label(RELEASE, NAMESPACE, "default"): "true"}}

_SCORE = re.compile(
    r'"Plugin scored node for pod" pod="[^/]+/(?P<pod>[^"]+)" plugin="(?P<plugin>\w+)" '
    r'node="(?P<node>[^"]+)" score=(?P<score>\d+)'
)


def main() -> int:
    """Run the demo. 0: all pods landed as promised."""
    started = time.monotonic()
    values = yaml.safe_load((DATA / "values.yaml").read_text())
    show_rendered()
    try:
        with ControlPlane(controllers=()) as cluster:
            good = show_cluster(cluster, values)
    except HarnessUnavailableError as error:
        print(
            f"demo: there is no control plane: {error}. `make demo` does without one.",
            file=sys.stderr,
        )
        return 1
    heading(f"{'Done' if good else 'Something is wrong'}, {time.monotonic() - started:.0f} s.")
    say("Next: docs/README.md; `make test` proves the rest.")
    return 0 if good else 1


def show_rendered() -> None:
    """Render the default values and count what came out."""
    heading("1. One values file becomes these objects: roost render")
    command = [str(ROOST), "render", "--release", RELEASE, "--namespace", NAMESPACE]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kinds = collections.Counter(
        document["kind"] for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document
    )
    say(
        ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in sorted(kinds.items()))
    )


def show_cluster(cluster: ControlPlane, values: Mapping[str, Any]) -> bool:
    """Everything for real, but for the nodes: their status is kept by a stand-in."""
    heading("2. A real control plane, three nodes, Roost's webhook and scheduler as rendered")
    cluster.create_namespace(NAMESPACE)
    elsewhere = cluster.create_namespace("without-roost")
    image = values["singleuser"]["image"]
    label = pulled_label(RELEASE, NAMESPACE, f"{image['name']}:{image['tag']}")
    purpose = {"hub.jupyter.org/node-purpose": "user"}
    with FakeNodes(cluster.api) as nodes, PodKeeper(cluster.api):
        for name in NODES:
            mark = {label: "true" if name == "node-2" else "pulling"}
            nodes.create(name, labels=purpose | MARKS.get(name, {}) | mark)
        create_builders(cluster)
        with Stack(
            cluster,
            NAMESPACE,
            values,
            release=RELEASE,
            scheduler_flags=("--v=3", "--vmodule=schedule_one=10"),
        ) as stack:
            wait_until(
                lambda: stack.webhooks[0].metric("roost_webhook_ring_nodes") == len(NODES),
                30,
                "the ring to fill",
            )
            say(
                "node-2 holds the users' image, the others are pulling it: label"
                f" {colour(label, '33')}"
            )
            names = [stack.scheduler_name(profile) for profile in ("user", "build", "placeholder")]
            say(f"A builder runs on each node. One scheduler, three profiles: {', '.join(names)}")
            return all(
                show_pod(stack, elsewhere, kind) for kind in ("user", "build", "placeholder")
            )


def create_builders(cluster: ControlPlane) -> None:
    """A builder on each node, Ready before the webhook looks: while it knows of none, its ring is
    made of all nodes.
    """
    for name in NODES:
        builder = yaml.safe_load((DATA / "builder.yaml").read_text())
        builder["spec"]["nodeName"] = name
        cluster.api.create(builder, NAMESPACE)
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    wait_until(
        lambda: sum(map(is_ready, cluster.api.get(pods)["items"])) == len(NODES),
        30,
        "builders to be Ready",
    )


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether a pod's condition Ready is true."""
    return any(
        one["type"] == "Ready" and one["status"] == "True"
        for one in pod.get("status", {}).get("conditions", ())
    )


def show_pod(stack: Stack, elsewhere: str, kind: str) -> bool:
    """Create one pod, show what it became and where it went.

    False when it went anywhere else than promised.
    """
    heading(f"{ {'user': 3, 'build': 4, 'placeholder': 5}[kind] }. A {kind} pod")
    if kind == "placeholder":
        return show_placeholder(stack, elsewhere)
    body = yaml.safe_load((DATA / f"{kind}.yaml").read_text())
    plain = stack.cluster.api.create(body, elsewhere, dryRun="All")
    stored = stack.create_pod(body)
    show_diff(plain, stored)
    if kind == "user":
        reason = (
            "the pod keeps off nodes that are still pulling its image, and node-2 holds it: no user"
            " waits for a pull."
        )
        return show_landing(stack, body["metadata"]["name"], "node-2", [reason])
    ring = rank_nodes(body["metadata"]["annotations"]["binder-repo"], NODES)
    reasons = [
        (
            f"the repository's ring is {' > '.join(ring)}; the first holds its layers, so its"
            " builds meet there."
        ),
        (
            "BinderHub's own term, which drives builds apart, was replaced. Requests were added, so"
            " that builds count."
        ),
    ]
    promised = stored["metadata"]["annotations"][HOME_TARGET_ANNOTATION] == ring[0]
    return show_landing(stack, body["metadata"]["name"], ring[0], reasons) and promised


def show_placeholder(stack: Stack, elsewhere: str) -> bool:
    """Its StatefulSet's own terms were rendered, so that it doesn't depend on the webhook."""
    template = copy.deepcopy(stack.find("StatefulSet")["spec"]["template"])
    template["metadata"]["name"] = "placeholder-0"
    pod = stack.create_pod(template)
    bare = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod["metadata"]["name"], "labels": pod["metadata"]["labels"]},
        "spec": {
            "containers": [
                {key: pod["spec"]["containers"][0][key] for key in ("name", "image", "resources")}
            ]
        },
    }
    show_diff(stack.cluster.api.create(bare, elsewhere, dryRun="All"), pod)
    reasons = [
        (
            "node-3 is marked for placeholders, as the newest node of a pool will be. The"
            " StatefulSet's own terms say so,"
        ),
        (
            "webhook or not. A user takes its room at once: its priority is"
            f" {pod['spec']['priority']}, a user's is 0."
        ),
    ]
    return show_landing(stack, pod["metadata"]["name"], "node-3", reasons)


def show_landing(stack: Stack, pod: str, promised: str, reasons: Sequence[str]) -> bool:
    """Where a pod went, and why when that is where it should be; False when it isn't."""
    node = stack.wait_for_node(pod)
    say(f"It landed on {colour(node, '1;32')}.")
    if node == promised:
        say(f"Why: {reasons[0]}")
        for reason in reasons[1:]:
            say(reason)
    else:
        say(colour(f"That is wrong: it should be on {promised}.", "31"))
    show_logged_scores(stack, pod)
    return node == promised


def show_logged_scores(stack: Stack, pod: str) -> None:
    """The real scheduler's own score table, from its log."""
    table: dict[str, dict[str, int]] = collections.defaultdict(dict)
    for match in _SCORE.finditer(stack.schedulers[0].log()):
        if match["pod"] == pod:
            table[match["node"]][match["plugin"]] = int(match["score"])
    if table:
        show_scores(table)
    else:
        say("(kube-scheduler scored nothing: exactly one node was feasible.)")


if __name__ == "__main__":
    if not shutil.which("go"):
        print("demo: Go is not on the PATH; trying programs built before.", file=sys.stderr)
    sys.exit(main())
