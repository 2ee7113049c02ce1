"""Fields that the values don't render are told; what API server and controllers add isn't."""

from __future__ import annotations

import copy
import shlex
from dataclasses import replace
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.doctor.checks.objects import check
from roost.doctor.evidence import path_of
from roost.doctor.foreign_fields import find_foreign, in_words, patch_command
from tests.unit.doctor.whole_cluster import APPS, Cluster

DEPLOYMENT = f"{APPS}/deployments/hub-roost-webhook"


def _fields_of(value: Any) -> dict[str, Any]:
    """FieldsV1 of a whole value, as the API server writes them; lists without names are atomic."""
    if isinstance(value, dict):
        return {f"f:{key}": _fields_of(inner) for key, inner in value.items()}
    if isinstance(value, list) and value and all("name" in item for item in value):
        return {f'k:{{"name":"{item["name"]}"}}': {".": {}, **_fields_of(item)} for item in value}
    return {}


def _container(env: dict[str, str]) -> dict[str, Any]:
    return {"name": "main", "env": [{"name": name, "value": env[name]} for name in sorted(env)]}


def _live(env: dict[str, str], by_hand: dict[str, str], defaults: dict[str, str]) -> dict[str, Any]:
    """An object with variables of the values and of somebody else, and with fields filled in."""
    spec = {"containers": [_container({**env, **by_hand})], **defaults}
    applied = {"spec": {"containers": [_container(env)]}}
    other = {"spec": {"containers": [_container(by_hand)]}}
    entries = [{"manager": "helm", "operation": "Apply", "fieldsV1": _fields_of(applied)}]
    if by_hand:
        entries.append(
            {"manager": "kubectl-set", "operation": "Update", "fieldsV1": _fields_of(other)}
        )
    return {"kind": "Deployment", "metadata": {"managedFields": entries}, "spec": spec}


_NAMES = st.sampled_from(["A", "B", "C", "D", "E"])
_DEFAULTS = st.dictionaries(
    st.sampled_from(["dnsPolicy", "restartPolicy", "schedulerName"]), st.sampled_from(["x", "y"])
)


@given(
    env=st.dictionaries(_NAMES, st.just("1")),
    by_hand=st.dictionaries(st.sampled_from(["U", "V", "W"]), st.just("2")),
    defaults=_DEFAULTS,
    newer=_DEFAULTS,
)
def test_the_patch_takes_back_what_was_written_by_hand_and_nothing_else(
    env: dict[str, str], by_hand: dict[str, str], defaults: dict[str, str], newer: dict[str, str]
) -> None:
    live = _live(env, by_hand, defaults)
    # The API server of today may fill in other defaults.
    fresh = {"spec": {"containers": [_container(env)], **newer}}
    found = find_foreign(live, fresh)
    assert sorted(str(field.path[-1]) for field in found) == sorted(by_hand)
    assert {field.manager for field in found} <= {"kubectl-set"}
    patched = jsonpatch.apply_patch(live, [field.operation for field in found])
    assert patched["spec"] == {"containers": [_container(env)], **defaults}


def test_what_controllers_and_the_api_server_keep_is_no_drift() -> None:
    live: dict[str, Any] = {
        "kind": "Service",
        "metadata": {
            "annotations": {"a": "b"},
            "managedFields": [
                {"manager": "kubectl-edit", "fieldsV1": {"f:metadata": {"f:annotations": {}}}},
                {"manager": "kube-controller-manager", "fieldsV1": {"f:spec": {"f:x": {}}}},
                {"manager": "me", "subresource": "scale", "fieldsV1": {"f:spec": {"f:y": {}}}},
                {"manager": "me", "fieldsV1": {"f:spec": {"f:clusterIP": {}, "f:replicas": {}}}},
                {"manager": "injector", "fieldsV1": {"f:spec": {"f:caBundle": {}}}},
            ],
        },
        "spec": {"x": 1, "y": 2, "z": 3, "clusterIP": "10.0.0.1", "replicas": 4, "caBundle": "A"},
        "status": {"a": 1},
    }
    assert find_foreign(live, {"spec": {}}) == []
    live["metadata"]["managedFields"].append(
        {"manager": "kubectl-patch", "fieldsV1": {"f:spec": {"f:z": {}}}}
    )
    assert [field.path for field in find_foreign(live, {"spec": {}})] == [("spec", "z")]


_CONTAINERS: Any = {
    'k:{"name":"webhook"}': {
        "f:env": {'k:{"name":"IT\'S"}': {".": {}, "f:name": {}, "f:value": {}}}
    }
}
_VARIABLE: Any = {"f:spec": {"f:template": {"f:spec": {"f:containers": _CONTAINERS}}}}


@pytest.mark.parametrize(
    ("manager", "operation", "has_others"),
    [
        ("kubectl", "Apply", False),
        ("kubectl", "Apply", True),
        ("kustomize-controller", "Apply", False),
        ("argocd-controller", "Apply", True),
        ("argocd-controller", "Update", False),
        ("helm-controller", "Update", False),
        ("helm", "Update", False),
        ("helm", "Apply", False),
        ("kubectl-client-side-apply", "Update", False),
        ("pulumi", "Apply", False),
    ],
)
def test_what_an_installer_adds_to_the_values_is_no_error_and_said_to_go_with_it(
    monkeypatch: pytest.MonkeyPatch, *, manager: str, operation: str, has_others: bool
) -> None:
    cluster = Cluster()
    live = cluster.objects[DEPLOYMENT]
    container = live["spec"]["template"]["spec"]["containers"][0]
    rendered = copy.deepcopy(container.get("env") or [])
    container["env"] = [*rendered, {"name": "IT'S", "value": "secret"}]
    entry = {"manager": manager, "operation": operation, "fieldsV1": _VARIABLE}
    live["metadata"]["managedFields"] = [entry]
    if has_others:
        # Who applied most takes only its own away.
        most: Any = {"f:spec": {f"f:{number}": {} for number in range(99)}}
        live["metadata"]["managedFields"].append(
            {"manager": "flux", "operation": "Apply", "fieldsV1": most}
        )
    real = cluster.try_apply

    def apply(path: str, body: Any, by: str, /) -> Any:
        applied = copy.deepcopy(real(path, body, by))
        if path == DEPLOYMENT:
            env = container["env"] if (by, operation) != (manager, "Apply") else rendered
            applied["spec"]["template"]["spec"]["containers"][0]["env"] = env
        return applied

    monkeypatch.setattr(cluster, "try_apply", apply)
    (finding,) = cluster.said("objects")
    assert (finding.severity, finding.brings) == ("warning", frozenset())
    evidence = finding.evidence
    fix = finding.fix
    assert "1 field that these values don't render, and that whoever installs wrote" in evidence
    assert "containers.webhook.env" in evidence
    assert f", by {manager})" in evidence
    assert "Installing again leaves" not in evidence
    assert "kustomize or a post-renderer adds may stay" in fix
    assert "secret" not in evidence + fix
    # A rendered field that differs stays an error.
    live["spec"]["template"]["spec"]["serviceAccountName"] = "other"
    said = cluster.said("objects")
    assert [finding.severity for finding in said] == ["error", "warning"]
    assert "serviceAccountName" in said[0].evidence
    assert "env" not in said[0].evidence


def test_a_variable_that_was_set_by_hand_is_told_with_the_command_that_takes_it_back() -> None:
    cluster = Cluster()
    live = cluster.objects[DEPLOYMENT]
    container = live["spec"]["template"]["spec"]["containers"][0]
    variable = {"name": "IT'S", "value": "secret"}
    container["env"] = [*(container.get("env") or []), variable]
    live["metadata"]["managedFields"] = [
        {"manager": "kubectl-set", "operation": "Update", "fieldsV1": _VARIABLE}
    ]
    ((severity, evidence, fix, *_),) = cluster.said("objects")
    assert severity == "warning"
    assert "1 field that the values don't render: Deployment jhub/hub-roost-webhook (" in evidence
    assert "containers.webhook.env" in evidence
    assert "by kubectl-set" in evidence
    assert "secret" not in evidence + fix
    assert "kubectl --namespace jhub patch deployments hub-roost-webhook --type json" in fix


@given(
    env=st.dictionaries(_NAMES, st.just("1")),
    by_hand=st.dictionaries(st.sampled_from(["U", "V", "W"]), st.just("2"), min_size=1),
    since=st.dictionaries(st.sampled_from(["0", "M", "Z"]), st.just("3"), min_size=1),
)
def test_the_command_takes_nothing_else_back_when_items_have_moved(
    env: dict[str, str], by_hand: dict[str, str], since: dict[str, str]
) -> None:
    fields = find_foreign(_live(env, by_hand, {}), {"spec": {"containers": [_container(env)]}})
    body = {"kind": "Deployment", "metadata": {"name": "a"}}
    *_, text = shlex.split(patch_command(body, fields))
    assert jsonpatch.apply_patch(_live(env, by_hand, {}), text)["spec"]["containers"] == [
        _container(env)
    ]
    moved = _live({**env, **since}, by_hand, {})
    try:
        patched = jsonpatch.apply_patch(moved, text)
    except jsonpatch.JsonPatchException:
        return
    assert patched["spec"]["containers"] == [_container({**env, **since})]


def test_a_command_holds_no_value_of_a_secret() -> None:
    live = {
        "kind": "Secret",
        "metadata": {"managedFields": [{"manager": "me", "fieldsV1": {"f:data": {"f:a": {}}}}]},
        "data": {"a": "theirs"},
    }
    fields = find_foreign(live, {"data": {"a": "c2VjcmV0"}})
    body = {"kind": "Secret", "metadata": {"name": "s", "namespace": "b"}}
    assert patch_command(body, fields) == "kubectl --namespace b edit secret s"


def test_a_command_quotes_what_it_names() -> None:
    live = _live({}, {"it's": "1"}, {})
    body = {"kind": "Deployment", "metadata": {"name": "a", "namespace": "b"}}
    fields = find_foreign(copy.deepcopy(live), {"spec": {"containers": [_container({})]}})
    assert "it's" in in_words(body, fields)
    assert patch_command(body, fields).endswith(
        """--patch '[{"op": "test", "path": "/spec/containers/0/name", "value": "main"},"""
        """ {"op": "test", "path": "/spec/containers/0/env/0/name", "value": "it'\\''s"},"""
        """ {"op": "remove", "path": "/spec/containers/0/env/0"}]'"""
    )


def test_of_what_its_users_keep_no_copy_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster("seating: {enabled: true}")
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    kept = [{**head, "metadata": {"name": "a", "namespace": "jhub"}} for head in (lease, claim)]
    rendered = [*cluster.install.rendered, *kept]
    cluster.objects.update({path_of(body): copy.deepcopy(body) for body in kept})
    tried = []
    real = cluster.create

    def create(path: str, body: Any, /) -> Any:
        tried.append(body["kind"])
        return real(path, body)

    monkeypatch.setattr(cluster, "create", create)
    list(check(replace(cluster.install, rendered=rendered)))
    assert "Deployment" in tried
    assert not {"Lease", "PersistentVolumeClaim"} & {*tried}
