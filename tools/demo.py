"""Show Roost at work, in a minute: render the defaults, place one pod of each class on a real control plane, say why.

Without Go there is no control plane: then the webhook is shown alone, over real HTTPS, and what is left out is named.
"""

from __future__ import annotations

import base64
import collections
import copy
import difflib
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonpatch
import yaml

from roost_core.kube.pki import make_authority, sign_leaf
from roost_core.placement.labels import HOME_TARGET_ANNOTATION, attract_label, pulled_label
from roost_core.placement.rendezvous import rank_nodes
from tests.harness.binaries import HarnessUnavailableError
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.waiting import wait_until
from tests.stack import ROOST, Stack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DATA = Path(__file__).parent / "demo_data"
RELEASE, NAMESPACE = "hub", "jhub"
NODES = ("node-1", "node-2", "node-3")
# What the controllers will write: the newest node draws the spare seats.
MARKS = {"node-3": {attract_label(RELEASE, NAMESPACE, "default"): "true"}}
Object = dict[str, Any]

_COLOURED = sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))
_SCORE = re.compile(
    r'"Plugin scored node for pod" pod="[^/]+/(?P<pod>[^"]+)" plugin="(?P<plugin>\w+)" '
    r'node="(?P<node>[^"]+)" score=(?P<score>\d+)'
)


def colour(text: str, code: str) -> str:
    """`text` in a terminal colour, where the output is a terminal."""
    return f"\x1b[{code}m{text}\x1b[0m" if _COLOURED else text


def heading(text: str) -> None:
    """A new part of the story."""
    print(f"\n{colour(text, '1;36')}\n")


def say(text: str = "") -> None:
    """One line of the story."""
    print(f"  {text}", flush=True)


def main() -> int:
    """Run the demo. 0: all pods landed as promised."""
    started = time.monotonic()
    values = yaml.safe_load((DATA / "values.yaml").read_text())
    show_rendered()
    try:
        with ControlPlane() as cluster:
            good = show_cluster(cluster, values)
    except HarnessUnavailableError as error:
        heading("The webhook alone")
        say(f"There is no control plane: {error}")
        say("Left out: the API server that calls the webhook, the scheduler, the nodes that pods land on, and the")
        say("placeholder, which a StatefulSet makes. Without nodes, images and builders are unknown: no gate, no ring.")
        good = show_webhook_alone(values)
    heading(f"{'Done' if good else 'Something is wrong'}, {time.monotonic() - started:.0f} s.")
    say("Next: docs/README.md; `make cluster` gives a control plane to play with; `make test` proves the rest.")
    return 0 if good else 1


def show_rendered() -> None:
    """Render the default values and count what came out."""
    heading("1. One values file becomes these objects: roost render")
    command = [str(ROOST), "render", "--release", RELEASE, "--namespace", NAMESPACE]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kinds = collections.Counter(
        document["kind"] for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document
    )
    say(", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in sorted(kinds.items())))


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
            cluster, NAMESPACE, values, release=RELEASE, scheduler_flags=("--v=3", "--vmodule=schedule_one=10")
        ) as stack:
            wait_until(
                lambda: stack.webhooks[0].metric("roost_webhook_ring_nodes") == len(NODES), 30, "the ring to fill"
            )
            say(f"node-2 holds the users' image, the others are pulling it: label {colour(label, '33')}")
            names = [stack.scheduler_name(profile) for profile in ("user", "build", "placeholder")]
            say(f"A builder runs on each node. One scheduler, three profiles: {', '.join(names)}")
            return all(show_pod(stack, elsewhere, kind) for kind in ("user", "build", "placeholder"))


def create_builders(cluster: ControlPlane) -> None:
    """A builder on each node, Ready before the webhook looks: while it knows of none, its ring is made of all nodes."""
    for name in NODES:
        builder = yaml.safe_load((DATA / "builder.yaml").read_text())
        builder["spec"]["nodeName"] = name
        cluster.api.create(builder, NAMESPACE)
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    wait_until(lambda: sum(map(is_ready, cluster.api.get(pods)["items"])) == len(NODES), 30, "builders to be Ready")


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether a pod's condition Ready is true."""
    return any(
        one["type"] == "Ready" and one["status"] == "True" for one in pod.get("status", {}).get("conditions", ())
    )


def show_pod(stack: Stack, elsewhere: str, kind: str) -> bool:
    """Create one pod, show what it became and where it went. False when it went anywhere else than promised."""
    heading(f"{ {'user': 3, 'build': 4, 'placeholder': 5}[kind] }. A {kind} pod")
    if kind == "placeholder":
        return show_placeholder(stack, elsewhere)
    body = yaml.safe_load((DATA / f"{kind}.yaml").read_text())
    plain = stack.cluster.api.create(body, elsewhere, dryRun="All")
    stored = stack.create_pod(body)
    show_diff(plain, stored)
    if kind == "user":
        reason = (
            "the pod keeps off nodes that are still pulling its image, and node-2 holds it: no user waits for a pull."
        )
        return show_landing(stack, body["metadata"]["name"], "node-2", [reason])
    ring = rank_nodes(body["metadata"]["annotations"]["binder-repo"], NODES)
    reasons = [
        f"the repository's ring is {' > '.join(ring)}; the first holds its layers, so its builds meet there.",
        "BinderHub's own term, which drives builds apart, was replaced. Requests were added, so that builds count.",
    ]
    promised = stored["metadata"]["annotations"][HOME_TARGET_ANNOTATION] == ring[0]
    return show_landing(stack, body["metadata"]["name"], ring[0], reasons) and promised


def show_placeholder(stack: Stack, elsewhere: str) -> bool:
    """The rendered StatefulSet made it already; its terms were rendered, so that it doesn't depend on the webhook."""
    api = stack.cluster.api
    path = f"/api/v1/namespaces/{stack.namespace}/pods"

    def find() -> Object | None:
        found = api.list(path, labelSelector="component=user-placeholder")
        return next((pod for pod in found if pod["spec"].get("nodeName")), None)

    pod = wait_until(find, 30, "the placeholder to be bound")
    bare = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod["metadata"]["name"], "labels": pod["metadata"]["labels"]},
        "spec": {"containers": [{key: pod["spec"]["containers"][0][key] for key in ("name", "image", "resources")}]},
    }
    show_diff(api.create(bare, elsewhere, dryRun="All"), pod)
    reasons = [
        "node-3 is marked for placeholders, as the newest node of a pool will be. The StatefulSet's own terms say so,",
        f"webhook or not. A user takes the seat at once: its priority is {pod['spec']['priority']}, a user's is 0.",
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
    show_scores(stack, pod)
    return node == promised


def show_scores(stack: Stack, pod: str) -> None:
    """The real scheduler's own score table, from its log."""
    table: dict[str, dict[str, int]] = collections.defaultdict(dict)
    for match in _SCORE.finditer(stack.schedulers[0].log()):
        if match["pod"] == pod:
            table[match["node"]][match["plugin"]] = int(match["score"])
    if not table:
        say("(kube-scheduler scored nothing: exactly one node was feasible.)")
        return
    plugins = list(next(iter(table.values())))
    shown = [plugin for plugin in plugins if len({row.get(plugin) for row in table.values()}) > 1]
    say("kube-scheduler's points, where nodes differ: " + ("none do" if not shown else ""))
    for node, row in sorted(table.items(), key=lambda item: -sum(item[1].values())):
        say(
            f"  {node:8} total {sum(row.values()):>14,}  "
            + "  ".join(f"{plugin} {row.get(plugin, 0):,}" for plugin in shown)
        )


def show_diff(before: Object, after: Object) -> None:
    """What Roost changed: the pod as the API server alone stores it, against the pod as it stands now."""
    old, new = (yaml.safe_dump(_essence(pod), sort_keys=True, width=110).splitlines() for pod in (before, after))
    for line in difflib.unified_diff(old, new, lineterm="", n=2):
        if line.startswith(("---", "+++", "@@")):
            continue
        code = {"+": "32", "-": "31"}.get(line[:1], "2")
        say(colour(f"  {line}", code))


def _essence(pod: Object) -> Object:
    """What the pod's author and Roost had to say, without what every API server adds, and without secrets."""
    pod = copy.deepcopy(pod)
    metadata = {key: pod["metadata"].get(key) for key in ("annotations", "labels") if pod["metadata"].get(key)}
    containers = [
        {key: c[key] for key in ("name", "image", "resources") if key in c} for c in pod["spec"]["containers"]
    ]
    spec = {key: pod["spec"][key] for key in ("affinity", "nodeSelector", "schedulerName") if key in pod["spec"]}
    return {"metadata": metadata, "spec": {**spec, "containers": containers}}


def show_webhook_alone(values: Mapping[str, Any]) -> bool:
    """Real TLS, real AdmissionReviews, no API server: the facts are empty, so gate and ring stay out."""
    with tempfile.TemporaryDirectory() as directory, ReservedPort() as port, ReservedPort() as metrics_port:
        folder = Path(directory)
        policy = rendered_policy(values)
        (folder / "policy.json").write_text(policy)
        authority = make_authority("demo", time.time(), 3600)
        leaf = sign_leaf(authority, [LOOPBACK], time.time(), 3600)
        (folder / "tls.crt").write_bytes(leaf.certificate_pem + leaf.authority_pem)
        (folder / "tls.key").write_bytes(leaf.key_pem)
        (folder / "tls.key").chmod(0o600)
        options = {
            "policy": folder / "policy.json",
            "release": RELEASE,
            "namespace": NAMESPACE,
            "certificate-folder": folder,
            "bind-address": LOOPBACK,
            "port": port.number,
            "metrics-port": metrics_port.number,
            "drain-seconds": 0,
        }
        command = [str(ROOST), "webhook", "--no-cluster", *(f"--{name}={value}" for name, value in options.items())]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            trust = ssl.create_default_context(cadata=authority.certificate_pem.decode())
            wait_until(
                lambda: _answers(f"http://{LOOPBACK}:{metrics_port.number}/readyz"), 30, "the webhook to be ready"
            )
            url = f"https://{LOOPBACK}:{port.number}/mutate"
            return all(review(url, trust, kind) for kind in ("user", "build"))
        finally:
            process.terminate()
            process.wait(30)


def rendered_policy(values: Mapping[str, Any]) -> str:
    """policy.json out of the rendered ConfigMap."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(values, file)
        file.flush()
        command = [str(ROOST), "render", "-f", file.name, "--release", RELEASE, "--namespace", NAMESPACE]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    documents: Sequence[Object] = [d for d in yaml.load_all(text, Loader=yaml.CSafeLoader) if d]
    return str(next(d["data"]["policy.json"] for d in documents if "policy.json" in d.get("data", {})))


def review(url: str, trust: ssl.SSLContext, kind: str) -> bool:
    """Send one AdmissionReview as an API server does, and show the pod that its patch makes. False: no patch came."""
    heading(f"A {kind} pod")
    pod = yaml.safe_load((DATA / f"{kind}.yaml").read_text())
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
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()
    call = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(call, timeout=10, context=trust) as answer:
        response = json.load(answer)["response"]
    if "patch" not in response:
        say("The webhook sent no patch.")
        return False
    patched = jsonpatch.apply_patch(pod, json.loads(base64.b64decode(response["patch"])))
    show_diff(pod, patched)
    return True


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


if __name__ == "__main__":
    if not shutil.which("go"):
        print("demo: Go is not on the PATH; trying programs built before.", file=sys.stderr)
    sys.exit(main())
