"""The recorder as rendered, on a real control plane: its account may do what it does, and nothing
else.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roost_core.objects.fields import JSONObject
from roost_lab.recorder.answers.pod_story import find_pods
from roost_lab.recorder.store.database import Store
from tests.harness.api import Api
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import or_give_up, own_cluster, require_binary
from tests.harness.nodes import FakeNodes
from tests.harness.postgres import Postgres
from tests.harness.waiting import wait_until
from tests.parity.renderers import CHART, run_helm
from tests.recorded_data import object_of
from tests.stack import Replica, Stack

pytestmark = pytest.mark.e2e

SECRET = "hub-database"
ACCOUNT = "hub-roost-recorder"
POD = "jupyter-ada"
TABLES = ("pod", "node", "decision")
# (API group, plural, verb).
Right = tuple[str, str, str]


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane of our own: it writes an audit log."""
    yield from own_cluster(request, audit_level="Metadata")


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    with or_give_up(), Postgres() as server:
        yield server


def recorder_stack(cluster: ControlPlane, **values: object) -> Stack:
    """A release with nothing but its recorder."""
    named: dict[str, Any] = {"recorder": {"enabled": True}, **values}
    return Stack(cluster, cluster.create_namespace(), named, scheduler=False, webhook=False)


def start_a_user(stack: Stack) -> None:
    """Create a pod that waits, is told of by an Event and then is put on a node: each stream has
    news.
    """
    api, namespace = stack.cluster.api, stack.namespace
    pod = api.create(object_of("waiting-user"), namespace)
    about = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": POD,
        "namespace": namespace,
        "uid": pod["metadata"]["uid"],
    }
    api.create({**object_of("waiting-event"), "regarding": about}, namespace)
    target = {"kind": "Node", "name": "n"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": POD}, "target": target}
    api.request("POST", f"/api/v1/namespaces/{namespace}/pods/{POD}/binding", binding)


def record_a_start(stack: Stack) -> Replica:
    """Run the recorder as rendered over one user's start, and end it in order."""
    with FakeNodes(stack.cluster.api) as nodes:
        nodes.create("n", images={"quay.io/jupyter/base-notebook:1": 500_000_000})
        recorder = stack.start_recorder()
        recorder.wait_ready()
        start_a_user(stack)
        hub = stack.cluster.create_pod(
            {
                "metadata": {"name": "hub", "labels": {"component": "hub"}},
                "spec": {
                    "nodeName": "n",
                    "containers": [{"name": "hub", "image": "quay.io/jupyterhub/k8s-hub:4"}],
                },
            },
            stack.namespace,
        )
        path = f"/api/v1/namespaces/{stack.namespace}/pods/hub/status"
        stack.cluster.api.patch(path, {"status": {**hub["status"], "phase": "Running"}})
        wait_until(
            lambda: all(
                recorder.metric("roost_recorder_rows_total", table=name) for name in TABLES
            ),
            30.0,
            "rows of each table",
            explain=recorder.process.tail,
        )
    recorder.process.stop()
    assert recorder.process.exit_code == 0
    return recorder


def is_stored(database: str, namespace: str) -> bool:
    store = Store.open(database)
    found = find_pods(store, POD, namespace)
    store.close()
    return [(row["pod_class"], row["namespace"]) for row in found] == [("user", namespace)]


def granted(stack: Stack) -> set[Right]:
    """What the rendered ClusterRole says."""
    rules = stack.find("ClusterRole", f"hub.{stack.namespace}.roost-recorder")["rules"]
    return rights_of(rules)


# In its own namespace alone: of the hub's pod.
LOG: Right = ("", "pods/log", "get")


def rights_of(rules: list[JSONObject]) -> set[Right]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def rights_by_the_server(account: Api, namespace: str) -> set[Right]:
    """What the API server says that an account may do in a namespace."""
    spec = {"namespace": namespace}
    question = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": spec,
    }
    return rights_of(account.create(question)["status"]["resourceRules"])


def asked(cluster: ControlPlane, namespace: str) -> dict[Right, set[int]]:
    """What the recorder's account asked of resources, by the audit log, with the status codes of
    the answers.
    """
    found: dict[Right, set[int]] = {}
    for event in cluster.audit_events():
        about = event.get("objectRef", {})
        if (
            event["user"]["username"] == f"system:serviceaccount:{namespace}:{ACCOUNT}"
            and "resource" in about
        ):
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            right = (about.get("apiGroup", ""), resource, event["verb"])
            found.setdefault(right, set()).add(event.get("responseStatus", {}).get("code", 0))
    return found


def test_the_account_may_do_exactly_what_the_recorder_asks_for(cluster: ControlPlane) -> None:
    with recorder_stack(cluster) as stack:
        api, namespace = cluster.api, stack.namespace
        api.create(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bare"}}, namespace
        )
        bare = cluster.api_as(cluster.service_account_token(namespace, "bare"))
        account = cluster.api_as(cluster.service_account_token(namespace, ACCOUNT))
        wait_until(
            lambda: granted(stack) <= rights_by_the_server(account, namespace),
            20.0,
            "the API server to know the rights",
        )
        for place in (namespace, "kube-system", "default"):
            more = rights_by_the_server(account, place) - rights_by_the_server(bare, place)
            assert more == granted(stack) | ({LOG} if place == namespace else set()), place
        record_a_start(stack)
        assert is_stored(stack.recorder_environment()["ROOST_DATABASE"], namespace)
        wait_until(
            lambda: {*granted(stack), LOG} <= asked(cluster, namespace).keys(),
            20.0,
            "all to be in the audit log",
            explain=lambda: str(asked(cluster, namespace)),
        )
        answers = asked(cluster, namespace)
        answers.pop(("authorization.k8s.io", "selfsubjectrulesreviews", "create"))
        # The hub's node has no kubelet.
        assert answers == {**{right: {200} for right in granted(stack)}, LOG: {500}}


def test_with_a_secret_the_record_is_in_postgresql_and_its_password_nowhere_else(
    cluster: ControlPlane, postgres: Postgres
) -> None:
    url = postgres.create("record")
    stack = recorder_stack(
        cluster, recorder={"enabled": True, "database": {"existingSecret": SECRET}}
    )
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET},
        "stringData": {"url": url},
    }
    cluster.api.create(secret, stack.namespace)
    with stack:
        assert [
            manifest["kind"]
            for manifest in stack.manifests
            if manifest["kind"] == "PersistentVolumeClaim"
        ] == []
        recorder = record_a_start(stack)
        assert is_stored(url, stack.namespace)
        password = url.split(":")[2].partition("@")[0]
        assert password not in recorder.process.log_path.read_text()
        # Anybody on the node may read a command.
        assert password not in " ".join(stack.arguments("recorder"))


def test_without_its_rights_the_recorder_is_not_ready_and_says_what_it_may_not_do(
    cluster: ControlPlane,
) -> None:
    with recorder_stack(cluster, rbac={"create": False}) as stack:
        recorder = stack.start_recorder()
        wait_until(
            lambda: "forbidden" in recorder.get("/readyz")[1].lower(),
            30.0,
            "the recorder to be refused",
            explain=lambda: f"{recorder.get('/readyz')}\n{recorder.process.tail()}",
        )
        assert (recorder.get("/readyz")[0], recorder.get("/livez")[0]) == (503, 200)


def test_what_was_recorded_outlives_helms_uninstall_and_the_next_release_takes_it_up(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    helm, namespace = require_binary("helm"), cluster.create_namespace()
    values = tmp_path / "values.json"
    values.write_text(
        '{"recorder": {"enabled": true}, "controllers": {"enabled": false}, "admission": {"mode":'
        ' "none"}}'
    )
    claim = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{ACCOUNT}"
    uids = []
    for _ in range(2):
        for arguments in (
            ("install", "hub", str(CHART), f"--values={values}"),
            ("uninstall", "hub"),
        ):
            run_helm(helm, *arguments, f"--namespace={namespace}", kubeconfig=cluster.kubeconfig)
        metadata = cluster.api.get(claim)["metadata"]
        assert "deletionTimestamp" not in metadata
        uids.append(metadata["uid"])
    assert uids[0] == uids[1]
    assert cluster.api.find(f"/apis/apps/v1/namespaces/{namespace}/deployments/{ACCOUNT}") is None
