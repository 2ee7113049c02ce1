"""The chart by itself: Helm's lint, as a dependency of another chart, and its notes."""

import json
import re
import shutil
from bisect import bisect
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.checks import find_faults
from generator.render.managed_images import are_too_many
from generator.values.files import read_values
from tests.builders import HUB_RELEASE
from tests.harness.fixtures import require_binary
from tests.parity.renderers import (
    CHART,
    HelmError,
    assert_same,
    helm_template,
    roost_render,
    run_helm,
)
from tests.recorded_data import rows

CERT_MANAGER = 'webhook.certificates.mode="certManager"'


@pytest.fixture
def umbrella(tmp_path: Path) -> Path:
    """A chart that depends on Roost, as 2i2c's basehub depends on zero-to-jupyterhub."""
    chart = tmp_path / "hub"
    (chart / "charts").mkdir(parents=True)
    shutil.copytree(CHART, chart / "charts" / "roost")
    dependency = {"name": "roost", "version": ">=0.0.0-0", "condition": "roost.enabled"}
    about = {"apiVersion": "v2", "name": "hub", "version": "1.0.0", "dependencies": [dependency]}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
    return chart


def test_helm_lint_has_nothing_to_say(helm: Path) -> None:
    said = run_helm(helm, "lint", "--strict", str(CHART))
    assert "0 chart(s) failed" in said
    assert "[WARNING]" not in said
    assert "[INFO]" not in said


def test_a_parent_of_a_parent_renders_the_same_objects(
    helm: Path, umbrella: Path, tmp_path: Path
) -> None:
    outer = tmp_path / "outer"
    (outer / "charts").mkdir(parents=True)
    shutil.copytree(umbrella, outer / "charts" / "hub")
    dependencies = "dependencies: [{name: hub, version: '*'}]"
    (outer / "Chart.yaml").write_text(
        f"{{apiVersion: v2, name: outer, version: 1.0.0, {dependencies}}}"
    )
    alone, nested = tmp_path / "alone.yaml", tmp_path / "nested.yaml"
    own = (
        "{fullnameOverride: seats, webhook: {replicas: 3}, placeholders: [{name: a, replicas: 2}]}"
    )
    alone.write_text(own)
    nested.write_text(f"{{global: {{a: 1}}, hub: {{global: {{b: 2}}, other: 1, roost: {own}}}}}")
    assert_same(roost_render([alone]), helm_template(helm, [nested], chart=outer))


def test_a_parents_condition_switches_roost_off(helm: Path, umbrella: Path, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("roost: {enabled: false}")
    assert helm_template(helm, [values], chart=umbrella) == {}


@pytest.mark.parametrize(("values", "says"), rows("parity/values-refused"))
def test_helm_refuses_a_mistyped_key_and_says_in_words_what_only_other_keys_can_tell(
    helm: Path, values: str, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(values)
    with pytest.raises(HelmError, match=re.escape(says)):
        helm_template(helm, [file])


GIVEN = "{mode: secret, secretName: a, caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t}"


@pytest.mark.parametrize(
    "off",
    ["controllers: {enabled: false}", "controllers: {replicas: 0}", "clusterResources: false"],
)
@pytest.mark.parametrize(
    "rest",
    [
        "",
        *(f"webhook: {{certificates: {one}}}" for one in ("{mode: certManager}", GIVEN)),
        "admission: {mode: policy}",
        "enabled: false",
    ],
)
def test_helm_refuses_a_webhook_that_would_get_no_certificate_in_the_words_of_the_lint(
    off: str, rest: str, helm: Path, tmp_path: Path
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(f"{off}\n{rest}\n")
    faults = find_faults(read_values([str(file)]), HUB_RELEASE)
    refusals = [
        fault
        for fault in faults
        if fault.severity == "error" and fault.key == "webhook.certificates.mode"
    ]
    assert len(refusals) == (not rest)
    if rest:
        helm_template(helm, [file])
        return
    with pytest.raises(HelmError) as refused:
        helm_template(helm, [file])
    assert str(refusals[0]).partition(": ")[2] in str(refused.value)


def choosing(repeated: int, once: int) -> dict[str, Any]:
    """What comes with each of forty choices, in two bytes a character, and what comes once, as Go
    escapes it.
    """
    chosen = {
        f"c{index}": {"kubespawner_override": {"image": f"r/i{index}:1"}} for index in range(40)
    }
    options = {
        "a": {"choices": chosen},
        "b": {"display_name": "ü" * repeated, "choices": {"c": {}}},
    }
    last = {
        "profile_options": {
            "a": {"display_name": "<" * (once // 6) + "x" * (once % 6), "choices": {"c": {}}}
        }
    }
    return {"profileList": [{"profile_options": options}, last]}


def test_helm_refuses_the_byte_too_many_of_what_users_may_choose_in_the_words_of_the_lint(
    helm: Path, tmp_path: Path
) -> None:
    puller = {
        "extraImages": {"a": {"name": "r/a", "tag": "1"}},
        "tolerations": [{"key": "e", "operator": "Exists"}],
    }
    repeated = (
        bisect(range(200_000), 0, key=lambda number: are_too_many(choosing(number, 0), puller)) - 1
    )
    once = bisect(
        range(10**4), 0, key=lambda number: are_too_many(choosing(repeated, number), puller)
    )
    file = tmp_path / "values.yaml"
    for most, count in ((True, once - 1), (False, once)):
        values = {"singleuser": choosing(repeated, count), "prePuller": puller}
        file.write_text(json.dumps(values, ensure_ascii=False))
        refusals = [
            fault
            for fault in find_faults(read_values([str(file)]), HUB_RELEASE)
            if fault.severity == "error"
        ]
        assert [refusal.key for refusal in refusals] == ([] if most else ["singleuser.profileList"])
        if most:
            helm_template(helm, [file])
        else:
            with pytest.raises(HelmError, match=re.escape(str(refusals[0]).partition(": ")[2])):
                helm_template(helm, [file])


# Helm prints notes only on install; without a cluster it prints them for a dry run on the client.
def notes(helm: Path, *settings: str) -> str:
    arguments = [f"--set-json={setting}" for setting in settings]
    return run_helm(
        helm, "install", "hub", str(CHART), "--namespace=jhub", "--dry-run=client", *arguments
    )


def test_the_notes_tell_of_controllers_and_pullers_and_end_in_the_next_command(helm: Path) -> None:
    switched_off = notes(helm, "controllers.enabled=false", CERT_MANAGER)
    assert "nodes get no labels" in switched_off
    assert "roost cleanup --release hub --namespace jhub" in switched_off
    assert "roost cleanup" in notes(helm, "controllers.cleanupOnUninstall=false")
    assert "daemonset/hub-roost-puller: a/b:1" in notes(
        helm, 'singleuser.image={"name": "a/b", "tag": "1"}'
    )
    usual, without = notes(helm), notes(helm, 'admission.mode="none"')
    assert "roost cleanup" not in usual
    assert "helm test" not in without
    ends = [said.splitlines()[-1].strip() for said in (usual, without)]
    assert ends[0] == "helm test hub --namespace jhub"
    assert ends[1].startswith("roost doctor -f values.yaml --release hub --namespace jhub")


def hooked(helm: Path, *settings: str, when: str = "test") -> list[dict[str, Any]]:
    arguments = [f"--set-json={setting}" for setting in settings]
    output = run_helm(
        helm, "template", "hub", str(CHART), "--namespace=jhub", "--kube-version=1.37.2", *arguments
    )
    found = [body for body in yaml.safe_load_all(output) if body and _hook(body, "") == when]
    return sorted(found, key=lambda body: int(_hook(body, "-weight") or 0))


def _hook(body: dict[str, Any], what: str) -> str:
    return str((body["metadata"].get("annotations") or {}).get(f"helm.sh/hook{what}", ""))


@pytest.mark.parametrize("program", ["helm", "helm3"])
def test_helm_test_tries_a_users_pod_with_an_account_that_may_only_create_pods_and_goes(
    program: str,
) -> None:
    found = hooked(require_binary(program))
    assert [body["kind"] for body in found] == ["ServiceAccount", "Role", "RoleBinding", "Pod"]
    assert {body["metadata"]["namespace"] for body in found} == {"jhub"}
    account, role, binding, pod = found
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]
    assert (
        binding["subjects"][0]["name"]
        == account["metadata"]["name"]
        == pod["spec"]["serviceAccountName"]
    )
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert all(
        {"hook-succeeded", "hook-failed"} <= set(_hook(body, "-delete-policy").split(","))
        for body in found[:3]
    )
    user = '--pod={"metadata":{"labels":{"component":"singleuser-server"}}}'
    command = pod["spec"]["containers"][0]["command"]
    assert command == ["roost", "doctor", "--namespace=jhub", user, "--wait=120"]


def test_the_pods_of_helms_hooks_have_all_that_core_pods_says(helm: Path) -> None:
    core = {
        "nodeSelector": {"pool": "core"},
        "tolerations": [{"key": "core", "operator": "Exists"}],
        # A list replaces that of the defaults.
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "priorityClassName": "high",
        "hostNetwork": True,
    }
    # As an operator keeps a mesh's sidecar out.
    annotations = {"sidecar.istio.io/inject": "false"}
    labels = {"team": "hubs"}
    env = [{"name": "HTTPS_PROXY", "value": "http://proxy"}]
    given = {**core, "annotations": annotations, "labels": labels, "extraEnv": env}
    setting = f"corePods={json.dumps(given)}"
    *rights, test_pod = hooked(helm, setting)
    (job,) = hooked(helm, setting, when="pre-delete")
    for pod in (test_pod, job["spec"]["template"]):
        spec = pod["spec"]
        assert annotations.items() <= pod["metadata"]["annotations"].items()
        assert labels.items() <= pod["metadata"]["labels"].items()
        assert spec.pop("nodeSelector") == {"kubernetes.io/os": "linux", "pool": "core"}
        assert {key: spec[key] for key in core if key != "nodeSelector"} == {
            key: value for key, value in core.items() if key != "nodeSelector"
        }
        assert spec["containers"][0]["env"] == env
    # They are of pods.
    assert all("team" not in body["metadata"]["labels"] for body in rights)


NAMESPACED = '{"user": {"match": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}}'
USERLESS = [
    'admission.mode="none"',
    "enabled=false",
    "rbac.create=false",
    'podClasses={"user": null}',
    f"podClasses={NAMESPACED}",
]


@pytest.mark.parametrize("setting", USERLESS)
def test_there_is_no_test_where_no_users_pod_can_be_made_up(helm: Path, setting: str) -> None:
    assert hooked(helm, setting) == []
