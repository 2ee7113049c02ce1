"""What the rendered accounts may do is what they do: every right is used, and nothing is refused,
by the audit log.
"""

import subprocess
from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import startup_taint
from tests.e2e.together.test_one_release import IMAGE, booking, label, user
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import own_cluster
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.waiting import wait_until
from tests.stack import ROOST, Stack

pytestmark = pytest.mark.e2e

PROGRAMS: Final = ("webhook", "controllers", "recorder", "scheduler")
OTHER_IMAGE: Final = "quay.io/jupyter/r-notebook:2026-11-03"
# A leader's first minute has no evictions.
ALL_SECONDS: Final = 300.0


class Right(NamedTuple):
    """One verb on one resource, of which an account may be held to one object."""

    account: str
    verb: str
    group: str
    resource: str
    # "": any.
    name: str = ""

    def covers(self, asked: "Right") -> bool:
        return self[:4] == asked[:4] and self.name in ("", asked.name)


# Not in a run of minutes.
SELDOM: Final = {
    ("controllers", "update", "secrets", "hub-roost-webhook-ca"): "the CA is renewed after months",
    (
        "controllers",
        "update",
        "secrets",
        "hub-roost-webhook-leaf",
    ): "the certificate is renewed after weeks",
    (
        "controllers",
        "patch",
        "configmaps",
        "hub-roost-headroom-history",
    ): "learned headroom is stored once an hour",
}


def values_of(namespace: str) -> JSONObject:
    """Every feature by which an account gets rights, as far as a bare control plane has its
    kinds.
    """
    name, _, tag = IMAGE.rpartition(":")
    pool = {"pool": namespace}
    common = {"resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}, "nodeSelector": pool}
    learn = {"min": 0, "max": 1, "timeZone": "UTC"}
    return {
        "podClasses": {
            "user": {"match": {"namespaceSelector": {"matchLabels": {"users": namespace}}}}
        },
        "singleuser": {"image": {"name": name, "tag": tag}, "nodeSelector": pool},
        "placeholders": [
            {"name": "default", "replicas": 4, **common},
            {"name": "learns", "replicas": 0, "learn": learn, **common},
        ],
        "placeholderMover": {
            "evictionsPerMinute": 3,
            "markAfterSeconds": 2,
            "keepMarkSeconds": 5,
            "flapSeconds": 5,
        },
        "popularImages": {"enabled": True, "diskHeadroomPercent": 84, "perNode": 5},
        "events": {"enabled": True, "maxPlaceholders": 40},
        "recorder": {"enabled": True},
    }


def hub_pod() -> JSONObject:
    """A hub's own pod."""
    containers = [{"name": "hub", "image": "quay.io/jupyterhub/k8s-hub:4.3.1"}]
    metadata = {"name": "hub", "labels": {"component": "hub"}}
    return {"metadata": metadata, "spec": {"nodeName": "old", "containers": containers}}


def rendered(stack: Stack) -> set[Right]:
    """What the rendered roles grant; kube-scheduler has the cluster's own besides."""
    roles = [
        manifest for manifest in stack.manifests if manifest["kind"] in ("Role", "ClusterRole")
    ]
    return {
        Right(
            role["metadata"]["labels"]["app.kubernetes.io/component"], verb, group, resource, name
        )
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def asked_of(cluster: ControlPlane, namespace: str) -> dict[Right, set[int]]:
    """What Roost's accounts asked, and the status codes of the answers."""
    accounts = {f"system:serviceaccount:{namespace}:hub-roost-{name}": name for name in PROGRAMS}
    found: dict[Right, set[int]] = {}
    for event in cluster.audit_events():
        about, account = event.get("objectRef", {}), accounts.get(event["user"]["username"])
        if account is not None and "resource" in about:
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            right = Right(
                account, event["verb"], about.get("apiGroup", ""), resource, about.get("name", "")
            )
            found.setdefault(right, set()).add(event.get("responseStatus", {}).get("code", 0))
    return found


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    yield from own_cluster(request, audit_level="Metadata")


def test_every_right_is_used_and_nothing_that_is_asked_is_refused(cluster: ControlPlane) -> None:
    namespace, hub = cluster.create_namespace(), cluster.create_namespace()
    label(cluster, hub, namespace)
    pool = {"pool": namespace}
    with FakeNodes(cluster.api) as nodes, PodKeeper(cluster.api):
        nodes.create("old", labels=pool, images={IMAGE: 1_500_000_000, OTHER_IMAGE: 10**8})
        with Stack(cluster, namespace, values_of(namespace), controllers=True) as stack:
            stack.start_recorder().wait_ready()
            for number in range(4):
                body = user(f"user-{number}", namespace)
                body["spec"]["containers"][0]["image"] = OTHER_IMAGE
                cluster.create_pod(body, hub)
            # Whose log the recorder asks for; no kubelet is there to answer.
            cluster.create_pod(hub_pod(), namespace)
            for place in (namespace, hub):
                cluster.api.create(booking(place, 3))
            taint = {"key": startup_taint("hub", namespace), "effect": "NoSchedule"}
            nodes.create("new", labels=pool, images={IMAGE: 1_500_000_000}, taints=[taint])
            # Nowhere to go.
            waiting = user("waits", namespace)
            waiting["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3900m"
            cluster.create_pod(waiting, hub)

            def unused() -> set[Right]:
                asked = asked_of(cluster, namespace)
                return {
                    right
                    for right in rendered(stack)
                    if (right.account, right.verb, right.resource, right.name) not in SELDOM
                    and not any(right.covers(one) for one in asked)
                }

            def wait_for_all_but(*seldom: tuple[str, str]) -> None:
                wait_until(
                    lambda: {(right.verb, right.resource) for right in unused()} <= {*seldom},
                    ALL_SECONDS,
                    "every right to be used",
                    interval_seconds=2.0,
                    explain=lambda: "\n".join(map(str, sorted(unused()))),
                )

            repeats, cleans = ("patch", "events"), ("patch", "deployments/scale")
            wait_for_all_but(repeats, cleans)
            # The next leader repeats what is so still, and the cleanup before an uninstall has the
            # same account.
            stack.restart_controllers()
            wait_for_all_but(cleans)
            stack.controllers[-1].process.stop()
            arguments = [
                "cleanup",
                "--release=hub",
                f"--namespace={namespace}",
                "--controllers=hub-roost-controllers",
            ]
            kubeconfig = cluster.service_account_kubeconfig(namespace, "hub-roost-controllers")
            done = subprocess.run(
                [ROOST, *arguments, "--kubeconfig", kubeconfig],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            assert unused() == set()
            refused = {
                right for right, codes in asked_of(cluster, namespace).items() if codes & {401, 403}
            }
            assert refused == set()
