"""What the account that keeps the webhook's certificates may write, on a real API server, holding every right."""

import copy
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from roost_core.placement import labels
from tests.e2e.controllers.test_node_write_policy import (
    ACCOUNT,
    JSON_PATCH,
    VALUES,
    Write,
    filled_fields,
    install,
    lease,
    not_refused,
    refusal,
    secret,
    set_path,
    webhook_path,
)
from tests.harness.api import Api
from tests.harness.binaries import NEWEST_MINOR
from tests.harness.controlplane import ControlPlane
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.e2e

CA, LEAF = "hub-roost-webhook-ca", "hub-roost-webhook-leaf"
TOKEN = "kubernetes.io/service-account-token"
FOR_ACCOUNT = {"kubernetes.io/service-account.name": "hub-roost-webhook"}
PEM = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1BPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
Body = Any


class Stolen(NamedTuple):
    """A release's account in the hands of somebody who also got cluster-admin's rights for it."""

    admin: Api
    account: Api
    namespace: str

    @property
    def secrets(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/secrets"


@pytest.fixture
def stolen(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Stolen]:
    for account in install(control_plane, namespace, tmp_path, VALUES, NEWEST_MINOR):
        for made in (secret(CA, namespace, data={"ca.crt": "YQ=="}), secret("theirs", namespace, data={"a": "YQ=="})):
            control_plane.api.request(made.method, made.path, made.body)
        yield Stolen(control_plane.api, account, namespace)


def configuration_escapes(case: Stolen) -> dict[str, Write]:
    """Changes that would show the webhook what is none of its business, or show it to somebody else."""
    path = webhook_path(case.namespace)
    found = case.admin.get(path)
    folder = path.rpartition("/")[0]
    service = found["webhooks"][0]["clientConfig"]["service"]

    def put(change: dict[str, Body]) -> Write:
        """The first entry with other keys; `clientConfig` is merged."""
        body = copy.deepcopy(found)
        client = {**body["webhooks"][0]["clientConfig"], **change.pop("clientConfig", {})}
        body["webhooks"][0] |= {
            **change,
            "clientConfig": {key: value for key, value in client.items() if value is not None},
        }
        return Write("PUT", path, body)

    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]
    mine = {"name": "mine.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None"}
    entry = {**mine, "clientConfig": {"url": "https://evil.example.org/"}, "rules": everything}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    return {
        "every object of the cluster": put({"rules": everything}),
        "every namespace": put({"namespaceSelector": {}}),
        "every pod": put({"objectSelector": {}}),
        "no condition": put({"matchConditions": None}),
        "another policy of failure": put({"failurePolicy": "Fail"}),
        "another time-out": put({"timeoutSeconds": 30}),
        "another name of an entry": put({"name": "other.example.org"}),
        "somebody else's URL": put({"clientConfig": {"url": "https://evil.example.org/", "service": None}}),
        "another Service": put({"clientConfig": {"service": {"name": "evil", "namespace": case.namespace}}}),
        "another namespace's Service": put({"clientConfig": {"service": {**service, "namespace": "default"}}}),
        "another path": put({"clientConfig": {"service": {**service, "path": "/evil"}}}),
        "the bundle, and the rules with it": put({"clientConfig": {"caBundle": PEM}, "rules": everything}),
        "a bundle without end": put({"clientConfig": {"caBundle": b64encode(b64decode(PEM) * 2000).decode()}}),
        "fields that it doesn't have": Write(
            "PATCH", path, {"metadata": {"managedFields": [filled_fields(kind["apiVersion"])]}}
        ),
        "an entry more": Write("PUT", path, {**found, "webhooks": [*found["webhooks"], entry]}),
        "an entry less": Write("PUT", path, {**found, "webhooks": found["webhooks"][1:]}),
        "no entry": Write("PUT", path, {**found, "webhooks": []}),
        "another order": Write("PUT", path, {**found, "webhooks": found["webhooks"][::-1]}),
        "rules by a patch": Write(
            "PATCH", path, [{"op": "replace", "path": "/webhooks/0/rules", "value": everything}], JSON_PATCH
        ),
        "a label": Write("PATCH", path, {"metadata": {"labels": {"a": "b"}}}),
        "an annotation that injects a CA": Write(
            "PATCH", path, {"metadata": {"annotations": {"cert-manager.io/inject-ca-from": "a/b"}}}
        ),
        "a finalizer": Write("PATCH", path, {"metadata": {"finalizers": ["example.org/stay"]}}),
        "deleted": Write("DELETE", path),
        "all deleted": Write("DELETE", folder),
        "one made": Write("POST", folder, {**kind, "metadata": {"name": "mine"}, "webhooks": [entry]}),
    }


def secret_escapes(case: Stolen) -> dict[str, Write]:
    """Secrets that would be a token, or somebody else's."""
    namespace, secrets = case.namespace, case.secrets
    found = case.admin.get(f"{secrets}/{CA}")
    generated = secret("", namespace, kind=TOKEN, annotations=FOR_ACCOUNT)
    leaf = secret(LEAF, namespace)
    del generated.body["metadata"]["name"]
    generated.body["metadata"]["generateName"] = "hub-roost-"
    return {
        "a token of an account": secret("token", namespace, kind=TOKEN, annotations=FOR_ACCOUNT),
        "a token under the leaf's name": secret(LEAF, namespace, kind=TOKEN, annotations=FOR_ACCOUNT),
        "a token under a name that is drawn": generated,
        "an annotation that asks for a token": secret(LEAF, namespace, annotations=FOR_ACCOUNT),
        "such an annotation afterwards": Write("PATCH", f"{secrets}/{CA}", {"metadata": {"annotations": FOR_ACCOUNT}}),
        "pull secrets under the leaf's name": secret(
            LEAF, namespace, kind="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": "e30="}
        ),
        "of another type": secret(
            LEAF, namespace, kind="kubernetes.io/tls", data={"tls.crt": "YQ==", "tls.key": "YQ=="}
        ),
        "another name": secret("mine", namespace),
        "another namespace": secret(LEAF, "default"),
        "a token elsewhere": secret(LEAF, "kube-system", kind=TOKEN, annotations=FOR_ACCOUNT),
        "other data": secret(LEAF, namespace, data={"password": "YQ=="}),
        "the CA's key for the webhook": secret(LEAF, namespace, data={"ca.key": "YQ=="}),
        "somebody's changed": Write("PATCH", f"{secrets}/theirs", {"data": {"a": "Yg=="}}),
        "somebody's replaced": Write("PUT", f"{secrets}/theirs", {**found, "metadata": {"name": "theirs"}}),
        "one that nobody can change": leaf._replace(body={**leaf.body, "immutable": True}),
        "made immutable afterwards": Write("PATCH", f"{secrets}/{CA}", {"immutable": True}),
        "a finalizer": secret(LEAF, namespace, finalizers=["example.org/stay"]),
        "a finalizer afterwards": Write("PATCH", f"{secrets}/{CA}", {"metadata": {"finalizers": ["example.org/stay"]}}),
        "as large as a Secret may be": secret(LEAF, namespace, data={"tls.crt": "YWFh" * 300_000}),
        "fields that it doesn't have": secret(LEAF, namespace, managedFields=[filled_fields()]),
        "labels without end": secret(LEAF, namespace, labels={f"a-{number}": "b" for number in range(20_000)}),
        "a large annotation": secret(LEAF, namespace, annotations={"example.org/a": "x" * 200_000}),
        "other data afterwards": Write("PATCH", f"{secrets}/{CA}", {"data": {"password": "YQ=="}}),
        "its own deleted": Write("DELETE", f"{secrets}/{CA}"),
        "somebody's deleted": Write("DELETE", f"{secrets}/theirs"),
        "all deleted": Write("DELETE", secrets),
    }


def scale_escapes(case: Stolen) -> dict[str, Write]:
    """Numbers of pods that the values don't say, and Leases of others."""
    namespace = case.namespace
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    def filled(spec: Body = None, **metadata: Body) -> Write:
        made = lease(ACCOUNT, namespace)
        return made._replace(body={**made.body, "metadata": {"name": ACCOUNT, **metadata}, "spec": spec or {}})

    def replicas(count: int) -> Body:
        return {"spec": {"replicas": count}}

    return {
        "more placeholders than in the values": Write("PATCH", f"{set_path(namespace, 'default')}/scale", replicas(8)),
        "the webhook stopped": Write("PATCH", f"{deployments}/hub-roost-webhook/scale", replicas(0)),
        "the scheduler stopped": Write("PATCH", f"{deployments}/hub-roost-scheduler/scale", replicas(0)),
        "more of itself": Write("PATCH", f"{deployments}/{ACCOUNT}/scale", replicas(9)),
        "another's Lease made": lease("hub-roost-other", namespace),
        "its Lease elsewhere": lease(ACCOUNT, "kube-system"),
        "the scheduler's Lease taken": Write(
            "PATCH", f"{leases}/hub-roost-scheduler", {"spec": {"holderIdentity": "mine", "leaseDurationSeconds": 9999}}
        ),
        "its Lease filled": filled(annotations={"a": "x" * 200_000}),
        "its Lease kept": filled(finalizers=["example.org/stay"]),
        "its Lease for ever": filled({"holderIdentity": "mine", "leaseDurationSeconds": 2_000_000_000}),
        "its Lease by a long name": filled({"holderIdentity": "m" * 100_000}),
        "the scheduler's Lease deleted": Write("DELETE", f"{leases}/hub-roost-scheduler"),
    }


def legal_writes(case: Stolen) -> dict[str, Write]:
    """All that the keeper of the certificates does."""
    path = webhook_path(case.namespace)
    found = case.admin.get(f"{case.secrets}/{CA}")
    bundles = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": PEM}
        for index in range(len(case.admin.get(path)["webhooks"]))
    ]
    part = {labels.PART_OF_LABEL: labels.OWN_PART}
    return {
        "every bundle": Write("PATCH", path, bundles, JSON_PATCH),
        "one bundle": Write("PATCH", path, bundles[:1], JSON_PATCH),
        "the leaf": secret(LEAF, case.namespace, data={"tls.crt": "YQ==", "tls.key": "YQ=="}, labels=part),
        "the CA and the one before it": Write(
            "PUT",
            f"{case.secrets}/{CA}",
            {**found, "data": dict.fromkeys(("ca.crt", "ca.key", "previous-ca.crt", "previous-ca.key"), "YQ==")},
        ),
    }


def test_who_steals_the_token_and_gets_every_right_changes_nothing_but_the_bundle(stolen: Stolen) -> None:
    escapes = {**configuration_escapes(stolen), **secret_escapes(stolen), **scale_escapes(stolen)}
    assert not_refused(stolen.account, escapes) == {}
    # The same requests are no policy's business for somebody else.
    assert not_refused(stolen.admin, escapes).keys() == escapes.keys()
    # A second bundle over a first: now there is one to compare with.
    bundle = legal_writes(stolen)["every bundle"]
    stolen.account.request(bundle.method, bundle.path, bundle.body, {}, bundle.content_type)
    assert not_refused(stolen.account, configuration_escapes(stolen)) == {}


def test_the_keeper_does_its_work_with_the_rendered_rights_alone(stolen: Stolen) -> None:
    binding = f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/all-rights-{stolen.namespace}"
    stolen.admin.delete(binding)
    others = Write("GET", f"{stolen.secrets}/theirs")
    wait_until(lambda: "forbidden" in refusal(stolen.account, others), 20.0, "the rights to be gone")
    said = {name: refusal(stolen.account, write) for name, write in legal_writes(stolen).items()}
    assert {name: text for name, text in said.items() if text} == {}
    for read in (Write("GET", stolen.secrets), Write("GET", "/api/v1/secrets")):
        assert "forbidden" in refusal(stolen.account, read)
    assert stolen.account.get(f"{stolen.secrets}/{CA}")["type"] == "Opaque"


def test_the_webhooks_own_token_may_write_nothing(stolen: Stolen, control_plane: ControlPlane) -> None:
    webhook = control_plane.api_as(control_plane.service_account_token(stolen.namespace, "hub-roost-webhook"))
    # It works, and reads.
    webhook.list(f"/api/v1/namespaces/{stolen.namespace}/pods")
    kinds = (legal_writes, configuration_escapes, secret_escapes, scale_escapes)
    writes = [write for kind in kinds for write in kind(stolen).values()]
    said = {f"{write.method} {write.path}": refusal(webhook, write) for write in writes}
    assert {name: text for name, text in said.items() if "is forbidden" not in text} == {}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
    rules = webhook.create({**review, "spec": {"namespace": stolen.namespace}})["status"]["resourceRules"]
    # Every account may ask who it is and what it may do; asking is a `create`.
    asks = ("authorization.k8s.io", "authentication.k8s.io")
    verbs = {verb for rule in rules if not set(rule["apiGroups"]) & set(asks) for verb in rule["verbs"]}
    assert verbs == {"get", "list", "watch"}
