"""What is rendered is accepted: by a real API server, strictly; by a real kube-scheduler; twice
without a change.
"""

import base64
import copy
import itertools
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import click
import pytest
import yaml

from generator.checks import find_faults
from generator.render.kube_scheduler import minor_of_tag
from generator.values.release_name import Release
from roost.cli import cli
from roost.controllers.controllers_settings import parse_settings
from roost_core.scheduler.plugins import NEWEST_MINOR as NEWEST_MODELLED
from roost_core.scheduler.plugins import VOLUME_BINDING, default_plugins, unmodelled
from roost_lab.recorder.recording.settings import parse_settings as parse_recorder_settings
from tests.builders import HUB_RELEASE, review
from tests.harness.api import ApiError
from tests.harness.binaries import NEWEST_MINOR
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import EVERY_MINOR, require_binary
from tests.harness.waiting import wait_until
from tests.parity.renderers import CHART, KUBECONFIG, ODD, Objects, roost_render, run_helm
from tests.recorded_data import rows
from tests.unit.generator.linted import laid
from webhook.facts.facts import Facts
from webhook.review import Reviewer
from webhook.webhook_settings import read_settings

pytestmark = pytest.mark.e2e

# Kinds whose definitions are installed by their own projects; the API server doesn't know them
# here.
FOREIGN_GROUPS = (
    "cert-manager.io/",
    "monitoring.coreos.com/",
    "autoscaling.x-k8s.io/",
    "readiness.node.x-k8s.io/",
)
# On nodes' own network a pod can't be `restricted`: chart/values.yaml says so.
NOT_RESTRICTED = {
    f"{program}-set-in-every-way"
    for program in ("webhook", "controllers", "scheduler", "recorder", "seating")
}


def rendered(
    file: Path | None, namespace: str, name: str = "hub", version: str = HUB_RELEASE.kube_version
) -> Objects:
    objects = roost_render([file] if file else [], Release(name, namespace, version))
    return {key: body for key, body in objects.items() if not key[0].startswith(FOREIGN_GROUPS)}


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.stem)
def test_the_api_server_takes_every_object_strictly(
    odd: Path, control_plane: ControlPlane, namespace: str
) -> None:
    for body in rendered(odd, namespace).values():
        # Raises for an unknown or doubled field, and for everything that validation or defaulting
        # refuses.
        control_plane.api.create(body, namespace, dryRun="All", fieldValidation="Strict")


RESOURCES = (
    *("cpu", "memory", "ephemeral-storage", "gpu", "pods", "nvidia.com/gpu", "example.com/nic"),
    *("kubernetes.io/x", "requests.cpu", "requests.example.com/nic", "hugepages-2Mi"),
    *("hugepages-1Gi", "hugepages-large"),
)
AMOUNTS = (0, 1, 0.5, "500m", "1500m", "2Mi", "3Mi", "1Gi", "2Gi")


def drawn_resources(random: Random) -> dict[str, dict[str, object]]:
    parts: dict[str, dict[str, object]] = {
        part: {
            random.choice(RESOURCES): random.choice(AMOUNTS) for _ in range(random.randint(0, 2))
        }
        for part in ("requests", "limits")
    }
    same = {name: amount for name, amount in parts["requests"].items() if random.random() < 0.5}
    parts["limits"] |= same
    return parts


def test_resources_are_faults_if_the_api_server_refuses_them(
    control_plane: ControlPlane, namespace: str
) -> None:
    random = Random(20261129)
    taken: Counter[bool] = Counter()
    for _ in range(60):
        resources = drawn_resources(random)
        container = {"name": "a", "image": "a", "resources": resources}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a"},
            "spec": {"containers": [container]},
        }
        try:
            control_plane.api.create(body, namespace, dryRun="All")
            is_taken = True
        except ApiError:
            is_taken = False
        entry = {"name": "a", "replicas": 1, "resources": resources}
        faults = find_faults(laid(json.dumps({"placeholders": [entry]})), HUB_RELEASE)
        errors = [str(fault) for fault in faults if fault.severity == "error"]
        assert (not errors) == is_taken, (resources, errors)
        taken[is_taken] += 1
    assert min(taken[True], taken[False]) > 5


IPV4 = "10.0.0.0 10.1.0.0 10.1.2.3 010.1.0.0 10.1.0.00 10.0.0.256 10.1.0 0.0.0.0"
IPV6 = "fd00:: FD00::0001 fd00::00000 fd00::010.0.0.0 :: fd00:1::1:1:: 1:2:3:4:5:6:7::"
IPV4_WITHIN_IPV6 = "::ffff:10.0.0.0 ::FFFF:0a01:0 ::ffff:010.1.0.0 ::ffff:0:0 64:ff9b::10.0.0.0"
ADDRESSES = f"{IPV4} {IPV6} {IPV4_WITHIN_IPV6}".split()
LENGTHS = (*range(0, 130, 8), 33, 95, 129, "00", "08", "016")


def drawn_block(random: Random) -> dict[str, object]:
    whole, *parts = [
        f"{random.choice(ADDRESSES)}/{random.choice(LENGTHS)}" for _ in range(random.randint(1, 2))
    ]
    return {"cidr": whole, "except": parts}


@pytest.mark.parametrize("minor", EVERY_MINOR)
def test_ip_blocks_are_faults_if_the_api_server_refuses_them(minor: str) -> None:
    random = Random(20261129)
    taken: Counter[bool] = Counter()
    require_binary("kube-apiserver", minor)
    with ControlPlane(minor=minor, controllers=()) as cluster:
        for _ in range(1500):
            peer = {"ipBlock": drawn_block(random)}
            body = {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": "a"},
                "spec": {"podSelector": {}, "ingress": [{"from": [peer]}]},
            }
            try:
                cluster.api.create(body, "default", dryRun="All")
                is_taken = True
            except ApiError:
                is_taken = False
            values = json.dumps({"networkPolicy": {"ingress": {"metrics": [peer]}}})
            faults = find_faults(laid(values), Release(kube_version=f"v{minor}.0"))
            errors = [str(fault) for fault in faults if fault.severity == "error"]
            assert (not errors) == is_taken, (peer, errors)
            taken[is_taken] += 1
    assert min(taken[True], taken[False]) > 20


@pytest.mark.parametrize("minor", [one for one in EVERY_MINOR if one.values != (NEWEST_MINOR,)])
def test_every_supported_api_server_takes_every_object_strictly(minor: str) -> None:
    require_binary("kube-apiserver", minor)
    with ControlPlane(minor=minor) as cluster:
        namespace = cluster.create_namespace()
        for odd in ODD:
            for body in rendered(odd, namespace, version=f"v{minor}.0").values():
                cluster.api.create(body, namespace, dryRun="All", fieldValidation="Strict")


def test_the_job_that_cleans_up_is_taken_and_is_restricted(
    helm: Path, control_plane: ControlPlane
) -> None:
    guarded = control_plane.create_namespace(
        labels={"pod-security.kubernetes.io/enforce": "restricted"}
    )
    job_alone = "--show-only=templates/controllers/cleanup-job.yaml"
    arguments = ("template", "hub", str(CHART), f"--namespace={guarded}", job_alone)
    settings = (
        "--set=imagePullSecrets={a},controllers.labels.a=b",
        "--set-string=controllers.annotations.c=1",
    )
    for job in map(
        yaml.safe_load, (run_helm(helm, *arguments), run_helm(helm, *arguments, *settings))
    ):
        assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete"
        control_plane.api.create(job, guarded, dryRun="All", fieldValidation="Strict")
        control_plane.api.create(pod_of(job), guarded, dryRun="All")
        cleanup = cli.get_command(click.Context(cli), "cleanup")
        assert cleanup is not None
        # Raises for an option that the program doesn't know.
        cleanup.make_context(
            "cleanup", job["spec"]["template"]["spec"]["containers"][0]["command"][2:]
        )
    for off in (
        "enabled=false",
        "controllers.enabled=false",
        "controllers.cleanupOnUninstall=false",
    ):
        assert "kind: Job" not in run_helm(
            helm, *arguments[:-1], f"--set={off},webhook.certificates.mode=certManager"
        )


def test_kubectl_takes_what_roost_render_prints_and_the_folder_that_it_writes(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "roost", "render", "--release=hub", f"--namespace={namespace}"]
    printed = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=CHART.parent
    ).stdout
    folder = tmp_path / "manifests"
    subprocess.run(
        [*command, f"--output-dir={folder}"], capture_output=True, check=True, cwd=CHART.parent
    )
    apply = ("apply", "--server-side", "--dry-run=server", "--output=name")
    from_stream = control_plane.kubectl(*apply, "--filename=-", input=printed).split()
    from_folder = control_plane.kubectl(*apply, f"--kustomize={folder}").split()
    assert len(from_stream) == len(rendered(None, namespace))
    assert sorted(from_folder) == sorted(from_stream)


def pod_of(body: dict[str, Any]) -> dict[str, Any]:
    template = copy.deepcopy(body["spec"]["template"])
    # Accounts and priorities come with the release; here only the pod's own security is looked at.
    for key in ("serviceAccountName", "priorityClassName"):
        template["spec"].pop(key, None)
    template["spec"]["automountServiceAccountToken"] = False
    metadata = {"name": body["metadata"]["name"], "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@pytest.mark.parametrize(
    "odd", [odd for odd in ODD if odd.stem not in NOT_RESTRICTED], ids=lambda odd: odd.stem
)
def test_every_pod_passes_the_restricted_security_standard(
    odd: Path, control_plane: ControlPlane
) -> None:
    guarded = control_plane.create_namespace(
        labels={"pod-security.kubernetes.io/enforce": "restricted"}
    )
    pods = [
        pod_of(body)
        for body in rendered(odd, guarded).values()
        if "template" in body.get("spec", {})
    ]
    for pod in pods:
        control_plane.api.create(pod, guarded, dryRun="All")


def write_config(kube_scheduler: Path, objects: Objects, folder: Path) -> dict[str, Any]:
    """Let kube-scheduler validate what is rendered; gives the configuration back with all defaults
    filled in.
    """
    bodies = {
        kind: body for (_, kind, _, name), body in objects.items() if name.endswith("-scheduler")
    }
    config = bodies["ConfigMap"]["data"]["config.yaml"]
    command = bodies["Deployment"]["spec"]["template"]["spec"]["containers"][0]["command"]
    flags = [flag for flag in command[1:] if not flag.startswith(("--config=", "--secure-port="))]
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    # The one thing that is a pod's own: outside of one there is no account to fall back to.
    document = yaml.safe_load(config)
    document["clientConnection"]["kubeconfig"] = str(kubeconfig)
    source, target = folder / "config.yaml", folder / "written.yaml"
    source.write_text(yaml.safe_dump(document))
    done = subprocess.run(
        [
            kube_scheduler,
            f"--config={source}",
            f"--write-config-to={target}",
            "--secure-port=0",
            *flags,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    written = yaml.safe_load(target.read_text())
    assert isinstance(written, dict)
    return written


STRATEGIES = (
    "{a: {strategy: pack}, c: {strategy: imageFirst}, d: {strategy: sticky}, e: {strategy: spread}}"
)


@pytest.mark.parametrize("minor", EVERY_MINOR)
def test_kube_scheduler_takes_each_strategy_with_the_weights_of_the_table(
    minor: str, tmp_path: Path
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(f"scheduler: {{profiles: {STRATEGIES}}}")
    release = Release(HUB_RELEASE.name, HUB_RELEASE.namespace, f"v{minor}.0")
    written = write_config(
        require_binary("kube-scheduler", minor), roost_render([file], release), tmp_path
    )
    profiles = {
        profile["schedulerName"].rpartition(".")[2]: profile for profile in written["profiles"]
    }
    weights = {
        name: {
            plugin["name"]: plugin["weight"] for plugin in profile["plugins"]["score"]["enabled"]
        }
        for name, profile in profiles.items()
    }
    asked = {"NodeAffinity": 104060401, "TaintToleration": 1030301, "ImageLocality": 1}
    strict = {
        **asked,
        "InterPodAffinity": 10201,
        "PodTopologySpread": 10201,
        "NodeResourcesFit": 101,
    }
    pack = {**asked, "InterPodAffinity": 101, "PodTopologySpread": 101, "NodeResourcesFit": 404}
    fit_first = {
        **asked,
        "InterPodAffinity": 101,
        "PodTopologySpread": 101,
        "NodeResourcesFit": 10201,
    }
    images_first = {**fit_first, "NodeResourcesFit": 1, "ImageLocality": 10201}
    wanted = {
        "a": pack,
        "a_strict": strict,
        "c": images_first,
        "c_strict": images_first,
        "d": strict,
        "e": fit_first,
    }
    assert profiles.keys() - {"user", "user_strict", "build", "placeholder"} == wanted.keys()
    assert {
        name: {plugin: weights[name][plugin] for plugin in table} for name, table in wanted.items()
    } == wanted
    for name in wanted:
        scoring = "LeastAllocated" if name in {"d", "e"} else "MostAllocated"
        arguments = {one["name"]: one["args"] for one in profiles[name]["pluginConfig"]}
        assert arguments["NodeResourcesFit"]["scoringStrategy"]["type"] == scoring
        spreading = arguments["PodTopologySpread"]
        assert (spreading["defaultingType"], spreading.get("defaultConstraints")) == ("List", None)
        disabled = {plugin["name"] for plugin in profiles[name]["plugins"]["score"]["disabled"]}
        assert disabled == {"NodeResourcesBalancedAllocation"}
    assert written["percentageOfNodesToScore"] == 100
    assert (written["clientConnection"]["qps"], written["clientConnection"]["burst"]) == (200, 400)
    assert written["leaderElection"]["resourceName"] == "hub-roost-scheduler"
    assert written["leaderElection"]["resourceNamespace"] == "jhub"


@pytest.mark.parametrize("minor", EVERY_MINOR)
def test_the_table_of_plugins_that_the_lint_and_the_model_read_is_kube_schedulers(
    minor: str, tmp_path: Path
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(
        "scheduler: {profiles: {user: {plugins: {score: {disabled: []}}, pluginConfig: [{name:"
        " NodeName}]}}}"
    )
    release = Release(HUB_RELEASE.name, HUB_RELEASE.namespace, f"v{minor}.0")
    written = write_config(
        require_binary("kube-scheduler", minor), roost_render([file], release), tmp_path
    )
    (found,) = (
        profile for profile in written["profiles"] if profile["schedulerName"].endswith(".user")
    )
    told = [
        (one["name"], one.get("weight", 0)) for one in found["plugins"]["multiPoint"]["enabled"]
    ]
    # VolumeBinding's weight is no default of the configuration's: 1 is what kube-scheduler takes
    # for none.
    assert told == [
        (name, 0 if name == VOLUME_BINDING else weight)
        for name, weight in default_plugins(int(minor[2:]))
    ]
    # Its own values of all arguments, which change nothing when they are written out.
    own = {one["name"]: one["args"] for one in found["pluginConfig"]}
    assert own["InterPodAffinity"]["hardPodAffinityWeight"] == 1
    assert [key for name, arguments in own.items() for key in unmodelled(name, arguments)] == []


@pytest.mark.parametrize("minor", EVERY_MINOR)
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.stem)
def test_kube_scheduler_takes_every_configuration(odd: Path, minor: str, tmp_path: Path) -> None:
    release = Release(HUB_RELEASE.name, HUB_RELEASE.namespace, f"v{minor.removeprefix('v')}.0")
    objects = roost_render([odd], release)
    deployments = [
        body
        for (_, kind, _, name), body in objects.items()
        if kind == "Deployment" and name.endswith("-scheduler")
    ]
    for deployment in deployments:
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        tag_minor = minor_of_tag(container["image"].partition("@")[0].rpartition(":")[2])
        # A kube-scheduler that is older than the one of the image lacks gates that it gets.
        if tag_minor is None or tag_minor <= int(minor.removeprefix("v1.").removeprefix("1.")):
            write_config(require_binary("kube-scheduler", minor), objects, tmp_path)


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.stem)
def test_the_programs_take_their_commands_and_settings(
    odd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = roost_render([odd])
    for key, body in objects.items():
        for container in (
            body["spec"]["template"]["spec"]["containers"] if key[1] == "Deployment" else ()
        ):
            if container["command"][0] == "roost":
                # Some options are given this way.
                for variable in container.get("env", ()):
                    monkeypatch.setenv(variable["name"], variable.get("value", "from elsewhere"))
                program = cli.get_command(click.Context(cli), container["command"][1])
                assert program is not None
                # Raises for an option that the program doesn't know.
                program.make_context(container["command"][1], container["command"][2:])
        if key[1] == "ConfigMap" and "release.json" in body.get("data", {}):
            (scheduler,) = [
                yaml.safe_load(other["data"]["config.yaml"])
                for other in objects.values()
                if other["kind"] == "ConfigMap" and "config.yaml" in other.get("data", {})
            ] or [None]
            # Raises with every fault.
            document = json.loads(body["data"]["release.json"])
            parse_settings(document, scheduler, NEWEST_MODELLED)
            parse_recorder_settings(document)
            read_settings(body["data"]["release.json"].encode())


# Who (namespace:name), verb, [group/]plural[/subresource], namespace, name.
Right = tuple[str, str, str, str, str]


def may(control_plane: ControlPlane, right: Right) -> bool:
    account, verb, resource, namespace, name = right
    parts = resource.split("/")
    group = parts.pop(0) if "." in parts[0] or parts[0] == "apps" else ""
    plural, subresource = [*parts, ""][:2]
    attributes = {
        "verb": verb,
        "group": group,
        "resource": plural,
        "namespace": namespace,
        "name": name,
    }
    if subresource:
        attributes["subresource"] = subresource
    spec = {"user": f"system:serviceaccount:{account}", "resourceAttributes": attributes}
    question = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": spec,
    }
    return bool(control_plane.api.create(question)["status"]["allowed"])


def rights(kind: str, namespace: str) -> list[Right]:
    words = {"any": "", "own": namespace, "configuration": f"hub.{namespace}.roost-webhook"}
    words |= {
        one: f"{namespace}:hub-roost-{one}"
        for one in ("webhook", "scheduler", "controllers", "puller")
    }
    spelt = (
        [[words.get(word, word) for word in part.split()] for part in row]
        for row in rows(f"parity/rights-{kind}")
    )
    return [right for parts in spelt for right in itertools.product(*parts)]


def test_each_account_may_do_what_it_needs_and_no_more(
    control_plane: ControlPlane, namespace: str
) -> None:
    objects = rendered(None, namespace)
    manifests = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects.values())})
    control_plane.kubectl("apply", "--filename=-", input=manifests)
    allowed, denied = rights("given", namespace), rights("refused", namespace)
    try:
        wait_until(lambda: may(control_plane, allowed[0]), 20.0, "the rights to be known")
        assert [one for one in allowed if not may(control_plane, one)] == []
        assert [one for one in denied if may(control_plane, one)] == []
    finally:
        control_plane.kubectl("delete", "--filename=-", "--wait", input=manifests)


def keys_and_bodies(values: str, folder: Path) -> Objects:
    file = folder / "values.yaml"
    file.write_text(values)
    return roost_render([file])


@pytest.mark.parametrize(
    "values", ["webhook: {certificates: {mode: certManager}}", "admission: {mode: policy}"]
)
def test_the_controllers_write_no_secret_where_others_keep_the_certificates(
    values: str, tmp_path: Path
) -> None:
    roles = [
        body for key, body in keys_and_bodies(values, tmp_path).items() if key[1].endswith("Role")
    ]
    resources = {
        resource for role in roles for rule in role["rules"] for resource in rule["resources"]
    }
    assert not resources & {"secrets", "mutatingwebhookconfigurations"}


def test_a_release_without_cluster_objects_or_rights_of_its_own_has_none(tmp_path: Path) -> None:
    assert {key[2] for key in keys_and_bodies("clusterResources: false", tmp_path)} == {"jhub"}
    assert not [
        key
        for key in keys_and_bodies("rbac: {create: false}", tmp_path)
        if key[0].startswith("rbac.")
    ]


def test_the_webhook_finds_nothing_to_add_to_a_rendered_placeholder_but_its_revision() -> None:
    objects = roost_render([])
    document = objects["v1", "ConfigMap", "jhub", "hub-roost-release"]["data"]["release.json"]
    policy = read_settings(document.encode())
    template = objects["apps/v1", "StatefulSet", "jhub", "hub-roost-placeholder-default"]["spec"][
        "template"
    ]
    # The API server fills this in before it asks a webhook.
    metadata = {"name": "p-0", "annotations": {}, **template["metadata"]}
    body = {"kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    reviewer = Reviewer(lambda: policy, Facts, lambda: 0.0, lambda *_: None)
    response = json.loads(reviewer.review(review(body, "jhub")).body)["response"]
    patches = json.loads(base64.b64decode(response["patch"]))
    assert [patch["path"] for patch in patches] == [
        "/metadata/annotations/roost.hub.jupyter.org~1policy-revision"
    ]


LISTED = (
    "serviceaccounts,configmaps,services,secrets,roles,rolebindings,statefulsets,deployments,daemonsets,jobs,"
    "poddisruptionbudgets,networkpolicies,leases"
)
LISTED_CLUSTER_WIDE = (
    "clusterroles,clusterrolebindings,priorityclasses,mutatingwebhookconfigurations,"
    "mutatingadmissionpolicies,mutatingadmissionpolicybindings,"
    "validatingadmissionpolicies,validatingadmissionpolicybindings"
)


def stored(control_plane: ControlPlane, *namespaces: str) -> dict[str, dict[str, Any]]:
    """What the API server holds, less what it and the controllers keep for themselves."""
    found: dict[str, dict[str, Any]] = {}
    for namespace, kinds in (
        ("", LISTED_CLUSTER_WIDE),
        *((namespace, LISTED) for namespace in namespaces),
    ):
        where = [f"--namespace={namespace}"] if namespace else []
        for item in json.loads(control_plane.kubectl("get", kinds, *where, "--output=json"))[
            "items"
        ]:
            metadata = item["metadata"]
            # Helm's own memory, and what every namespace has.
            if item.get("type") == "helm.sh/release.v1" or metadata["name"] in (
                "default",
                "kube-root-ca.crt",
            ):
                continue
            for key in ("resourceVersion", "managedFields"):
                metadata.pop(key, None)
            item.pop("status", None)
            for key in [
                key
                for key in metadata.get("annotations", {})
                if key.startswith("deployment.kubernetes.io/")
            ]:
                del metadata["annotations"][key]
            found[f"{item['kind']} {namespace}/{metadata['name']}"] = item
    return found


def run_uninstall(helm: Path, release: str, namespace: str, control_plane: ControlPlane) -> None:
    """Without hooks: no kubelet is here to run the Job that cleans nodes up."""
    arguments = ("uninstall", release, f"--namespace={namespace}", "--wait", "--no-hooks")
    run_helm(helm, *arguments, kubeconfig=control_plane.kubeconfig)


@pytest.mark.parametrize("mode", ["webhook", "policy"])
def test_a_helm_upgrade_changes_nothing_and_uninstall_leaves_nothing(
    mode: str, helm: Path, control_plane: ControlPlane, namespace: str
) -> None:
    before = stored(control_plane, namespace)
    arguments = ("hub", str(CHART), f"--namespace={namespace}", f"--set=admission.mode={mode}")
    run_helm(helm, "install", *arguments, kubeconfig=control_plane.kubeconfig)
    installed = stored(control_plane, namespace)
    assert len(installed) >= len(before) + 10
    run_helm(helm, "upgrade", *arguments, kubeconfig=control_plane.kubeconfig)
    # Generation too: nothing was even asked to change.
    assert stored(control_plane, namespace) == installed
    run_uninstall(helm, "hub", namespace, control_plane)
    assert stored(control_plane, namespace) == before


@pytest.mark.parametrize(
    "odd",
    [
        "defaults",
        "several-sets-long-names-terms",
        "webhook-set-in-every-way",
        "admission-by-policy",
    ],
)
def test_applying_twice_changes_nothing_and_deleting_leaves_nothing(
    odd: str, control_plane: ControlPlane, namespace: str
) -> None:
    before = stored(control_plane, namespace)
    file = Path(__file__).parent / "odd" / f"{odd}.yaml"
    # JSON: PyYAML would leave strings bare that other YAML readers take for booleans.
    manifests = json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": list(rendered(file, namespace).values())}
    )
    control_plane.kubectl("apply", "--filename=-", input=manifests)
    applied = stored(control_plane, namespace)
    said = control_plane.kubectl("apply", "--filename=-", input=manifests).splitlines()
    # kubectl always sends a budget's selector again (its merge key says "replace"); the API server
    # sees no change.
    changed = [line for line in said if not line.endswith(" unchanged")]
    assert all(line.startswith("poddisruptionbudget") for line in changed), changed
    assert stored(control_plane, namespace) == applied
    control_plane.kubectl("delete", "--filename=-", "--wait", input=manifests)
    assert stored(control_plane, namespace) == before


def test_releases_of_one_name_in_two_namespaces_share_no_object(
    helm: Path, control_plane: ControlPlane, namespace: str
) -> None:
    other = control_plane.create_namespace()
    places = [namespace, other]
    for place in places:
        # Helm refuses an object that another release holds.
        run_helm(
            helm,
            "install",
            "hub",
            str(CHART),
            f"--namespace={place}",
            kubeconfig=control_plane.kubeconfig,
        )
    both = stored(control_plane, *places)
    run_uninstall(helm, "hub", other, control_plane)
    left = stored(control_plane, *places)
    assert set(left) < set(both)
    assert all(both[key] == body for key, body in left.items())
    assert {key.partition("/")[2] for key in set(both) - set(left) if " /" in key} == {
        key.partition("/")[2].replace(namespace, other)
        for key in left
        if " /" in key and namespace in key
    }
    run_uninstall(helm, "hub", namespace, control_plane)


def test_two_releases_in_one_namespace_share_no_object_and_no_pod(
    helm: Path, control_plane: ControlPlane, namespace: str
) -> None:
    for name in ("one", "two"):
        run_helm(
            helm,
            "install",
            name,
            str(CHART),
            f"--namespace={namespace}",
            kubeconfig=control_plane.kubeconfig,
        )
    one, two = rendered(None, namespace, "one"), rendered(None, namespace, "two")
    assert not one.keys() & two.keys()
    pods = [
        body["spec"]["template"]["metadata"]["labels"]
        for body in two.values()
        if "template" in body.get("spec", {})
    ]
    selectors = [
        found.get("matchLabels", found)
        for body in one.values()
        if (
            found := body.get("spec", {}).get("selector") or body.get("spec", {}).get("podSelector")
        )
    ]
    assert len(selectors) >= 8
    for selector in selectors:
        assert not any(selector.items() <= labels.items() for labels in pods), selector
    for name in ("one", "two"):
        run_uninstall(helm, name, namespace, control_plane)
