"""What the controllers' account may write, on a real API server: it tries to escape, holding every
right there is.
"""

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from generator.values.release_name import Release
from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.popular_images.pull_pods import PopularPull, pull_pod
from roost.controllers.popular_images.settings import read_popular_settings
from roost_core.placement import labels
from roost_core.release.reader import Reader
from tests.e2e.controllers.attacks import ACCOUNT, KINDS, OWNER, TABLE, Attacks
from tests.harness.api import JSON, MERGE, STRATEGIC, Api, ApiError
from tests.harness.binaries import MINORS, NEWEST_MINOR
from tests.harness.controlplane import CONTROLLERS, ControlPlane
from tests.harness.fixtures import require_binary
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.parity.renderers import roost_render
from tests.popular_builders import node_state

pytestmark = pytest.mark.e2e

RELEASE = "hub"
IMAGE = "quay.io/jupyter/base-notebook:2026"
VALUES: dict[str, Any] = TABLE["values"]
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
POLICIES = ("nodes", "namespaced", "pods", "webhook", "secrets")
JSON_PATCH = "application/json-patch+json"
Body = Any


class Write(NamedTuple):
    method: str
    path: str
    body: Body = None
    content_type: str = MERGE


def labelled(path: str, key: str, value: str | None = "true") -> Write:
    """One label written, or taken away by None."""
    return Write("PATCH", path, {"metadata": {"labels": {key: value}}})


def manifests_of(namespace: str, folder: Path, values: dict[str, Any], minor: str) -> str:
    """What is rendered, as far as a bare API server knows its kinds."""
    file = folder / "values.yaml"
    file.write_text(json.dumps(values))
    objects = roost_render([file], Release(RELEASE, namespace, f"v{minor.removeprefix('v')}.0"))
    unknown = ("monitoring.coreos.com", "readiness.node.x-k8s.io", "autoscaling.x-k8s.io")
    known = [body for key, body in objects.items() if not key[0].startswith(unknown)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": known})


def install(
    cluster: ControlPlane, namespace: str, folder: Path, values: dict[str, Any], minor: str
) -> Iterator[Api]:
    """Render, apply, and give the account's way in once its policies are at work."""
    manifests = manifests_of(namespace, folder, values, minor)
    cluster.kubectl("apply", "--filename=-", input=manifests)
    account = cluster.api_as(cluster.service_account_token(namespace, ACCOUNT))
    rights = ("--clusterrole=cluster-admin", f"--serviceaccount={namespace}:{ACCOUNT}")
    cluster.kubectl("create", "clusterrolebinding", f"all-rights-{namespace}", *rights)
    try:
        yield account
    finally:
        cluster.api.delete(f"{BINDINGS}/all-rights-{namespace}")
        cluster.api.delete(f"{ADMISSION}/mutatingwebhookconfigurations/theirs-{namespace}")
        cluster.kubectl("delete", "--filename=-", "--wait", input=manifests)


def refusal(account: Api, write: Write) -> str:
    """What the API server says against a write, tried as a dry run; "" when it takes it."""
    content_type = write.content_type if write.method == "PATCH" else JSON
    try:
        account.request(write.method, write.path, write.body, {"dryRun": "All"}, content_type)
    except ApiError as error:
        return str(error)
    return ""


@pytest.fixture
def case(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, tmp_path: Path
) -> Iterator[Attacks]:
    """A release with every writing feature on, and its account with all rights that RBAC can
    give.
    """
    for account in install(control_plane, namespace, tmp_path, VALUES, NEWEST_MINOR):
        yield make_case(control_plane, namespace, fake_nodes, account)


def make_case(
    cluster: ControlPlane, namespace: str, fake_nodes: FakeNodes, account: Api
) -> Attacks:
    """A node with marks of this release, of another and of others; objects of others, and own
    ones.
    """
    admin = cluster.api
    rendered = admin.get(f"/api/v1/namespaces/{namespace}/configmaps/hub-roost-release")
    read = Reader()
    settings = read_popular_settings(
        ReleaseDocument(read, json.loads(rendered["data"]["release.json"]))
    )
    assert settings is not None
    assert not read.faults
    puller = pull_pod(
        settings, node_state(f"{namespace}-n"), PopularPull(IMAGE, f"{namespace}-n", 2**30)
    )
    puller["metadata"]["ownerReferences"] = [{**OWNER, "controller": True}]
    del puller["metadata"]["namespace"]
    hub, stranger = (
        cluster.create_namespace(labels={"example.org/hub": "yes"}),
        cluster.create_namespace(),
    )
    made = Attacks(
        account, admin, {"namespace": namespace, "hub": hub, "stranger": stranger}, puller
    )
    fake_nodes.create(made.names["node"], **made.expanded(TABLE["node"]))
    fake_nodes.create(f"{made.names['node']}-old")
    for body in made.expanded(TABLE["objects"]):
        admin.apply(body)
    wait_until(lambda: policies_work(made), 30.0, "the policies to be at work")
    return made


def policies_work(case: Attacks) -> bool:
    """Of each kind one of the first writes that aren't the programs' is refused."""
    drawn = [case.attempts(kind, random.Random(7), 0) for kind in KINDS]
    others = [
        itertools.islice((one for one in each if not case.may(one, one.sent)), 3) for each in drawn
    ]
    return all(any(case.send(one)[0] == "refused" for one in other) for other in others)


def check_attacks(
    case: Attacks, kinds: tuple[str, ...] = KINDS, *, minor: str = NEWEST_MINOR, count: int = 100
) -> None:
    """What is drawn is taken if it is the programs' own, and otherwise refused, whatever RBAC
    gives.
    """
    case.run(kinds, count)
    assert case.faults == []
    assert minor != NEWEST_MINOR or kinds != KINDS or case.untold == set()
    assert (
        min(case.counts[kind, verdict] for kind in kinds for verdict in ("taken", "refused")) >= 5
    )


def legal_writes(case: Attacks) -> dict[str, Write]:
    """Each kind of request that the controllers send, the keeper of the certificates among them."""
    writes = {}
    for request, bodies in TABLE["legal"].items():
        for number, body in enumerate(bodies):
            method, path = case.expanded(request).split(" ")
            old = case.admin.get(path) if body == "stored" else None
            whole = (
                case.body(body, path, random.Random(7), old)
                if isinstance(body, str)
                else case.expanded(body)
            )
            writes[f"{request} {number}"] = Write(
                method, path, whole, JSON_PATCH if isinstance(body, list) else MERGE
            )
    return writes


def check_legal(case: Attacks) -> None:
    """All that the controllers do is taken, with the rendered rights alone, and they read no list
    of Secrets.
    """
    said = {name: refusal(case.account, write) for name, write in legal_writes(case).items()}
    # No such pod is there to be evicted, and a Lease is: both said after admission.
    said = {
        name: text
        for name, text in said.items()
        if text and "not found" not in text and "409" not in text
    }
    assert said == {}
    folder = f"/api/v1/namespaces/{case.names['namespace']}/secrets"
    for path in (folder, "/api/v1/secrets", f"{folder}/theirs"):
        assert "forbidden" in refusal(case.account, Write("GET", path))
    assert case.account.get(f"{folder}/hub-roost-webhook-ca")["type"] == "Opaque"


def take_rights_away(case: Attacks) -> None:
    case.admin.delete(f"{BINDINGS}/all-rights-{case.names['namespace']}")
    outside = Write("GET", "/api/v1/namespaces/kube-system/secrets")
    wait_until(lambda: "forbidden" in refusal(case.account, outside), 20.0, "the rights to be gone")


def test_the_account_escapes_not_even_with_every_right_and_does_its_work_with_the_rendered_ones(
    case: Attacks,
) -> None:
    check_attacks(case)
    take_rights_away(case)
    check_legal(case)


def test_pods_that_pull_without_image_volumes_are_held_alike(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, tmp_path: Path
) -> None:
    values = {**VALUES, "prePuller": {"method": "noop"}}
    for account in install(control_plane, namespace, tmp_path, values, NEWEST_MINOR):
        case = make_case(control_plane, namespace, fake_nodes, account)
        check_attacks(case, ("pods",))
        take_rights_away(case)
        check_legal(case)


@pytest.mark.minors
@pytest.mark.parametrize("minor", [minor for minor in MINORS if minor != NEWEST_MINOR])
def test_every_supported_minor_holds_the_account_alike(minor: str, tmp_path: Path) -> None:
    require_binary("kube-apiserver", minor)
    with ControlPlane(minor=minor) as cluster, FakeNodes(cluster.api) as nodes:
        namespace = cluster.create_namespace()
        for account in install(cluster, namespace, tmp_path, VALUES, minor):
            case = make_case(cluster, namespace, nodes, account)
            check_attacks(case, minor=minor, count=20)
            take_rights_away(case)
            check_legal(case)


def test_a_large_node_costs_no_more_than_the_policies_may(
    control_plane: ControlPlane, fake_nodes: FakeNodes, case: Attacks
) -> None:
    path = f"/api/v1/nodes/{case.names['node']}-large"
    many = {f"{case.names['pulled']}image-{index}": "true" for index in range(50)}
    theirs = {f"{'x' * 200}.example.org/label-{number}": "v" * 63 for number in range(200)}
    fake_nodes.create(
        path.rpartition("/")[2],
        labels={**many, **theirs},
        taints=[
            {"key": f"example.org/taint-{number}", "effect": "PreferNoSchedule"}
            for number in range(30)
        ],
        images={
            f"quay.io/{'path/' * 20}image-{number}@sha256:{number:064}": 2**30
            for number in range(50)
        },
        extra_resources={f"example.org/device-{number}": "8" for number in range(30)},
    )
    conditions = [
        {"type": f"Condition{number}", "status": "False", "message": "m" * 500}
        for number in range(40)
    ]
    control_plane.api.patch(
        f"{path}/status", {"status": {"conditions": conditions}}, content_type=STRATEGIC
    )
    assert refusal(case.account, labelled(path, f"{case.names['pulled']}another")) == ""


def test_the_webhooks_own_token_may_write_nothing(
    case: Attacks, control_plane: ControlPlane
) -> None:
    webhook = control_plane.api_as(
        control_plane.service_account_token(case.names["namespace"], "hub-roost-webhook")
    )
    # It works, and reads.
    webhook.list(f"/api/v1/namespaces/{case.names['namespace']}/pods")
    said = {name: refusal(webhook, write) for name, write in legal_writes(case).items()}
    assert {name: text for name, text in said.items() if "is forbidden" not in text} == {}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
    rules = webhook.create({**review, "spec": {"namespace": case.names["namespace"]}})["status"][
        "resourceRules"
    ]
    # Every account may ask who it is and what it may do; asking is a `create`.
    asks = ("authorization.k8s.io", "authentication.k8s.io")
    verbs = {
        verb for rule in rules if not set(rule["apiGroups"]) & set(asks) for verb in rule["verbs"]
    }
    assert verbs == {"get", "list", "watch"}


def test_the_policies_have_no_typing_errors(tmp_path: Path) -> None:
    with ControlPlane(
        controllers=(*CONTROLLERS, "validatingadmissionpolicy-status-controller")
    ) as cluster:
        namespace = cluster.create_namespace()
        names = [
            labels.cluster_object_name(RELEASE, namespace, f"controllers-{what}")
            for what in POLICIES
        ]
        policies = [f"{ADMISSION}/validatingadmissionpolicies/{name}" for name in names]

        def checked() -> list[Any] | None:
            statuses = [cluster.api.get(policy).get("status", {}) for policy in policies]
            is_done = all(status.get("observedGeneration") == 1 for status in statuses)
            return [status.get("typeChecking", {}) for status in statuses] if is_done else None

        for _ in install(cluster, namespace, tmp_path, VALUES, NEWEST_MINOR):
            assert wait_until(checked, 30.0, "the policies to be checked") == [{}] * len(POLICIES)
