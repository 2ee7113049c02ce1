"""What `roost import` tells of hubs that operators reported: a line for each kind that was told
wrongly. Names are made up.
"""

import ast
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from generator.importing.importer import import_layers
from generator.importing.profile_filters import leaves_out
from generator.importing.result import ImportResult
from generator.importing.trial_pods import user_pods
from generator.render.manifests import render
from generator.values.files import read_defaults
from generator.values.lookups import child, listing
from generator.values.merge import coalesce
from generator.values.release_name import Release
from roost.commands.hub_trial import by_kind, read_rules, try_import
from roost_core.objects.pod_body import read_pod_body
from roost_core.placement.labels import NAMESPACE_NAME_LABEL
from tests.recorded_data import HUBS
from webhook.admission import decide
from webhook.facts.facts import Facts

GPU = {"key": "gpu", "operator": "Exists"}
STUDENTS = {"key": "students", "operator": "Exists"}


def reported(name: str, release: str = "") -> ImportResult:
    result = import_layers([(name, (HUBS / f"{name}.yaml").read_text())], release)
    try_import(result)
    return result


def rendered(result: ImportResult, kind: str) -> list[dict[str, Any]]:
    values: dict[str, Any] = coalesce(result.values, read_defaults().values)
    return [
        dict(manifest.body)
        for manifest in render(values, Release())
        if manifest.body["kind"] == kind
    ]


def test_lists_by_name_are_read_in_the_order_of_their_names() -> None:
    result = reported("named-tolerations")
    gpu = child(
        listing(child(result.values, "singleuser", "profileList"))[1], "kubespawner_override"
    )
    assert child(gpu, "tolerations") == [GPU]
    pods = [body["spec"]["template"]["spec"] for body in rendered(result, "DaemonSet")]
    assert [pod.get("nodeSelector", {}).get("pool") for pod in pods] == [None, "gpu"]
    assert GPU in pods[1]["tolerations"]
    assert not result.unmapped
    assert "users of GPU: Roost's scheduler, 2 of 2 images brought" in result.report()


def test_a_toleration_that_python_appends_is_the_puller_s_and_the_placeholders() -> None:
    result = reported("toleration-appended-in-python")
    assert child(result.values, "singleuser", "extraTolerations") == [STUDENTS]
    assert STUDENTS in listing(child(result.values, "placeholder", "defaults", "tolerations"))
    assert result.tried == [
        "users: Roost's scheduler, image brought, gate on 1 image, 3 placeholders fit"
    ]


def test_a_trait_below_hub_config_is_read_as_the_chart_s_key_is() -> None:
    result = reported("selector-in-hub-config")
    assert child(result.values, "singleuser", "nodeSelector") == {"pool": "students"}
    assert child(result.values, "placeholder", "defaults", "nodeSelector") == {"pool": "students"}
    assert not result.unmapped


def test_a_runtime_class_is_named_and_no_room_is_promised() -> None:
    result = reported("runtime-class")
    (note,) = result.unmapped
    assert note.key == "singleuser.extraPodConfig.runtimeClassName"
    assert "overhead, a nodeSelector and tolerations" in note.reason
    assert "kubectl get runtimeclass gvisor" in note.reason
    assert "placeholders[].resources" in note.reason
    short = result.report(details=False)
    assert "the RuntimeClass gvisor: whether their image is brought and placeholders fit" in short
    assert "keep 3 placeholders" not in "".join(result.summary.will)


def test_a_chart_s_key_in_a_profile_is_named_with_the_trait_that_is_meant() -> None:
    (note,) = reported("chart-key-in-a-profile").unmapped
    assert note.key.endswith("kubespawner_override.extra_tolerations")
    assert note.reason == (
        "KubeSpawner has no trait of this name and ignores it; tolerations is one"
    )


def test_a_list_that_a_function_only_filters_stands() -> None:
    result = reported("profiles-filtered-by-group")
    assert {user_pod.pod["spec"]["containers"][0]["image"] for user_pod in user_pods(result)} == {
        "registry.example.org/cpu:1",
        "registry.example.org/gpu:1",
    }
    assert "bring 3 images" in "".join(result.summary.will)
    assert any(line.startswith("prePuller.continuous") for line in result.switch_off)


@pytest.mark.parametrize("name", ["runtime-class", "profiles-set-in-python"])
def test_what_is_not_promised_stays_on_in_the_hub(name: str) -> None:
    result = reported(name)
    for promise, key in (("images", "prePuller.continuous"), ("placeholders", "userPlaceholder")):
        assert promise not in result.summary.promises
        assert not any(key in line for line in result.switch_off)
        assert key in "".join(result.keep)


def build_pod(result: ImportResult, namespace: str, component: str = "binderhub-build") -> str:
    """The class of a build's pod, by the imported values; "": none."""
    rules = read_rules(by_kind(coalesce(result.values, read_defaults().values), Release()))
    assert rules is not None
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "build-x",
            "labels": {"name": "build-x", "component": component},
            "annotations": {"binder-repo": "https://example.org/a/b"},
        },
        "spec": {"containers": [{"name": "builder", "image": "example.org/repo2docker:1"}]},
    }
    facts = Facts(namespaces={namespace: {NAMESPACE_NAME_LABEL: namespace}})
    decision = decide(read_pod_body(body, namespace), rules, facts, now=0.0)
    return decision.pod_class or ""


def test_builds_are_found_where_binderhub_s_python_makes_them() -> None:
    result = reported("builds-in-python")
    assert build_pod(result, "builds") == "build"
    assert build_pod(result, Release().namespace) == ""
    assert any("extraConfig is Python" in note for note in result.notes)
    assert "send builds of a repository to one node" in "".join(result.summary.will)


@pytest.mark.parametrize(
    "code",
    [
        "c.KubernetesBuildExecutor.namespace = 'builds'",
        "c.KubernetesBuildExecutor['namespace'] = 'builds'",
        "c['BinderHub']['build_namespace'] = 'builds'",
        "setattr(c.BinderHub, 'build_namespace', 'builds')",
        "c.BinderHub.update({'build_namespace': 'builds'})",
        "where = 'builds'\nc.BinderHub.build_namespace = where",
        "hub = c.BinderHub\nhub.build_namespace = 'builds'",
    ],
)
@pytest.mark.parametrize("above", ["", "binderhub-service"])
def test_builds_namespace_is_followed_however_python_writes_it(code: str, above: str) -> None:
    chart: dict[str, Any] = {"config": {"BinderHub": {"use_registry": True}}}
    chart["extraConfig"] = {"a": code}
    hub: dict[str, Any] = {"jupyterhub": {"singleuser": {}}}
    hub |= {above: chart} if above else chart
    result = import_layers([("hub.yaml", yaml.safe_dump(hub))])
    try_import(result)
    assert build_pod(result, "builds") == "build"
    assert not result.builds_unknown


@pytest.mark.parametrize(
    "code",
    [
        "import os\nc.BinderHub.build_namespace = os.environ['BUILDS']",
        "if True:\n  c.BinderHub.build_namespace = 'builds'",
        "for name in ('builds',):\n  c.BinderHub.build_namespace = name",
        "c.BinderHub.update(more)",
        "more(c)",
        "more(c.BinderHub)",
        (
            "from binderhub.build import KubernetesBuildExecutor\n"
            "class Own(KubernetesBuildExecutor):\n  pass\nc.BinderHub.build_class = Own"
        ),
        "def f():\n  c.KubernetesBuildExecutor.namespace = 'builds'\nf()",
        "c.KubernetesBuildExecutor.sticky_builds = f()",
        "c.BinderHub.build_namespace = (",
    ],
)
def test_builds_are_not_promised_where_python_is_not_plain(code: str) -> None:
    config = {"BinderHub": {"use_registry": True, "sticky_builds": True}}
    hub = {"config": config, "extraConfig": {"a": code}, "jupyterhub": {}}
    result = import_layers([("hub.yaml", yaml.safe_dump(hub))])
    try_import(result)
    assert "extraConfig.a" in [note.key for note in result.unmapped]
    assert "send builds" not in "".join(result.summary.will)
    assert "which pods builds are isn't known" in "".join(result.summary.wont)
    assert not any("sticky_builds" in line for line in result.switch_off)


@pytest.mark.parametrize("above", ["", "binderhub-service"])
def test_builds_of_another_class_in_the_configuration_are_not_promised(above: str) -> None:
    def report(build_class: str, code: str = "") -> tuple[ImportResult, list[str]]:
        config = {"BinderHub": {"build_class": build_class, "sticky_builds": True}}
        chart = {"config": config, "extraConfig": {"a": code}}
        hub: dict[str, Any] = {"jupyterhub": {}}
        hub |= {above: chart} if above else chart
        result = import_layers([("hub.yaml", yaml.safe_dump(hub))])
        try_import(result)
        return result, [note.key.removeprefix(f"{above}.") for note in result.unmapped]

    result, named = report("binderhub.build.FakeBuild")
    assert named == ["config.BinderHub.build_class"]
    assert "which pods builds are isn't known" in "".join(result.summary.wont)
    assert not any("sticky_builds" in line for line in result.switch_off)
    # Python has the last word.
    assert report("binderhub.build.FakeBuild", "c.BinderHub.build_class = f()")[1] == [
        "extraConfig.a"
    ]
    result, named = report("binderhub.build.KubernetesBuildExecutor")
    assert (named, result.builds_unknown) == ([], "")


def test_build_pods_own_label_is_followed() -> None:
    code = "c.KubernetesBuildExecutor._component_label = 'mine'"
    hub: dict[str, Any] = {"config": {"BinderHub": {}}, "extraConfig": {"a": code}}
    hub["jupyterhub"] = {}
    result = import_layers([("hub.yaml", yaml.safe_dump(hub))])
    assert build_pod(result, Release().namespace, "mine") == "build"
    assert build_pod(result, Release().namespace) == ""


@pytest.mark.parametrize(
    ("hub", "most"),
    [
        ("{}", 1000),
        ("{hub: {activeServerLimit: 120}, proxy: {}}", 120),
        ("{hub: {activeServerLimit: 900}, proxy: {}}", 900),
        ("hub: {config: {JupyterHub: {active_server_limit: 77}}}", 77),
        ("singleuser: {memory: {guarantee: 32G}}", 6),
        ("{hub: {activeServerLimit: 900}, singleuser: {memory: {guarantee: 32G}}}", 6),
        ("singleuser: {cpu: {guarantee: 2}}", 1000),
        ("singleuser: {cpu: {guarantee: 3}}", 15),
        ("singleuser: {extraResource: {limits: {nvidia.com/gpu: 1}}}", 3),
        (
            "scheduling: {userPlaceholder: {replicas: 10}}\nsingleuser: {memory: {guarantee: 32G}}",
            10,
        ),
    ],
)
def test_what_may_be_learned_follows_from_the_hub_and_is_told(hub: str, most: int) -> None:
    result = import_layers([("hub.yaml", hub)])
    try_import(result)
    (entry,) = listing(result.values["placeholders"])
    assert child(entry, "learn", "max") == most
    assert "max: " in "".join(result.comments["placeholders",])
    if "gpu" not in hub:
        assert (
            f"(at most {most}; they may cost at most 15 % of what their nodes cost, or 200 a month"
            in "".join([*result.summary.will, *result.summary.wont])
        )


def test_a_hub_without_placeholders_is_told_that_it_learns_and_how_to_decline() -> None:
    for hub in ("{}", "singleuser: {image: {name: a/b, tag: '1'}}"):
        result = import_layers([("hub.yaml", hub)])
        try_import(result)
        (entry,) = listing(result.values["placeholders"])
        assert child(entry, "replicas") == 0
        (line,) = (
            line for line in result.report(details=False).splitlines() if "third day" in line
        )
        assert "for 1 to 10 % more node-hours; learn: null in placeholders declines" in line


@pytest.mark.parametrize(
    ("hub", "zone"),
    [
        ("singleuser: {extraEnv: {TZ: Europe/Berlin}}", "Europe/Berlin"),
        ("singleuser: {extraEnv: {TZ: {value: Asia/Tokyo}}}", "Asia/Tokyo"),
        ("singleuser: {extraEnv: {TZ: Nowhere/Else}}", ""),
        ("hub: {config: {KubeSpawner: {environment: {TZ: America/Lima}}}}", "America/Lima"),
        ("{}", ""),
    ],
)
def test_the_time_zone_is_the_hub_s_or_asked_for(hub: str, zone: str) -> None:
    result = import_layers([("hub.yaml", hub)])
    (entry,) = listing(result.values["placeholders"])
    assert child(entry, "learn", "timeZone") == (zone or "UTC")
    asks = "Set timeZone in placeholders to your users'" in result.report(details=False)
    assert asks == (not zone)


@given(limit=st.integers(0, 400), gib=st.integers(1, 60))
def test_the_most_that_is_learned_is_the_hub_s_limit_or_asked_for(limit: int, gib: int) -> None:
    hub = f"hub: {{activeServerLimit: {limit}}}\nsingleuser: {{memory: {{guarantee: {gib}G}}}}\n"
    result = import_layers([("hub.yaml", hub)])
    (entry,) = listing(result.values["placeholders"])
    most = child(entry, "learn", "max")
    on_a_node = 64 // gib
    most_of_all = limit or 1000
    assert most == (most_of_all if on_a_node >= 8 else min(most_of_all, 3 * on_a_node))
    is_limit = most == limit
    is_guessed = most not in (limit, 1000)
    is_asked = f"Set learn.max in placeholders ({most})" in result.report(details=False)
    assert is_asked == is_guessed
    values = result.to_yaml()
    assert ("set max to their number" in values) == is_guessed
    assert (f"max: the hub's activeServerLimit ({limit})" in values) == is_limit


@pytest.mark.parametrize(
    "text",
    [
        "singleuser: {extraPodConfig: {runtimeClassName: gvisor}}",
        "singleuser: {extraPodConfig: {runtime_class_name: gvisor}}",
        "hub: {config: {KubeSpawner: {extra_pod_config: {runtimeClassName: gvisor}}}}",
        (
            'hub: {extraConfig: {a: "c.KubeSpawner.extra_pod_config.update('
            "runtimeClassName='gvisor')\"}}"
        ),
        (
            "singleuser: {profileList: [{kubespawner_override: {extra_pod_config:"
            " {runtime_class_name: gvisor}}}]}"
        ),
    ],
)
def test_a_runtime_class_is_named_wherever_it_is_set(text: str) -> None:
    room = "scheduling: {userPlaceholder: {replicas: 3}}"
    usual = "singleuser: {image: {name: a/b, tag: '1'}}"
    result = import_layers([("a", f"{usual}\n{room}"), ("b", f"{text}\nscheduling: {{}}")])
    try_import(result)
    assert [note for note in result.unmapped if "kubectl get runtimeclass gvisor" in note.reason]
    assert result.summary.promises == {"place"}
    assert "the RuntimeClass gvisor" in result.report(details=False)


@pytest.mark.parametrize(
    "text",
    [
        "hub: {config: {KubeSpawner: {priority_class_name: high}}}",
        "hub: {extraConfig: {a: \"c.KubeSpawner.priority_class_name = 'high'\"}}",
        "singleuser: {extraPodConfig: {priorityClassName: high}}",
    ],
)
def test_of_a_priority_that_nobody_knows_no_gate_and_no_room_is_promised(text: str) -> None:
    room = "scheduling: {userPlaceholder: {replicas: 3}}"
    usual = "singleuser: {image: {name: a/b, tag: '1'}}"
    result = import_layers([("a", f"{usual}\n{room}"), ("b", f"{text}\nscheduling: {{}}")])
    try_import(result)
    assert result.summary.promises == {"place", "images"}
    assert "their priority is set by" in result.report(details=False)


def test_odd_python_around_the_list_is_no_traceback() -> None:
    tree = ast.parse(
        "def chosen(spawner):\n    picked = list(spawner.profile_list)\n    picked.append()\n"
        "    return picked\nc.KubeSpawner.profile_list = chosen\n"
    )
    value = tree.body[-1].value  # type: ignore[attr-defined] # an assignment
    assert not leaves_out(tree, value)
