import errno
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from generator.faults import GeneratorError, UsageError, ValuesError
from generator.render import go_json
from generator.render.diff import compare, show, sum_up
from generator.render.environment import make_environment, render_template
from generator.render.functions import TemplateError, secret_names, to_json
from generator.render.manifests import Identity, Manifest, render
from generator.render.order import rank
from generator.render.read_manifests import parse_manifests, read_folder
from generator.render.write_manifests import KUSTOMIZATION, files_of, stream, write_folder
from generator.values.files import read_defaults
from generator.values.loader import load
from generator.values.merge import merge_values
from generator.values.release_name import Release, check_release
from roost_core.release.policy_mode import (
    LEFT_OUT,
    POLICY_MINOR,
    class_by_policy,
    gate_mode_by_policy,
)
from roost_core.scheduler.plugins import NEWEST_MINOR, OLDEST_MINOR
from tests.builders import HUB_RELEASE, release_document
from tests.recorded_data import rows

SEVERAL_SETS = (
    "placeholders: [{name: a, replicas: 1}, {name: b, replicas: 2, resources: {requests: {cpu:"
    " 1}}}]"
)


def rendered(text: str = "", release: Release = HUB_RELEASE) -> list[Manifest]:
    merged = merge_values(read_defaults(), [load(text.encode(), "f")])
    return render(merged.values, release)


def test_templates_render_where_none_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.yaml.j2").write_text("a: 1\n")

    def read_only(_path: Path, **_options: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("pathlib.Path.mkdir", read_only)
    assert render_template(make_environment(tmp_path), "a.yaml.j2", {}) == "a: 1\n"


def test_a_disabled_chart_renders_nothing() -> None:
    assert rendered("enabled: false") == []
    assert stream([]) == ""


def test_rendering_twice_gives_the_same_bytes_and_leaves_the_values_alone() -> None:
    merged = merge_values(read_defaults(), [load(SEVERAL_SETS.encode(), "f")])
    before = json.dumps(merged.values)
    assert stream(render(merged.values, HUB_RELEASE)) == stream(render(merged.values, HUB_RELEASE))
    assert json.dumps(merged.values) == before


def test_what_others_need_comes_first_and_admission_comes_last() -> None:
    kinds = [manifest.identity.kind for manifest in rendered()]
    assert kinds.index("ServiceAccount") < kinds.index("ConfigMap") < kinds.index("Deployment")
    assert kinds.index("PriorityClass") < kinds.index("StatefulSet")
    assert kinds.index("RoleBinding") < kinds.index("Deployment")
    assert kinds[-1] == "MutatingWebhookConfiguration"
    assert rank("Namespace") == 0
    assert rank("Deployment") < rank("SomethingElse") < rank("MutatingWebhookConfiguration")


@pytest.mark.parametrize("policy", ["Ignore", "Fail"])
def test_pods_are_refused_without_the_webhook_as_the_values_say_but_no_placeholder(
    policy: str,
) -> None:
    bodies: list[Any] = [
        manifest.body for manifest in rendered(f"webhook: {{failurePolicy: {policy}}}")
    ]
    (configuration,) = [body for body in bodies if body["kind"] == "MutatingWebhookConfiguration"]
    found = {
        entry["name"].partition(".")[0]: entry["failurePolicy"]
        for entry in configuration["webhooks"]
    }
    assert found == {"user": policy, "build": policy, "placeholder": "Ignore"}


def test_values_that_a_template_refuses_are_a_fault() -> None:
    with pytest.raises(ValuesError, match="podClasses has no class 'placeholder'"):
        rendered("podClasses: {placeholder: null}")


def test_two_objects_of_one_identity_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n"
    monkeypatch.setattr(
        "generator.render.manifests.render_texts",
        lambda _values, _release: [("x", f"{text}---\n{text}")],
    )
    with pytest.raises(GeneratorError, match="rendered twice"):
        render({}, HUB_RELEASE)


BAD_NAMES = [{"name": one} for one in ("Upper", "a" * 54, "", "a_b", "a\n")]
BAD_NAMES += [{"namespace": one} for one in ("a.b", "n" * 64, "")]
BAD_NAMES += [{"kube_version": one} for one in ("latest", "1", "v1.36\n")]


@pytest.mark.parametrize("odd", BAD_NAMES, ids=str)
def test_names_that_kubernetes_refuses_are_wrong_usage(odd: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        check_release(Release(**odd))


@pytest.mark.parametrize("version", ["1.36", "v1.36", "v1.36.3", "v1.36.1-gke.200", "v1.35.2+k3s1"])
def test_versions_are_taken_as_clusters_say_them(version: str) -> None:
    check_release(Release(kube_version=version))
    assert Release(kube_version=version).kube_minor in {(1, 36), (1, 35)}


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(_JSON)
@pytest.mark.slow
def test_the_short_cut_prints_json_as_the_exact_way_does(value: object) -> None:
    try:
        expected: object = go_json.to_json_exactly(value)
    except ValueError as error:
        expected = str(error)
    try:
        found: object = to_json(value)
    except TemplateError as error:
        found = str(error)
    assert found == expected


def test_a_folder_holds_one_file_an_object_and_a_kustomization_that_lists_them(
    tmp_path: Path,
) -> None:
    manifests = rendered()
    folder = tmp_path / "deep" / "out"
    write_folder(manifests, str(folder))
    kustomization = yaml.safe_load((folder / KUSTOMIZATION).read_text())
    assert kustomization["kind"] == "Kustomization"
    assert sorted([*kustomization["resources"], KUSTOMIZATION]) == sorted(
        path.name for path in folder.iterdir()
    )
    bodies = [yaml.safe_load((folder / name).read_text()) for name in kustomization["resources"]]
    assert bodies == [manifest.body for manifest in manifests]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_a_folder_of_ours_is_replaced_whole(tmp_path: Path) -> None:
    write_folder(rendered(SEVERAL_SETS), str(tmp_path / "out"))
    write_folder(rendered("placeholders: []"), str(tmp_path / "out"))
    assert not list((tmp_path / "out").glob("statefulset-*"))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("foreign", ["notes.txt", KUSTOMIZATION])
def test_a_folder_of_somebody_else_is_left_alone(foreign: str, tmp_path: Path) -> None:
    (tmp_path / foreign).write_text("kind: Kustomization")
    with pytest.raises(UsageError, match="did not write"):
        write_folder(rendered(), str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [foreign]


@pytest.mark.parametrize("foreign", ["notes.txt", ".git/config", "base/service.yaml"])
def test_what_somebody_put_into_our_folder_is_never_deleted(foreign: str, tmp_path: Path) -> None:
    target = tmp_path / "out"
    write_folder(rendered(), str(target))
    (target / foreign).parent.mkdir(exist_ok=True)
    (target / foreign).write_text("mine")
    with pytest.raises(UsageError, match=f"did not write \\({foreign.partition('/')[0]}\\)"):
        write_folder(rendered(), str(target))
    assert (target / foreign).read_text() == "mine"


@pytest.mark.parametrize("folder", ["", ".", "..", "here/.."])
def test_the_current_folder_is_never_replaced(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(UsageError, match="--output-dir"):
        write_folder(rendered(), folder)
    assert [path.name for path in tmp_path.rglob("*")] == ["here"]


@pytest.mark.parametrize("method", ["write_text", "rename"])
def test_a_failed_write_leaves_the_old_folder_as_it_was(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    write_folder(rendered("placeholders: []"), str(target))
    before = {path.name: path.read_text() for path in target.iterdir()}

    def full_disk(*_: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(f"pathlib.Path.{method}", full_disk)
    with pytest.raises(UsageError, match="No space left"):
        write_folder(rendered(), str(target))
    assert {path.name: path.read_text() for path in target.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_or_a_link_in_the_way_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link", "file/below"):
        with pytest.raises(UsageError):
            write_folder(rendered(), str(tmp_path / name))


def test_objects_whose_files_would_share_a_name_get_two() -> None:
    texts = [f"apiVersion: {group}/v1\nkind: Thing\nmetadata:\n  name: a\n" for group in ("x", "y")]
    files = files_of([Manifest(text, "t") for text in texts])
    assert len(files) == 3


def objects(text: str = "") -> dict[Identity, dict[str, object]]:
    return {manifest.identity: manifest.body for manifest in rendered(text)}


def test_changes_are_named_by_object_and_field() -> None:
    changes = compare(
        objects(), objects("webhook: {replicas: 3}\nplaceholders: [{name: b, replicas: 1}]")
    )
    shown = show(changes)
    assert (
        "~ Deployment jhub/hub-roost-webhook (apps/v1)\n    spec.replicas:\n      - 2\n      + 3\n"
        in shown
    )
    assert "+ StatefulSet jhub/hub-roost-placeholder-b (apps/v1)\n" in shown
    assert "- StatefulSet jhub/hub-roost-placeholder-default (apps/v1)\n" in shown
    assert "\x1b[" not in shown
    # The budget of each set goes and comes with it.
    assert sum_up(changes).endswith("; hub-roost-webhook 2 → 3")
    assert "new, " in sum_up(changes)


@pytest.mark.parametrize(("before", "after", "line"), rows("generator/diff-lines"))
def test_a_line_says_how_many_objects_differ_and_whose_replicas(
    before: dict[str, int], after: dict[str, int], line: str
) -> None:
    old, new = (
        {
            Identity("apps/v1", "StatefulSet", "n", name): {"spec": {"replicas": number}}
            for name, number in one.items()
        }
        for one in (before, after)
    )
    assert sum_up(compare(old, new)) == line


def test_items_with_names_are_compared_by_name_not_by_place() -> None:
    identity = Identity("v1", "Pod", "n", "p")
    before = {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}
    after = {"containers": [{"name": "b", "image": "2"}, {"name": "a", "image": "1"}]}
    (change,) = compare({identity: before}, {identity: after})
    assert [field.path for field in change.fields] == [("containers", "b", "image")]


def test_long_text_is_compared_line_by_line_and_secrets_are_not_shown() -> None:
    config, secret = Identity("v1", "ConfigMap", "n", "c"), Identity("v1", "Secret", "n", "s")
    before = {config: {"data": {"a": "x\ny\nz"}}, secret: {"data": {"token": "geheim"}}}
    after = {config: {"data": {"a": "x\nq\nz"}}, secret: {"data": {"token": "anders"}}}
    shown = show(compare(before, after))
    assert "      -y\n      +q\n" in shown
    assert "geheim" not in shown
    assert "anders" not in shown


def test_whole_numbers_and_floats_of_one_value_are_the_same_but_not_booleans() -> None:
    identity = Identity("v1", "Pod", "n", "p")
    assert compare({identity: {"a": 1}}, {identity: {"a": 1.0}}) == []
    assert compare({identity: {"a": 1}}, {identity: {"a": True}}) != []
    assert compare({identity: {"a": None}}, {identity: {}}) != []


def test_a_folder_of_manifests_is_read_back_as_it_was_rendered(tmp_path: Path) -> None:
    write_folder(rendered(), str(tmp_path / "out"))
    (tmp_path / "all.yaml").write_text(stream(rendered()))
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects().values())}
    (tmp_path / "list.json").write_text(json.dumps(listed))
    assert compare(read_folder(str(tmp_path / "out")), objects()) == []
    for name in ("all.yaml", "list.json"):
        given = parse_manifests((tmp_path / name).read_bytes(), name)
        assert given is not None
        assert compare(given, objects()) == []


@pytest.mark.parametrize("text", ["webhook: {replicas: 3}\n", "a: [1\n", "", "- 1\n", "\x07"])
def test_a_values_file_is_no_manifest(text: str) -> None:
    assert parse_manifests(text.encode(), "f") is None


@pytest.mark.parametrize("text", ["- 1\n", "a: 1\n", "a: [\n", "kind: X\napiVersion: v1\n", "\x07"])
def test_manifests_that_are_none_are_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(GeneratorError):
        read_folder(str(tmp_path))


def test_the_first_file_with_a_fault_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: X\napiVersion: v1\n")
    (tmp_path / "b.yaml").write_text("a: [\n")
    with pytest.raises(GeneratorError, match=r"a\.yaml: an object lacks "):
        read_folder(str(tmp_path))


def test_a_folder_without_manifests_is_an_error_unless_roost_wrote_it_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(UsageError, match="holds no manifest"):
        read_folder(str(tmp_path))
    write_folder([], str(tmp_path / "out"))
    assert read_folder(str(tmp_path / "out")) == {}


def bodies(text: str = "") -> list[dict[str, Any]]:
    return [json.loads(json.dumps(manifest.body)) for manifest in rendered(text)]


def test_the_pull_pods_policy_admits_every_secret_that_the_controllers_give_them() -> None:
    text = """
        {imagePullSecrets: [registry, both], popularImages: {enabled: true},
        singleuser: {image: {name: a/b, tag: "1", pullSecrets: [both, users]}}}
    """
    manifests = rendered(text)
    secrets = release_document(text)["prePuller"]["pullSecrets"]
    assert secrets == ["registry", "both", "users"]
    policies = [
        str(manifest.body)
        for manifest in manifests
        if manifest.body["kind"] == "ValidatingAdmissionPolicy"
    ]
    expressions = [
        said for policy in policies for said in re.findall(r"secret\.name in dyn\((.*?)\)", policy)
    ]
    assert [json.loads(expression) for expression in expressions] == [secrets]


@pytest.mark.parametrize(("values", "mode", "run"), rows("generator/gate-told"))
def test_the_programs_are_told_what_the_gate_may_require_and_who_pulls(
    values: str, mode: str, run: bool
) -> None:
    document = release_document(values)
    assert (document["imageGate"]["mode"], document["pullersRun"]) == (mode, run)


@pytest.mark.parametrize(
    ("values", "prefers"),
    [("", True), ("controllers: {enabled: false}", False), ("controllers: {replicas: 0}", False)],
)
def test_an_admission_policy_requires_no_label_and_prefers_those_that_are_kept_true(
    values: str, prefers: bool
) -> None:
    text = f"{{admission: {{mode: policy}}{', ' + values if values else ''}}}"
    policies = [
        manifest.body
        for manifest in rendered(text)
        if manifest.body["kind"] == "MutatingAdmissionPolicy"
    ]
    assert policies
    text = json.dumps(policies)
    assert "pulling" not in text
    assert "requiredDuringScheduling" not in text
    assert ("+ variables.held.filter" in text) == prefers


def policies_of(values: dict[str, Any], minor: int = NEWEST_MINOR) -> list[dict[str, object]]:
    manifests = render(values, Release("hub", "jhub", f"v1.{minor}.0"))
    return [
        manifest.body
        for manifest in manifests
        if manifest.body["kind"] == "MutatingAdmissionPolicy"
    ]


def test_admission_policies_read_nothing_that_the_table_says_they_cannot_follow() -> None:
    values: dict[str, Any] = dict(read_defaults().values) | {"admission": {"mode": "policy"}}
    classes = values["podClasses"]
    assert {part.key for part in LEFT_OUT} <= {
        key for pod_class in classes.values() for key in pod_class
    }
    followed = {name: class_by_policy(each) for name, each in classes.items()}
    assert followed != classes
    assert policies_of(values | {"podClasses": followed}) == policies_of(values) != []
    mode = gate_mode_by_policy(values["imageGate"]["mode"], has_labels=True)
    gate = values["imageGate"] | {"mode": mode}
    assert policies_of(values | {"imageGate": gate}) == policies_of(values)


@pytest.mark.parametrize("minor", range(OLDEST_MINOR, NEWEST_MINOR + 1))
def test_admission_policies_are_rendered_from_their_minor_on(minor: int) -> None:
    values: dict[str, Any] = dict(read_defaults().values) | {"admission": {"mode": "policy"}}
    assert bool(policies_of(values, minor)) == ((1, minor) >= POLICY_MINOR)


def ingress_of(component: str, text: str) -> list[Any]:
    (found,) = [
        manifest["spec"]["ingress"]
        for manifest in bodies(text)
        if manifest["kind"] == "NetworkPolicy"
        and manifest["metadata"]["name"] == f"hub-roost-{component}"
    ]
    return list(found)


def test_who_may_send_reviews_and_who_may_read_metrics_are_told_apart() -> None:
    assert all("from" not in rule for rule in ingress_of("webhook", ""))
    peers = [{"ipBlock": {"cidr": "10.0.0.0/28"}}]
    text = "networkPolicy: {ingress: {webhookReviews: [{ipBlock: {cidr: 10.0.0.0/28}}]}}"
    reviews, metrics = ingress_of("webhook", text)
    assert (reviews["ports"][0]["port"], reviews["from"]) == (8443, peers)
    assert metrics["ports"][0]["port"] == 8080
    assert "from" not in metrics


@pytest.mark.parametrize("component", ["webhook", "controllers", "scheduler", "recorder"])
def test_metrics_of_every_program_can_be_kept_to_their_readers(component: str) -> None:
    text = "recorder: {enabled: true}\nnetworkPolicy: {ingress: {metrics: [{podSelector: {}}]}}"
    *reviews, metrics = ingress_of(component, text)
    assert metrics["from"] == [{"podSelector": {}}]
    assert all("from" not in rule for rule in reviews)


def test_a_program_by_tag_and_digest_is_rendered_as_it_is_written() -> None:
    digest = f"sha256:{'ab' * 32}"
    text = (
        f"scheduler: {{image: {{tag: 'v1.36.3@{digest}'}}}}\nplaceholder: {{image: {{tag:"
        f" '3.10.1@{digest}'}}}}"
    )
    workloads = [body for body in bodies(text) if body["kind"] in ("Deployment", "StatefulSet")]
    specs = [workload["spec"]["template"]["spec"] for workload in workloads]
    images = {container["image"] for spec in specs for container in spec["containers"]}
    assert {
        f"registry.k8s.io/kube-scheduler:v1.36.3@{digest}",
        f"registry.k8s.io/pause:3.10.1@{digest}",
    } <= images


def test_pull_secrets_are_names_or_as_in_a_pod() -> None:
    assert secret_names(["one", {"name": "two"}]) == ["one", "two"]
    assert secret_names(None) == []
    assert secret_names([]) == []
