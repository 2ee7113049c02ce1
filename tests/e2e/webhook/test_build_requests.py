"""Under any quota or LimitRange a build that would be admitted without Roost is admitted with it,
requests or not.
"""

from collections.abc import Iterator

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import OPT_OUT_ANNOTATION
from tests.harness.api import ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

REQUESTS = {"cpu": "100m", "memory": "1Gi", "ephemeral-storage": "1Gi"}
# Never pre-empts, so that no other test's PriorityClass keeps requests off.
QUIET = {
    "kind": "PriorityClass",
    "apiVersion": "scheduling.k8s.io/v1",
    "value": 0,
    "preemptionPolicy": "Never",
}


def build(stack: Stack, namespace: str, **annotations: str) -> JSONObject | str:
    """What a build without requests would have; or why the API server refuses it."""
    metadata = {
        "name": "build-a",
        "labels": {"component": "binderhub-build"},
        "annotations": annotations,
    }
    spec = {"priorityClassName": "quiet", "containers": [{"name": "builder", "image": "builder:1"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    try:
        created = stack.cluster.api.create(pod, namespace, dryRun="All")
    except ApiError as error:
        return str(error)
    resources: JSONObject = created["spec"]["containers"][0]["resources"]
    return resources


def set_guard(control_plane: ControlPlane, namespace: str, guard: JSONObject) -> None:
    control_plane.api.create(
        {"apiVersion": "v1", "metadata": {"name": "guard"}, **guard}, namespace
    )
    if hard := guard["spec"].get("hard"):
        # As the controller of quotas, which doesn't run here, would.
        status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
        control_plane.api.patch(
            f"/api/v1/namespaces/{namespace}/resourcequotas/guard/status", status
        )


def quota(hard: JSONObject, *scopes: str, **selected: object) -> JSONObject:
    spec: JSONObject = {"hard": hard, **({"scopes": list(scopes)} if scopes else {})}
    if selected:
        spec["scopeSelector"] = {"matchExpressions": [selected]}
    return {"kind": "ResourceQuota", "spec": spec}


def limits(kind: str, **limit: JSONObject) -> JSONObject:
    return {"kind": "LimitRange", "spec": {"limits": [{"type": kind, **limit}]}}


NONE = {"pods": "0"}
SOME = {"pods": "9"}
ODD = {"scopeName": "PriorityClass", "operator": "In", "values": ["odd"]}
# Where Roost's requests harm nothing.
UNAFFECTED = (
    "best effort",
    "terminating",
    "not terminating",
    "a priority",
    "any priority",
    "affinity",
    "devices",
)
QUOTAS = {
    "best effort": (quota(SOME, "BestEffort"), True),
    "not best effort: pods": (quota(NONE, "NotBestEffort"), True),
    "not best effort: memory": (quota({"requests.memory": "512Mi"}, "NotBestEffort"), True),
    "not best effort, not terminating": (
        quota({"cpu": "0"}, "NotBestEffort", "NotTerminating"),
        True,
    ),
    "not best effort, selected": (quota(NONE, scopeName="NotBestEffort", operator="Exists"), True),
    "terminating": (quota(NONE, "Terminating"), True),
    "not terminating": (quota(SOME, "NotTerminating"), True),
    "a priority": (quota({"memory": "0"}, **ODD), True),
    "any priority": (quota(SOME, scopeName="PriorityClass", operator="Exists"), True),
    "affinity": (quota(NONE, "CrossNamespacePodAffinity"), True),
    "storage": (quota({"ephemeral-storage": "0"}), True),
    "requested storage": (quota({"requests.ephemeral-storage": "0"}), True),
    "devices": (quota({"requests.nvidia.com/gpu": "0", "count/pods": "9"}), True),
    # With requests it is admitted.
    "memory": (quota({"requests.memory": "9Gi"}), False),
    "limits": (quota({"limits.cpu": "9"}), False),
}
# Less and more than Roost's requests.
AMOUNTS = {"memory": ("16Mi", "3Gi"), "cpu": ("1m", "3"), "ephemeral-storage": ("16Mi", "3Gi")}
LIMITS = {
    f"{kind} {name} {resource}": (limits(kind, **{name: {resource: amount}}), is_admitted)
    for resource, (less, more) in AMOUNTS.items()
    for kind, name, amount, is_admitted in (
        ("Container", "default", less, True),
        ("Container", "defaultRequest", less, True),
        ("Container", "min", more, True),
        ("Container", "max", less, True),
        ("Container", "maxLimitRequestRatio", "1", False),
        ("Pod", "min", more, False),
        ("Pod", "max", less, False),
        ("Pod", "maxLimitRequestRatio", "1", False),
    )
}
GUARDS = QUOTAS | LIMITS


@pytest.fixture(scope="module")
def stack(control_plane: ControlPlane) -> Iterator[Stack]:
    """A release whose builds run in a namespace of each guard."""
    name = control_plane.create_namespace()
    control_plane.api.apply({**QUIET, "metadata": {"name": "quiet"}})
    labels = {"builds-of": name}
    elsewhere = {
        "match": {
            "labels": {"component": "binderhub-build"},
            "namespaceSelector": {"matchLabels": labels},
        }
    }
    values = {"placeholders": [], "podClasses": {"build": {**elsewhere, "resources": REQUESTS}}}
    with Stack(control_plane, name, values, scheduler=False) as running:
        for number, (guard, _) in enumerate(GUARDS.values()):
            metadata = {"name": f"{name}-{number}", "labels": labels}
            control_plane.api.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            )
            set_guard(control_plane, f"{name}-{number}", guard)
        yield running
        assert not running.webhooks[0].process.log_lines("forbidden")
    for number in range(len(GUARDS)):
        control_plane.api.delete(f"/api/v1/namespaces/{name}-{number}")


@pytest.mark.parametrize("case", GUARDS)
def test_a_build_that_is_admitted_without_roost_is_admitted_with_it(
    stack: Stack, case: str
) -> None:
    namespace = f"{stack.namespace}-{list(GUARDS).index(case)}"
    is_admitted = GUARDS[case][1]

    def without_roost() -> JSONObject | str:
        return build(stack, namespace, **{OPT_OUT_ANNOTATION: "true"})

    wait_until(
        lambda: isinstance(without_roost(), dict) is is_admitted,
        20,
        "the API server",
        explain=without_roost,
    )
    if not is_admitted:
        return
    given = {"requests": REQUESTS} if case in UNAFFECTED else without_roost()

    def with_roost() -> JSONObject | str:
        return build(stack, namespace)

    wait_until(lambda: with_roost() == given, 20, "the webhook", explain=with_roost)
