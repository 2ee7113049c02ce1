"""Certificates and replicas under a real API server that refuses pods when the webhook can't be
reached.
"""

import base64
import contextlib
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from roost_core.kube.pki import split_bundle
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import POLICY_REVISION_ANNOTATION
from tests.builders import user_pod
from tests.e2e.relays import Balancer
from tests.e2e.storm import Storm
from tests.harness.api import ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.ports import LOOPBACK, ReservedPort
from tests.harness.waiting import wait_until
from tests.stack import Stack, Webhook

pytestmark = pytest.mark.e2e

# A CA of 40 s is renewed after 27 s, a leaf of 9 s after 6 s.
SHORT_LIVES = ("--ca-days=0.00046", "--leaf-hours=0.0025")


class Fleet:
    """Replicas of one hub behind a balancer, and a load of pods whose admission must not fail."""

    def __init__(self, stack: Stack, balancer: Balancer) -> None:
        self.stack = stack
        self.balancer = balancer
        self.ports: list[ReservedPort] = []

    def start(self, *flags: str) -> Webhook:
        """Start a replica on a port of its own; it gets connections once it is ready."""
        port = ReservedPort()
        self.ports.append(port)
        webhook = self.stack.start_webhook(f"--port={port.number}", "--drain-seconds=3", *flags)
        webhook.port = port.number
        self.balancer.replicas.append(webhook)
        return webhook

    def secret(self, name: str = "hub-roost-webhook-ca") -> dict[str, bytes]:
        path = f"/api/v1/namespaces/{self.stack.namespace}/secrets/{name}"
        data: dict[str, str] = self.stack.cluster.api.get(path)["data"]
        return {key: base64.b64decode(value) for key, value in data.items()}

    def bundles(self) -> list[list[bytes]]:
        configuration = self.stack.find("MutatingWebhookConfiguration")["metadata"]["name"]
        path = (
            f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{configuration}"
        )
        entries = self.stack.cluster.api.get(path)["webhooks"]
        return [
            split_bundle(base64.b64decode(entry["clientConfig"].get("caBundle") or ""))
            for entry in entries
        ]


class PatientStack(Stack):
    """Its webhook may take longer than values may say: what is tried isn't how late a busy machine
    can be.
    """

    def bring(self, values: Mapping[str, Any]) -> None:
        for entry in self.find("MutatingWebhookConfiguration")["webhooks"]:
            entry["timeoutSeconds"] = 10
        super().bring(values)


@pytest.fixture
def fleet(control_plane: ControlPlane, namespace: str) -> Iterator[Fleet]:
    values = {"webhook": {"failurePolicy": "Fail"}}
    with (
        PatientStack(
            control_plane, namespace, values, scheduler=False, webhook=False, own_certificates=True
        ) as stack,
        Balancer(stack.port.number) as balancer,
    ):
        fleet = Fleet(stack, balancer)
        yield fleet
        for port in fleet.ports:
            port.release()


def is_placed(pod: JSONObject) -> bool:
    return POLICY_REVISION_ANNOTATION in pod["metadata"].get("annotations", {})


def storm(fleet: Fleet) -> Storm:
    """Users' pods without a pause, from when the first one is admitted; none may be left alone."""
    body = user_pod("image")
    del body["metadata"]["namespace"]

    def succeeds() -> bool:
        with contextlib.suppress(ApiError):
            return is_placed(
                fleet.stack.cluster.api.create(body, fleet.stack.namespace, dryRun="All")
            )
        return False

    wait_until(succeeds, 30, "a pod to be admitted")
    cluster, namespace = fleet.stack.cluster, fleet.stack.namespace
    return Storm(cluster, namespace, body=body, tried=is_placed, threads=4, pause_seconds=0.01)


def test_replicas_serve_one_leaf_that_the_leader_made_and_owns_with_the_bundles_alone(
    fleet: Fleet,
) -> None:
    leaders = [fleet.stack.start_controllers() for _ in range(2)]
    replicas = [fleet.start() for _ in range(2)]
    for replica in replicas:
        replica.wait_ready()
    made = [
        line
        for leader in leaders
        for line in leader.process.log_lines("certificate authority made")
    ]
    assert len(made) == 1
    (authority,) = split_bundle(fleet.secret()["ca.crt"])
    assert all(bundle == [authority] for bundle in fleet.bundles())
    leaf = fleet.secret("hub-roost-webhook-leaf")
    assert leaf.keys() == {"tls.crt", "tls.key"}
    for replica in replicas:
        assert ssl.get_server_certificate((LOOPBACK, replica.port)).encode() == leaf["tls.crt"]
    # Of the configuration it owns the bundles alone: no "." and no name, so that the entries stay
    # the installer's.
    name = fleet.stack.find("MutatingWebhookConfiguration")["metadata"]["name"]
    api, namespace = fleet.stack.cluster.api, fleet.stack.namespace
    path = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{name}"
    managed = api.get(path)["metadata"]["managedFields"]
    (ours,) = [
        entry["fieldsV1"]["f:webhooks"]
        for entry in managed
        if entry["manager"] == "roost-webhook-ca"
    ]
    assert list(ours.values()) == [{"f:clientConfig": {"f:caBundle": {}}}] * 3
    assert all(entry.startswith('k:{"name":') for entry in ours)
    # What it made goes with its account.
    account = api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/hub-roost-controllers")
    for path in (
        f"/api/v1/namespaces/{namespace}/secrets/hub-roost-webhook-ca",
        f"/api/v1/namespaces/{namespace}/secrets/hub-roost-webhook-leaf",
        f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/hub-roost-controllers",
    ):
        (owner,) = api.get(path)["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("ServiceAccount", account["metadata"]["uid"])


def test_a_webhook_that_starts_before_its_certificate_is_there_says_so_and_becomes_ready(
    fleet: Fleet,
) -> None:
    webhook = fleet.start()
    wait_until(lambda: webhook.get("/livez")[0] == 200, 30, "the webhook to live")
    status, text = webhook.get("/readyz")
    assert status == 503
    assert "[-]certificate failed: no certificate yet" in text
    assert "the controllers' leader creates it" in text
    fleet.stack.start_controllers()
    webhook.wait_ready()
    with storm(fleet) as load:
        pass
    assert load.refused == []


def test_rotation_under_load_fails_no_admission(fleet: Fleet) -> None:
    fleet.stack.start_controllers(*SHORT_LIVES)
    replicas = [fleet.start() for _ in range(2)]
    for replica in replicas:
        replica.wait_ready()
    first = fleet.secret()["ca.crt"]
    seen_bundles = set()
    with storm(fleet) as load:
        end = time.monotonic() + 50
        while time.monotonic() < end:
            seen_bundles.add(max(len(bundle) for bundle in fleet.bundles()))
            time.sleep(0.5)
    assert load.refused == []
    assert len(load.pods) > 100
    assert fleet.secret()["ca.crt"] != first
    assert 2 in seen_bundles  # the old and the new one overlapped
    for replica in replicas:
        assert len(replica.process.log_lines("certificate in use")) >= 5


def test_a_rolling_restart_of_two_replicas_fails_no_admission(fleet: Fleet) -> None:
    fleet.stack.start_controllers()
    old = [fleet.start() for _ in range(2)]
    for replica in old:
        replica.wait_ready()
    with storm(fleet) as load:
        time.sleep(1)
        for replica in old:
            fleet.start().wait_ready()
            assert replica.process.stop(15) == 0
        time.sleep(1)
    assert load.refused == []
    assert len(load.pods) > 50
